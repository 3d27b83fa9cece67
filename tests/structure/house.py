"""The product's structure, read from its files alone: which module imports which, on which layer."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.conftest import ROOT

TOP = ("coaudit", "schemas", "judges", "annotation", "pipeline", "dashboards", "data")
LAYERS: tuple[tuple[str, ...], ...] = (
    ("coaudit", "pipeline.__main__"),
    ("pipeline.cli", "dashboards"),
    ("pipeline.follow", "pipeline.report", "pipeline.annotate", "pipeline.audit"),
    ("pipeline.judge", "pipeline.ingest", "pipeline.analyze", "pipeline.advise"),
    ("pipeline.systems", "pipeline.store"),
    ("judges", "annotation"),
    ("pipeline.units", "pipeline.codebooks"),
    ("schemas", "pipeline.errors", "data"),
)
"""From the roof to the ground. A room sees those on lower layers, never its neighbours."""
FORMATS = ("draft", "mapped", "traces", "files", "messages", "fields")
"""The rooms of pipeline.systems.formats, from the roof to the ground."""
PARTICIPLES = frozenset(
    """
    acted added agreed answered asked became begun blotted born broken brought built called capped
    carried chosen claimed collected compared converted copied counted decoded delivered done drawn
    dropped earned fetched filled finished folded followed forced found given gone got grown halted
    heard held ignored inserted judged kept known listed loaded logged looked lost made marked matched
    meant mended named needed offered opened parsed picked placed planned planted produced
    proposed pulled pushed quoted raised rated reached recorded removed renamed repeated replaced
    returned said sampled saved seen sent served settled sheltered shown sought spent spoilt spoken
    stated stopped stored stripped tagged taken tested told tried turned unpacked wanted weighed wished
    written
    """.split()  # noqa: SIM905
)
"""What no variable is called: it says what happened to a value, not what it is. Terms of statistics such as
observed and weighted are not here."""


@dataclass(frozen=True)
class Import:
    """One name that a module imports from another of ours."""

    module: str
    target: str
    """The module it comes from; a package where a face hands it on."""
    name: str
    line: int
    late: bool
    """Inside a function."""
    typing: bool
    """Only for type checkers."""


@cache
def modules() -> dict[str, Path]:
    """Dotted name without `coaudit.` -> file, of every module of the product."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for top in TOP
        for path in sorted((ROOT / top).rglob("*.py"))
    }


@cache
def tree_of(module: str) -> ast.Module:
    """Its syntax tree."""
    return ast.parse(modules()[module].read_text(encoding="utf-8"))


@cache
def imports() -> tuple[Import, ...]:
    """Every import of our own between modules of the product."""
    return tuple(one for module in modules() for one in _imports(module))


def _imports(module: str) -> Iterator[Import]:
    late = {
        id(inner)
        for node in ast.walk(tree_of(module))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for inner in ast.walk(node)
    }
    typing = {
        id(inner)
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree_of(module)):
        if not isinstance(node, ast.ImportFrom):
            continue
        base = _base(module, node)
        if base is None:
            continue
        for name in node.names:
            inner = f"{base}.{name.name}" if base else name.name
            found = (inner, "") if inner in modules() else (base, name.name)
            yield Import(module, *found, node.lineno, id(node) in late, id(node) in typing)


def _base(module: str, node: ast.ImportFrom) -> str | None:
    """The module that a `from` names, without `coaudit.`; None for somebody else's."""
    if not node.level:
        name = node.module or ""
        return name.removeprefix("coaudit.") if name.startswith("coaudit.") else None
    is_package = modules()[module].name == "__init__.py"
    parts = ["coaudit", *([] if module == "coaudit" else module.split("."))]
    above = parts if is_package and node.level == 1 else parts[: len(parts) - node.level + is_package]
    return ".".join([*above[1:], *([node.module] if node.module else [])])


def variables() -> Iterator[tuple[str, int, str]]:
    """Module, line and name of every parameter and local variable of the product's functions."""
    for module in modules():
        for node in ast.walk(tree_of(module)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                        yield module, inner.lineno, inner.id
                    elif isinstance(inner, ast.arg):
                        yield module, inner.lineno, inner.arg


def room(module: str) -> str:
    """The room of LAYERS that a module lies in; the package itself for one that only holds others."""
    rooms = [name for layer in LAYERS for name in layer]
    return next((name for name in rooms if module == name or module.startswith(f"{name}.")), module)


def layer(module: str) -> int:
    """0 is the roof."""
    name = room(module)
    return next(number for number, rooms in enumerate(LAYERS) if name in rooms)


def arrows() -> set[tuple[str, str]]:
    """Room -> room, for every import that runs between two."""
    pairs = {(room(one.module), room(one.target)) for one in imports()}
    return {(a, b) for a, b in pairs if a != b and b != "pipeline"}


def circles() -> list[list[str]]:
    """Groups of modules that import each other in a loop when they are loaded (Tarjan)."""
    graph: dict[str, set[str]] = {module: set() for module in modules()}
    for one in imports():
        if not one.late and not one.typing:
            graph[one.module].add(one.target)
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        order[node] = low[node] = len(order)
        stack.append(node)
        for target in graph.get(node, ()):
            if target not in order:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], order[target])
        if low[node] == order[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(group) > 1:
                found.append(sorted(group))

    for module in graph:
        if module not in order:
            visit(module)
    return found
