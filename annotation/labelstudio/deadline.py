"""Work that has to be done in time: httpx's own limits begin anew with every byte that comes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def within(seconds: float, work: Callable[[], T]) -> T:
    """What `work` returns or raises; TimeoutError where it is not done in time.

    It then goes on in a thread that ends with the process: close what it waits for.
    """
    result: Future[T] = Future()

    def do() -> None:
        try:
            result.set_result(work())
        except BaseException as error:
            result.set_exception(error)

    Thread(target=do, daemon=True).start()
    return result.result(seconds)
