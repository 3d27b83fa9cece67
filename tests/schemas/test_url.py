"""URLs: what is on this machine."""

from __future__ import annotations

import pytest

from coaudit.schemas.url import is_local


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8000/v1",
        "http://127.1.2.3",
        "http://127.1:8080",
        "http://[::ffff:127.0.0.1]",
        "http://LOCALHOST:8080",
        "http://label.localhost",
        "http://user:key@localhost:8000",
        "http://[::1]:8000",
        "http://0.0.0.0:8000/v1",
    ],
)
def test_a_host_of_this_machine_is_asked_past_proxies(url: str) -> None:
    assert is_local(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost.example.org",
        "http://127.example.org",
        "https://example.org/to?from=http://localhost",
        "http://10.0.0.1",
        "http://10.1",
        "http://[::1",
        "",
    ],
)
def test_a_host_that_only_begins_like_it_is_another_machine(url: str) -> None:
    assert not is_local(url)
