"""The package as it is installed, which way it imports, and what is written from the code."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import tomllib
import zipfile
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

from coaudit.pipeline import documents
from tests.conftest import ROOT

TOP = ("schemas", "judges", "annotation", "pipeline", "dashboards", "data")
ALLOWED = {
    "schemas": set[str](),
    "data": set[str](),
    "judges": {"schemas"},
    "annotation": {"schemas"},
    "pipeline": {"schemas", "judges", "annotation", "data"},
    "dashboards": {"schemas", "judges", "annotation", "pipeline", "data"},
}
"""dashboards -> pipeline -> {judges, annotation} -> schemas."""
OPENS_DATABASE = {"pipeline/store.py", "pipeline/lake.py"}
# pydantic is not among them: typer itself loads it for a command's help.
HEAVY = (
    "altair",
    "duckdb",
    "label_studio_sdk",
    "litellm",
    "numpy",
    "pandas",
    "polars",
    "pyarrow",
    "ray",
    "redis",
    "rich",
    "scipy",
    "sklearn",
    "statsmodels",
    "streamlit",
    "vllm",
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SETUPTOOLS = PROJECT["tool"]["setuptools"]
WRITTEN = documents.documents()


@cache
def modules() -> list[tuple[str, ast.Module]]:
    """Every module of the package with its syntax tree."""
    return [
        (str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8")))
        for top in TOP
        for path in sorted((ROOT / top).rglob("*.py"))
    ]


@cache
def imports(tree: ast.AST) -> list[str]:
    """Every module that a tree imports, wherever in it."""
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.extend(name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found.append(str(node.module))
            found.extend(f"{node.module}.{name.name}" for name in node.names)
    return found


def folders() -> set[str]:
    """Every folder with code, as a package."""
    found = {path.parent for top in TOP for path in (ROOT / top).rglob("__init__.py")}
    return {"coaudit." + ".".join(path.relative_to(ROOT).parts) for path in found}


def test_every_folder_with_code_is_listed_as_a_package_and_mapped() -> None:
    assert set(SETUPTOOLS["packages"]) == folders()
    expected = {name: name.removeprefix("coaudit.").replace(".", "/") for name in folders()}
    assert SETUPTOOLS["package-dir"] == expected
    assert not (ROOT / "coaudit").exists() and not (ROOT / "__init__.py").exists()


def test_every_folder_with_modules_has_an_empty_init_file() -> None:
    for top in TOP:
        for path in (ROOT / top).rglob("*.py"):
            init = path.parent / "__init__.py"
            assert init.exists() and not init.read_text(), init


def test_imports_go_one_way() -> None:
    wrong = [
        f"{name} imports {imported}"
        for name, tree in modules()
        for imported in imports(tree)
        if imported.startswith("coaudit.")
        and (part := imported.split(".")[1]) != (own := name.split("/")[0])
        and part not in ALLOWED[own]
    ]
    assert not wrong


def test_nobody_imports_a_top_level_folder_bare() -> None:
    trees = [*modules()]
    for path in (*(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")):
        trees.append((str(path), ast.parse(path.read_text(encoding="utf-8"))))
    wrong = [
        f"{name} imports {imported}"
        for name, tree in trees
        for imported in imports(tree)
        if imported.split(".")[0] in TOP
    ]
    assert not wrong


def test_only_the_store_opens_the_database() -> None:
    opens = {
        name
        for name, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr == "connect"
        and isinstance(node.value, ast.Name)
        and node.value.id == "duckdb"
    }
    assert opens == OPENS_DATABASE


def test_parameters_reach_the_database_through_the_store_alone() -> None:
    passing = {
        f"{name}:{node.lineno}"
        for name, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("execute", "executemany", "sql")
        and len(node.args) + len(node.keywords) > 1
    }
    assert {place.partition(":")[0] for place in passing} == {"pipeline/store.py"}, passing
    assert len(passing) == 1, "store.execute keeps pandas out; every other place goes through it"


def test_the_types_import_pydantic_only() -> None:
    known = {"__future__", "coaudit", "pydantic", "pydantic_core", *sys.stdlib_module_names}
    wrong = {
        f"{name} imports {imported}"
        for name, tree in modules()
        if name.startswith("schemas/")
        for imported in imports(tree)
        if imported.split(".")[0] not in known
    }
    assert not wrong


@pytest.mark.parametrize("arguments", [["--help"], ["ingest", "--help"], ["labelstudio", "--help"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    script = (
        "import sys\nfrom coaudit.pipeline.cli import app\n"
        f"try:\n    app({arguments!r})\nexcept SystemExit:\n    pass\n"
        f"print('loaded', *[name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True)
    assert "Usage: " in done.stdout
    assert done.stdout.splitlines()[-1] == "loaded", "nothing"


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_what_is_written_from_the_code_is_in_step_with_it(name: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == WRITTEN[name], "run `make docs`"


def test_no_json_schema_lies_there_that_no_type_has() -> None:
    there = {f"schemas/json/{path.name}" for path in (ROOT / "schemas" / "json").iterdir()}
    assert there == {name for name in WRITTEN if name.startswith("schemas/")}


def test_the_reference_has_every_command() -> None:
    text = documents.commands()
    for command in ("ingest", "trajectory show", "ratings import", "outcomes import", "metrics", "agreement"):
        assert f" coaudit {command}\n" in text


def _data_files() -> set[str]:
    """The files that are no code and belong into the wheel, by the patterns of pyproject.toml."""
    listed = subprocess.run(
        ["git", "ls-files", *TOP], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return {name for name in listed if not name.endswith(".py") and not fnmatch(name, "*/.gitignore")}


@pytest.mark.slow
def test_the_wheel_holds_every_module_and_data_file_and_nothing_else(tmp_path: Path) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("what belongs into the wheel is told by git, and this is no checkout")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        if (ROOT / name).is_file():
            (tmp_path / "source" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / "source" / name)
    source, out = str(tmp_path / "source"), str(tmp_path / "out")
    if uv := shutil.which("uv"):
        command = [uv, "build", "--quiet", "--wheel", "--out-dir", out, source]
    else:
        python = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin") or sys.executable
        command = [python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", out, source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / "out").glob("coaudit-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
    modules_ = {f"coaudit/{name}" for name, _ in modules() if name in listed.splitlines()}
    assert inside == modules_ | {f"coaudit/{name}" for name in _data_files()}
