"""Archives whose members are data: what one writes lies within its folder, under any Python."""

from __future__ import annotations

import tarfile
from pathlib import Path

HAS_FILTER = hasattr(tarfile, "data_filter")
"""Python has filters from 3.11.4 on; Debian 12 has 3.11.2."""


def extract(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """Write a member into a folder, with none of its owner, time and rights.

    TarError for what is neither a file nor a folder, or leads out of it.
    """
    if not (member.isfile() or member.isdir()):
        raise tarfile.ExtractError(f"{member.name!r} is neither a file nor a folder")
    if leads_out(member.name):
        raise tarfile.ExtractError(f"{member.name!r} leads out of the archive")
    if HAS_FILTER:
        archive.extract(member, folder, set_attrs=False, filter="data")
    else:
        archive.extract(member, folder, set_attrs=False)


def leads_out(name: str) -> bool:
    """Whether a member's path leads out of the folder that it is written to."""
    path = Path(name.replace("\\", "/"))
    return path.is_absolute() or ".." in path.parts
