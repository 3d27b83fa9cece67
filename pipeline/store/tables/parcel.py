"""Tables of trajectories on their way into the store, which wait in memory or in a file.

DuckDB compresses whole row groups and writes them straight to disk, but a partial one twice, so that few
large transactions take half as long as many small ones. Until enough has come together for one, tables wait:
in a file they take no memory, and pass from process to process by its name.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ....schemas.no_pandas import without_pandas
from ..connection import drain
from .columns import SCHEMAS, Tables, schema

if TYPE_CHECKING:
    import pyarrow as pa


ROW_GROUP = 122_880
"""Rows that DuckDB compresses and writes at once."""


@dataclass(frozen=True)
class Parcel:
    """Rows of every table of `SCHEMAS`; `of` and `set_aside` make one."""

    rows: Mapping[str, int]
    """Number of rows of each table."""
    sizes: Mapping[str, int]
    """Bytes of each table, as they are in memory."""
    _tables: Tables | None = field(repr=False)
    """The tables, or None where they are in a file."""
    _file: Path | None = None
    _places: Mapping[str, int] = field(default_factory=dict)
    """Table -> the byte at which its stream begins in the file."""
    _left_out: frozenset[str] = frozenset()
    """Trajectories that are not to be stored."""

    @classmethod
    def of(cls, tables: Tables) -> Parcel:
        """Tables that are held in memory."""
        rows = {name: table.num_rows for name, table in tables.items()}
        return cls(rows, {name: table.nbytes for name, table in tables.items()}, tables)

    @property
    def bytes(self) -> int:
        """Bytes of all tables, as they are in memory."""
        return sum(self.sizes.values())

    @property
    def bytes_held(self) -> int:
        """Bytes of memory that it takes now."""
        return 0 if self._tables is None else self.bytes

    def without(self, ids: Collection[str]) -> Parcel:
        """The same without the rows of these trajectories."""
        return replace(self, _left_out=self._left_out.union(ids)) if ids else self

    def copy(self) -> Parcel:
        """A copy that can still be read after this one was drained, until it is removed."""
        return replace(self, _tables=None if self._tables is None else dict(self._tables))

    @without_pandas()
    def set_aside(self, folder: Path) -> Parcel:
        """The same in a new file of a folder; unchanged where that has no room for it."""
        import pyarrow as pa

        if self._tables is None:
            return self
        places: dict[str, int] = {}
        path: Path | None = None
        try:
            with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
                path = Path(file.name)
                with pa.PythonFile(file, "w") as sink:
                    for name, table in self._tables.items():
                        places[name] = sink.tell()
                        with pa.ipc.new_stream(sink, table.schema) as stream:
                            # In one piece: DuckDB takes 2,048 rows at a time, and pieces of a few more twice.
                            stream.write_table(table.combine_chunks())
        except OSError:
            if path is not None:
                path.unlink(missing_ok=True)
            return self
        return replace(self, _tables=None, _file=path, _places=places)

    @without_pandas()
    def batches(self, name: str, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of a table, a few thousand at a time, with some columns of it (None: with all)."""
        import pyarrow as pa

        if self._tables is not None:
            table = self._tables[name]
            yield from self._drop_left_out(
                name, (table if columns is None else table.select(columns)).to_batches()
            )
            return
        indices = [list(SCHEMAS[name]).index(column) for column in columns or ()]
        options = pa.ipc.IpcReadOptions(included_fields=indices, use_threads=False)
        with pa.OSFile(str(self._file)) as file:
            file.seek(self._places[name])
            yield from self._drop_left_out(name, pa.ipc.open_stream(file, options=options))

    def drain(self, name: str) -> Iterator[pa.RecordBatch]:
        """The rows of a table, read for the last time: they leave memory as they are yielded."""
        if self._tables is None:
            yield from self.batches(name)
            return
        yield from self._drop_left_out(name, drain(self._tables.pop(name).to_batches()))

    def tables(self) -> Tables:
        """All tables, in memory."""
        import pyarrow as pa

        return {name: pa.Table.from_batches(self.batches(name), schema(name)) for name in SCHEMAS}

    def remove(self) -> None:
        """Delete its file: the rows are stored."""
        if self._file is not None:
            with suppress(OSError):
                self._file.unlink(missing_ok=True)

    def _drop_left_out(self, name: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches without the trajectories that are left out."""
        key = "id" if name == "trajectories" else "trajectory_id"
        if not self._left_out or key not in SCHEMAS[name]:
            yield from batches
            return
        import pyarrow as pa
        import pyarrow.compute as pc

        out = pa.array(list(self._left_out), "string")
        for batch in batches:
            yield batch.filter(pc.invert(pc.is_in(batch[key], out)))
