"""Arrow and DuckDB without pandas."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class _NoPandas:
    """Among the finders of modules: says that there is no pandas."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is kept out here", name=name)


@contextmanager
def without_pandas() -> Iterator[None]:
    """Keep pandas out unless somebody has loaded it; whoever wants it afterwards gets it.

    DuckDB and Arrow look for pandas' types among what they are given, and where it is installed import it
    for that, which takes over a second and 60 MB; nothing here uses it.
    """
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
