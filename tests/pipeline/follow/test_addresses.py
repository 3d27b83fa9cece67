"""Addresses of Redis servers, and what is shown of them."""

from __future__ import annotations

import pytest

from coaudit.pipeline.errors import UsageError
from coaudit.pipeline.follow.redis import PASSWORD, _plain, _settings


@pytest.mark.parametrize("database", ["\u00b2", "\u0663", "x"])
def test_a_database_is_a_number_in_digits(database: str) -> None:
    with pytest.raises(UsageError, match="with the db a number"):
        _settings(f"redis://h/{database}")


def test_a_password_is_hidden_as_the_url_writes_it_and_as_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD, "hunter2")
    error = OSError("refused: p@s, p%40s and hunter2")
    assert _plain(error, "redis://:p%40s@h/0") == "refused: ***, *** and ***"
