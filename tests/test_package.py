"""The package as it is installed, which way it imports, and what is written from the code."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path

import pytest
import typer.main

from coaudit.pipeline.cli import main, reference
from tests.conftest import ROOT
from tests.structure import draw, house

NO_PACKAGE_AROUND = ("coaudit", "dashboards.app")
"""The face, whose other folders lie elsewhere, and the script that Streamlit runs by its path."""
ACROSS = (
    "test_browser.py",
    "test_bulkheads.py",
    "test_charts.py",
    "test_full_disk.py",
    "test_hostile.py",
    "test_pull_sequences.py",
)
"""Of several modules at once: pages in a browser, their charts, all readers, each place that a follower
writes, pulls one after the other."""
OPENS_DATABASE = {"pipeline.store.connection", "pipeline.store.lake.attach"}
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
HEAVY_FOR_A_FACE = tuple(sorted(set(HEAVY) - {"duckdb", "numpy", "rich"}))
"""A face may load what its own modules cannot do without: DuckDB's are .1 s, httpx brings rich."""
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SETUPTOOLS = PROJECT["tool"]["setuptools"]
WRITTEN = reference.documents()


def packages() -> set[str]:
    """Every folder with code, as a package."""
    inits = (path.parent for path in house.modules().values() if path.name == "__init__.py")
    return {".".join(path.relative_to(ROOT).parts) for path in inits}


def test_every_folder_with_code_is_listed_as_a_package_and_each_top_level_folder_mapped() -> None:
    listed = {"coaudit", *(f"coaudit.{name}" for name in packages() if name != "coaudit")}
    assert set(SETUPTOOLS["packages"]) == listed
    mapped = {"coaudit" if top == "coaudit" else f"coaudit.{top}": top for top in house.TOP}
    assert SETUPTOOLS["package-dir"] == mapped
    assert not (ROOT / "__init__.py").exists()


def test_every_folder_with_modules_is_a_package() -> None:
    without = {path.parent for path in house.modules().values() if not (path.parent / "__init__.py").exists()}
    assert not without


@pytest.mark.long
def test_the_picture_of_the_structure_is_in_step_with_it() -> None:
    assert (ROOT / "docs" / "structure.svg").read_text(encoding="utf-8") == draw.svg(), "run `make docs`"


def test_the_face_hands_on_its_names_and_opens_a_store(tmp_path: Path) -> None:
    import coaudit

    assert all(hasattr(coaudit, name) for name in coaudit.__all__)
    assert coaudit.__version__ == PROJECT["project"]["version"]
    assert coaudit.open(tmp_path).workspace.path == tmp_path
    with pytest.raises(AttributeError, match="nothing_of_it"):
        _ = coaudit.nothing_of_it


def test_coaudit_is_its_face_alone() -> None:
    assert [path.name for path in (ROOT / "coaudit").glob("*.py")] == ["__init__.py"]


@pytest.mark.long
def test_a_layer_sees_only_those_below() -> None:
    wrong = [
        f"{one.module}:{one.line} imports {one.target}"
        for one in house.imports()
        if house.room(one.module) != house.room(one.target) and one.target != "pipeline"
        if house.layer(one.module) >= house.layer(one.target)
    ]
    assert not wrong


@pytest.mark.long
def test_a_room_of_the_open_formats_sees_only_those_below() -> None:
    formats = "pipeline.systems.formats."
    rooms = {path.parent.name for module, path in house.modules().items() if module.startswith(formats)}
    assert rooms == {"formats", *house.FORMATS}
    wrong = [
        f"{one.module}:{one.line} imports {one.target}"
        for one in house.imports()
        if one.module.startswith(formats) and one.target.startswith(formats)
        for start, end in [(one.module.split(".")[3], one.target.split(".")[3])]
        if start in house.FORMATS and start != end
        if end not in house.FORMATS or house.FORMATS.index(start) >= house.FORMATS.index(end)
    ]
    assert not wrong


@pytest.mark.long
def test_no_modules_import_each_other_in_a_circle() -> None:
    assert not house.circles()


@pytest.mark.long
def test_imports_are_relative_inside_the_product_and_absolute_outside() -> None:
    inside = [
        f"{module}:{node.lineno}"
        for module in house.modules()
        if module not in NO_PACKAGE_AROUND
        for node in ast.walk(house.tree_of(module))
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").startswith("coaudit")
    ]
    assert not inside
    for path in (*(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            assert name.split(".")[0] not in set(house.TOP) - {"coaudit"}, f"{path}:{name}"


@pytest.mark.long
def test_a_variable_is_called_what_it_is_and_not_what_happened_to_it() -> None:
    wrong = {(module, name) for module, _, name in house.variables() if name.strip("_") in house.PARTICIPLES}
    assert not wrong


def test_tests_lie_where_what_they_test_lies() -> None:
    wrong = [
        path
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if path.parent != ROOT / "tests" and path.name not in ACROSS
        if not (ROOT / path.parent.relative_to(ROOT / "tests") / path.name.removeprefix("test_")).exists()
    ]
    assert not wrong


def attributes(name: str) -> Iterator[tuple[str, ast.Attribute]]:
    """Each place where a module takes an attribute of that name."""
    for module in house.modules():
        for node in ast.walk(house.tree_of(module)):
            if isinstance(node, ast.Attribute) and node.attr == name:
                yield module, node


@pytest.mark.long
def test_only_the_store_opens_the_database() -> None:
    opens = {
        module
        for module, node in attributes("connect")
        if isinstance(node.value, ast.Name) and node.value.id == "duckdb"
    }
    assert opens == OPENS_DATABASE


@pytest.mark.long
def test_parameters_reach_the_database_through_the_store_alone() -> None:
    passing = {
        f"{module}:{node.lineno}"
        for module in house.modules()
        if module != "pipeline.store.lake.postgres"  # its connections are psycopg's, not DuckDB's
        for node in ast.walk(house.tree_of(module))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("execute", "executemany", "sql")
        and len(node.args) + len(node.keywords) > 1
    }
    assert {place.partition(":")[0] for place in passing} == {"pipeline.store.connection"}, passing
    assert len(passing) == 1, "store.execute keeps pandas out; every other place goes through it"


@pytest.mark.long
def test_no_result_of_the_database_waits_for_its_rest() -> None:
    waiting = {
        f"{module}:{node.lineno}"
        for module, node in attributes("fetchone")
        if module != "pipeline.store.lake.postgres"  # its connections are psycopg's, not DuckDB's
    }
    assert waiting == set(), "store.first_row takes all: an open result locks a catalog in SQLite"


def test_the_types_import_pydantic_only() -> None:
    known = {"__future__", "pydantic", "pydantic_core", *sys.stdlib_module_names}
    wrong = {
        f"{module} imports {name}"
        for module in house.modules()
        if module.startswith("schemas")
        for node in ast.walk(house.tree_of(module))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom) and not node.level
            else []
        )
        if name.split(".")[0] not in known
    }
    assert not wrong


@pytest.mark.long
def test_every_face_lists_its_names_and_loads_nothing_heavy() -> None:
    faces = [f"coaudit.{name}" for name in sorted(packages()) if name.split(".")[0] != "coaudit"]
    script = (
        "import sys\nfrom importlib import import_module\n"
        f"faces = [import_module(name) for name in {faces!r}]\n"
        "print('lacking', *[(f.__name__, n) for f in faces for n in f.__all__ if not hasattr(f, n)])\n"
        f"print('loaded', *[name for name in {HEAVY_FOR_A_FACE!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["lacking", "loaded"]


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    script = (
        "import sys\nfrom coaudit.pipeline.cli.main import app\n"
        f"try:\n    app({arguments!r})\nexcept SystemExit:\n    pass\n"
        f"print('loaded', *[name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) > 1
    assert done.stdout.splitlines()[-1] == "loaded", "nothing"


def test_the_help_lists_every_command_of_every_module_by_its_own_first_words() -> None:
    modules = {module for module, _ in main.COMMANDS.values()}
    brought = {
        name
        for module in modules
        for name in typer.main.get_group(import_module(f"coaudit.pipeline.cli.{module}").app).commands
    }
    assert brought == set(main.COMMANDS)
    for name, (_, line) in main.COMMANDS.items():
        words = (main.Commands()[name].help or "").split()
        assert words[:3] == line.split()[:3], name


def test_a_mistyped_command_is_told_the_one_that_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main.app(["ingst"])
    assert "ingest" in capsys.readouterr().err


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_what_is_written_from_the_code_is_in_step_with_it(name: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == WRITTEN[name], "run `make docs`"


def test_no_json_schema_lies_there_that_no_type_has() -> None:
    there = {f"schemas/json/{path.name}" for path in (ROOT / "schemas" / "json").iterdir()}
    assert there == {name for name in WRITTEN if name.startswith("schemas/")}


def test_the_reference_has_every_command() -> None:
    text = reference.commands()
    for command in ("ingest", "trajectory show", "ratings import", "outcomes import", "metrics", "agreement"):
        assert f" coaudit {command}\n" in text


def _data_files() -> set[str]:
    """The files that are no code and belong into the wheel, by the patterns of pyproject.toml."""
    listed = subprocess.run(
        ["git", "ls-files", *house.TOP], cwd=ROOT, capture_output=True, text=True, check=True
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
    tracked = {
        path
        for path in (str(p.relative_to(ROOT)) for p in house.modules().values())
        if path in listed.splitlines()
    }
    expected = {
        name if name.startswith("coaudit/") else f"coaudit/{name}" for name in (tracked | _data_files())
    }
    assert inside == expected
