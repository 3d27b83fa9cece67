"""The picture of the structure: `python -m tests.structure.draw` writes docs/structure.svg."""

from __future__ import annotations

from html import escape

from tests.conftest import ROOT
from tests.structure import house

WIDTH, HEIGHT, GAP, MARGIN = 150, 46, 64, 24
SAYS = {
    "coaudit": "import coaudit",
    "pipeline.__main__": "python -m",
    "pipeline.cli": "a file a command",
    "dashboards": "Streamlit pages",
    "pipeline.follow": "what happens now",
    "pipeline.report": "tables, methods",
    "pipeline.annotate": "people's labels",
    "pipeline.audit": "the way from Python",
    "pipeline.judge": "raters over the store",
    "pipeline.ingest": "logs into the store",
    "pipeline.analyze": "numbers out of it",
    "pipeline.advise": "when people step in",
    "pipeline.systems": "a folder a system",
    "pipeline.store": "ledgers, tables",
    "judges": "unit in, rating out",
    "annotation": "Label Studio, statistics",
    "pipeline.units": "what is rated as one",
    "pipeline.codebooks": "where they are",
    "schemas": "the types",
    "pipeline.errors": "what went wrong",
    "data": "samples",
}
"""Room -> a few words on it."""


def places() -> dict[str, tuple[int, int]]:
    """Room -> the left upper corner of its box; a layer a row, each row in the middle."""
    most = max(len(rooms) for rooms in house.LAYERS)
    wide = most * WIDTH + (most - 1) * GAP
    corners = {}
    for row, rooms in enumerate(house.LAYERS):
        left = MARGIN + (wide - len(rooms) * WIDTH - (len(rooms) - 1) * GAP) // 2
        for column, room in enumerate(rooms):
            corners[room] = (left + column * (WIDTH + GAP), MARGIN + row * (HEIGHT + GAP))
    return corners


def needed(arrows: set[tuple[str, str]]) -> list[tuple[str, str]]:
    """The arrows that no longer way implies."""
    below: dict[str, set[str]] = {}
    for start, end in arrows:
        below.setdefault(start, set()).add(end)

    def reaches(start: str, end: str) -> bool:
        return end in below.get(start, ()) or any(reaches(room, end) for room in below.get(start, ()))

    return sorted((a, b) for a, b in arrows if not any(reaches(room, b) for room in below[a] - {b}))


def svg() -> str:
    """The whole picture."""
    corners = places()
    right = max(x for x, _ in corners.values()) + WIDTH + MARGIN
    bottom = max(y for _, y in corners.values()) + HEIGHT + MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {right} {bottom}" '
        'font-family="sans-serif" font-size="12">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="#5b6b7a"/></marker></defs>',
        f'<rect width="{right}" height="{bottom}" fill="#ffffff"/>',
    ]
    for start, end in needed(house.arrows()):
        (x1, y1), (x2, y2) = corners[start], corners[end]
        lines.append(
            f'<line x1="{x1 + WIDTH // 2}" y1="{y1 + HEIGHT}" x2="{x2 + WIDTH // 2}" y2="{y2}" '
            'stroke="#5b6b7a" marker-end="url(#tip)"/>'
        )
    for room, (x, y) in corners.items():
        middle = x + WIDTH // 2
        lines.append(
            f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="5" fill="#e8f0f6" '
            'stroke="#33516b"/>'
        )
        lines.append(
            f'<text x="{middle}" y="{y + 19}" text-anchor="middle" font-weight="bold" fill="#16222d">'
            f"{escape(room.replace('pipeline.', ''))}</text>"
        )
        lines.append(
            f'<text x="{middle}" y="{y + 36}" text-anchor="middle" fill="#3d4f5f">{escape(SAYS[room])}</text>'
        )
    return "\n".join([*lines, "</svg>\n"])


if __name__ == "__main__":
    (ROOT / "docs" / "structure.svg").write_text(svg(), encoding="utf-8")
