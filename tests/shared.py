"""Where the shared logs lie; tests that read them are skipped with a reason where they are absent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SHARED = Path(os.environ.get("COAUDIT_SHARED", ROOT.parent / "shared"))


def shared(path: str) -> Path:
    """A path below the shared data; skips the test where it is not there."""
    found = SHARED / "data" / path
    if not found.exists():
        pytest.skip(f"no shared data at {found}")
    return found
