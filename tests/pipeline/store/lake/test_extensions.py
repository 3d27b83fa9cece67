"""An extension comes out of its package alone, and one that does not come says what to install."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import pytest

from coaudit.pipeline.errors import StoreError
from coaudit.pipeline.store.lake.extensions import load


def _package(folder: Path, monkeypatch: pytest.MonkeyPatch, version: str, content: bytes) -> None:
    """A package of an extension `quack`."""
    file = folder / "duckdb_extension_quack" / "extensions" / version / "quack.duckdb_extension"
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    (folder / "duckdb_extension_quack" / "__init__.py").touch()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setitem(sys.modules, "duckdb_extension_quack", None)
    del sys.modules["duckdb_extension_quack"]  # and it goes again with the test


def _told() -> str:
    with pytest.raises(StoreError) as error, duckdb.connect() as connection:
        load(connection, "quack")
    return str(error.value)


def test_an_extension_whose_package_is_missing_says_what_to_install_with_and_without_a_network() -> None:
    told, package = _told(), f"duckdb-extension-quack=={duckdb.__version__}"
    assert "extension quack is not installed" in told
    assert f"pip install {package}" in told and f"`pip download {package}`" in told


def test_a_package_for_another_duckdb_is_told_from_one_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _package(tmp_path, monkeypatch, "v0.0.1", b"")
    assert f"is installed for another version than DuckDB {duckdb.__version__}" in _told()


def test_an_extension_that_nobody_signed_is_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _package(tmp_path, monkeypatch, f"v{duckdb.__version__}", bytes(4096))
    told = _told()
    assert "cannot be loaded (" in told and "pip install --force-reinstall duckdb-extension-quack==" in told


@pytest.mark.slow
def test_a_user_without_a_home_loads_extensions_and_none_is_left_in_it(tmp_path: Path) -> None:
    pytest.importorskip("duckdb_extension_ducklake", reason="the extra `lake` is not installed")
    for home in (tmp_path, tmp_path / "nowhere"):
        with duckdb.connect(config={"home_directory": str(home)}) as connection:
            load(connection, "ducklake")
            query = "SELECT loaded FROM duckdb_extensions() WHERE extension_name = 'ducklake'"
            assert connection.execute(query).fetchone() == (True,)
    assert not list(tmp_path.iterdir())
