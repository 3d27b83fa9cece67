"""A local endpoint for every test that asks one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.judges.endpoint import Endpoint


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """A serving endpoint that answers as its `answer` says."""
    with Endpoint().serving() as serving:
        yield serving
