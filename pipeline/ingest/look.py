"""What a place looks like in which no log of a known format was recognised, and which command goes on."""

from __future__ import annotations

import shlex
from pathlib import Path

from ..systems.formats.draft import drafting
from ..systems.formats.draft.survey import Survey, survey_logs

KEYS = 8
"""At most so many keys of a record are named."""


def looks_like(root: Path, name: str) -> str:
    """A sentence on the files of a place, and the command that goes on where they can be mapped."""
    findings = survey_logs(root)
    if not findings.records:
        why = f": {findings.reason}" if findings.reason else ""
        return f"{'no file in it that holds' if root.is_dir() else 'no'} records{why}"
    return f"{_summary(findings)}. `coaudit map {shlex.quote(name)} --out map.toml` drafts a mapping for it"


def _summary(findings: Survey) -> str:
    top = [path for path in findings.paths if "." not in path.replace("\\.", "") and "[]" not in path]
    keys = ", ".join(drafting.toml_string(key) for key in top[:KEYS]) + (" …" if len(top) > KEYS else "")
    n = len(findings.records)
    what = f"{n}{'+' if n >= 1000 else ''} record{'s' * (n != 1)}"
    return f"it looks like {what} of {findings.format} with {keys or 'nothing in it'}"
