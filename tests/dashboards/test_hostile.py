"""The hostile corpus through the pages: each text in every field, labels and reasons that quote it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from coaudit.pipeline.ingest import imports
from coaudit.pipeline.ingest import run as ingest
from coaudit.pipeline.store import Store, Workspace
from coaudit.pipeline.store.queries import trajectories
from coaudit.pipeline.systems import ReadOptions
from tests.conftest import needs
from tests.dashboards.conftest import started
from tests.dashboards.test_app import PAGES, _html, _run, _without_our_scripts
from tests.dashboards.test_browser import PAGES as ADDRESSES
from tests.dashboards.test_browser import _open, page
from tests.hostile import CORPUS, Tags, sessions

pytestmark = pytest.mark.slow
__all__ = ["page"]
ICON = ":material/home: www.example.org"


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace of the corpus, with labels of two people and a model whose reasons are the texts too."""
    folder = tmp_path_factory.mktemp("attacked")
    store = Store(Workspace(folder / "workspace"))
    done = ingest.ingest(store, [sessions(folder / "log.jsonl")], ReadOptions())
    assert not done.quarantined
    lines = [line for head in trajectories.heads(store) for line in _ratings(head["id"], head["condition"])]
    given = folder / "ratings.jsonl"
    given.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    assert not imports.ratings(store, given).quarantined
    return folder / "workspace"


def _ratings(trajectory: str, text: str) -> Iterator[dict[str, Any]]:
    said = {"quote": text, "rationale": text, "external": {"url": f"javascript:alert(3)//{text}"}}
    for rater, kind in (("ann", "human"), ("ben", "human"), ("judge", "llm")):
        found = {"trajectory": trajectory, "codebook": "failures", "code": "C.2", "rater": rater}
        yield {**found, "rater_kind": kind, "label": "present", "cites": [1], **said}
        label = "yes" if rater == "ann" else "no"
        book = {"codebook": "initiative", "code": "initiative", "event": 1}
        yield {**found, **book, "rater_kind": kind, "label": label, **said}


@pytest.fixture
def there(attacked: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COAUDIT_WORKSPACE", str(attacked))
    return attacked


def addresses(workspace: Path) -> list[tuple[str, dict[str, str]]]:
    """Every page as it opens, a page of each session, two beside each other, filters that are the texts."""
    ids = [head["id"] for head in trajectories.heads(Store(Workspace(workspace), read_only=True))]
    shown = [("trajectory", {"trajectory": one, "event": "1"}) for one in ids]
    beside = [("compare", {"left": a, "right": b, "code": "C.2"}) for a, b in pairwise(ids[:3])]
    chosen = [(name, {"condition": text, "task": text}) for name in PAGES[:3] for text in CORPUS[:3]]
    asked = [("trajectory", {"trajectory": text, "event": text, "code": text}) for text in CORPUS]
    asked += [("compare", {name: text}) for name in ("code", "sort") for text in (*CORPUS, ICON)]
    return [*((name, {}) for name in PAGES), *shown, *beside, *chosen, *asked]


def test_no_page_breaks_or_takes_a_text_for_a_tag_a_picture_or_a_script(there: Path) -> None:
    drawn: dict[str, str] = {}
    heads: defaultdict[str, set[str]] = defaultdict(set)
    for name, parameters in addresses(there):
        test = _run(name, **parameters)
        drawn[name] = drawn.get(name, "") + _html(test)
        assert not test.exception, (name, parameters)
        tags = Tags(_without_our_scripts(_html(test)))
        assert not tags.names & {"script", "img", "iframe", "object", "form"}, (name, parameters)
        assert not {one for one in tags.attributes if one.startswith("on")}, (name, parameters)
        assert not [one for one in tags.links if "javascript:" in one or "//" in one], (name, parameters)
        written = [one.value for kind in (test.markdown, test.caption, test.title) for one in kind]
        written += [one.value for kind in (test.info, test.warning, test.error, test.header) for one in kind]
        assert not [one for one in written if "![x](" in one or "](javascript" in one], (name, parameters)
        heads[name].update(one.value for one in test.header)
    # An escape keeps neither `:material/home:` from being an icon nor an address from being a link.
    assert "Beside each other" in heads["compare"]
    assert not [one for own in heads.values() for one in own if "material" in one]
    shown = {name for name, html in drawn.items() if "&lt;script&gt;alert(1)" in html}
    assert shown >= {"overview", "process", "trajectory", "compare"}, "the texts are there, as text"


def test_in_a_browser_nothing_of_it_runs_or_is_fetched(attacked: Path, page: Any) -> None:
    needs("chromium", "the browser tests drive it")
    process, address = started(attacked)
    try:
        ids = [head["id"] for head in trajectories.heads(Store(Workspace(attacked), read_only=True))]
        shown = [f"/trajectory?trajectory={one}&event=1" for one in ids]
        for path in [*ADDRESSES.values(), *shown]:
            _open(page, address + path)
            assert page.locator("[data-testid=stException]").count() == 0, path
            assert page.locator("[data-testid=stMain] img, a[href^='javascript']").count() == 0, path
    finally:
        process.terminate()
        process.wait(10)
