"""DuckDB's extensions, loaded from the Python packages that bring them: no network, and no folder of the
user's."""

from __future__ import annotations

from importlib import import_module, resources

import duckdb

from ...errors import StoreError


def load(connection: duckdb.DuckDBPyConnection, extension: str) -> None:
    """Load an extension from its package; DuckDB checks its signature. StoreError says what to install, also
    where there is no network."""
    try:
        package = import_module(f"duckdb_extension_{extension}")
    except ImportError as error:
        raise StoreError(f"DuckDB's extension {extension} is not installed: {_how(extension)}") from error
    version = f"v{duckdb.__version__}"
    file = resources.files(package).joinpath("extensions", version, f"{extension}.duckdb_extension")
    if not file.is_file():
        raise StoreError(
            f"DuckDB's extension {extension} is installed for another version than DuckDB "
            f"{duckdb.__version__}: {_how(extension)}"
        )
    try:
        connection.execute(f"LOAD '{str(file).replace(chr(39), chr(39) * 2)}'")
    except duckdb.Error as error:
        why, how = " ".join(str(error).split())[:200], _how(extension, "--force-reinstall ")
        raise StoreError(f"DuckDB's extension {extension} cannot be loaded ({why}): {how}") from error


def _how(extension: str, anew: str = "") -> str:
    package = f"duckdb-extension-{extension.replace('_', '-')}=={duckdb.__version__}"
    return (
        f"pip install {anew}{package} (the extra `lake` has it); where there is no network, from the wheel "
        f"that `pip download {package}` gives elsewhere"
    )
