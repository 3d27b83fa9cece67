"""Frames on their way to a reader that is lost."""

from __future__ import annotations

import os

from coaudit.pipeline.follow.outlet import Outlet


def test_nothing_waits_for_a_reader_that_cannot_be_written_to() -> None:
    descriptor = os.open(os.devnull, os.O_RDONLY)
    out = Outlet(descriptor)
    out.put("one")
    out.put("two")
    out.close()
    os.close(descriptor)
    assert out.waiting == 0
