"""What a place looks like in which no log of a known format was recognised, and which command goes on."""

from __future__ import annotations

import shlex
from pathlib import Path

from ..systems.formats import drafting
from ..systems.formats.survey import Survey, survey

KEYS = 8
"""So many keys of a record are named."""


def looks_like(root: Path, name: str) -> str:
    """A sentence on the files of a place, and the command that goes on where they can be mapped."""
    seen = survey(root)
    if not seen.records:
        why = f": {seen.wrong[0].reason}" if seen.wrong else ""
        return f"no file in it that holds records{why}"
    return f"{_described(seen)}. `coaudit map {shlex.quote(name)} --out map.toml` drafts a mapping for it"


def _described(seen: Survey) -> str:
    top = [path for path in seen.paths if "." not in path.replace("\\.", "") and "[]" not in path]
    keys = ", ".join(drafting.quoted(key) for key in top[:KEYS]) + (" …" if len(top) > KEYS else "")
    n = len(seen.records)
    what = f"{n}{'+' if n >= 1000 else ''} record{'s' * (n != 1)}"
    return f"it looks like {what} of {seen.format} with {keys or 'nothing in it'}"
