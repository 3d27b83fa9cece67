"""Tables that a process of its own reads, since some end the one that reads them, or take all memory: it
writes a line of JSON for each row."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from .....schemas import JsonValue, Quarantined
from .tables import Row, first_line


def rows(module: str, path: Path, kind: str, reason: str) -> Iterator[Row]:
    """The rows of a file as `module` reads them in a process of its own, and last, without a row, that it is
    no `kind` where that fails; `reason` where it does not say why."""
    command = [sys.executable, "-P", "-m", module, str(path.absolute())]
    number = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if not line.endswith(b"\n"):  # the process ended as it wrote, and its status says so
                    break
                value: Any = json.loads(line)
                if "failure" in value:
                    reason = value["failure"]
                    continue
                number += 1
                wrong = value.get("reason")
                row = Quarantined(source=str(path), line=number, reason=wrong) if wrong else value["row"]
                yield number, row
        finally:
            process.kill()
            status = process.wait()
    if status:
        yield None, Quarantined(source=str(path), reason=f"not {kind}: {reason}")


def write(read: Callable[[], Iterable[JsonValue | Quarantined]], most: int) -> None:
    """In that process: write `{"row": ...}` or `{"reason": ...}` for each row, or `{"failure": ...}` for all.
    It may take so many bytes of memory."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most if hard < 0 else min(most, hard), hard))
    import polars

    try:
        for value in read():
            line = {"reason": value.reason} if isinstance(value, Quarantined) else {"row": value}
            print(json.dumps(line))
    except (polars.exceptions.PolarsError, OSError, ValueError, MemoryError) as error:
        print(json.dumps({"failure": first_line(error)}))
        sys.exit(1)
