"""Keeps Arrow and DuckDB from importing pandas."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class _NoPandas:
    """A finder of modules that says that there is no pandas."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is kept out here", name=name)


@contextmanager
def without_pandas() -> Iterator[None]:
    """Keep pandas from being imported inside the block, unless it is loaded already.

    DuckDB and Arrow look for pandas' types among what they are given, and import it for that where it is
    installed, which takes over a second and 60 MB; nothing here uses it.
    """
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
