"""What a call costs, counted: the same on any machine and beside any load, where a clock is not."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps(call: Callable[[], object]) -> int:
    """Lines of Python that a call runs, each turn of a loop again; not what C does within one."""
    lines = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return lines
