"""The app in a real browser: the main path, nothing asked of the outside, nothing run from a log."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.dashboards.conftest import started

pytestmark = pytest.mark.slow
PAGES = {
    "overview": "/",
    "process": "/process",
    "failures": "/failures",
    "trajectories": "/trajectory",
    "trajectory": "/trajectory?trajectory=env_tabular_analysis_8&event=3",
    "agreement": "/agreement",
    "efficiency": "/efficiency",
    "tables": "/tables",
    "compare": "/compare",
    "beside": "/compare?a=collaborative&b=situational_planning&code=C.2&found_by=judge-large",
    "cost": "/cost",
}
SETTLED = "document.querySelector('[data-testid=stApp]')?.dataset.testScriptState === 'notRunning'"


@pytest.fixture
def page(browser: Any) -> Any:
    """A page that fails the test on any request that leaves the machine, and on any script error."""
    found = browser.new_page(viewport={"width": 1440, "height": 1000}, color_scheme="light")
    outside: list[str] = []
    broken: list[str] = []

    def check(request: Any) -> None:
        if not re.match(r"(http|ws)://127\.0\.0\.1:|data:|blob:|about:", request.url):
            outside.append(request.url)

    found.on("request", check)
    found.on("pageerror", lambda error: broken.append(str(error)))
    found.on("dialog", lambda dialog: broken.append(f"dialog: {dialog.message}"))
    yield found
    found.close()
    assert outside == []
    assert broken == []


def _open(page: Any, address: str) -> None:
    page.goto(address)
    page.wait_for_selector("h1")
    _settle(page)


def _settle(page: Any) -> None:
    page.wait_for_function(SETTLED, timeout=60_000)
    assert page.locator("[data-testid=stException], [data-testid=stAlertContentError]").count() == 0


def _shot(page: Any, folder: Path, name: str) -> None:
    """A picture of the whole page, to be looked at by whoever changes it."""
    height = page.evaluate("document.querySelector('[data-testid=stMainBlockContainer]').scrollHeight")
    page.set_viewport_size({"width": 1440, "height": max(900, min(6000, height + 60))})
    page.wait_for_timeout(800)
    page.screenshot(path=folder / f"{name}.png")
    page.set_viewport_size({"width": 1440, "height": 1000})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_draws_and_asks_nothing_of_the_outside(
    app: str, page: Any, tmp_path: Path, scheme: str
) -> None:
    folder = Path(os.environ.get("COAUDIT_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    page.emulate_media(color_scheme=scheme)
    for name, path in PAGES.items():
        _open(page, app + path)
        _shot(page, folder, f"{name}-{scheme}")
        assert (folder / f"{name}-{scheme}.png").stat().st_size > 10_000


def test_from_the_overview_a_failure_cell_leads_to_the_cited_event(app: str, page: Any) -> None:
    _open(page, app)
    page.get_by_role("link", name="Failures").click()
    page.wait_for_selector("h1:has-text('Failures')")
    _settle(page)
    row = page.locator("tr", has_text="Unannounced change")
    row.get_by_role("link").filter(has_not_text=re.compile("^0 %$")).first.click()
    page.wait_for_selector("h1:has-text('Trajectories')")
    _settle(page)
    page.locator("td a").first.click()
    page.wait_for_selector(".ca-timeline .aim")
    _settle(page)
    aimed = page.locator(".ca-timeline .aim")
    assert aimed.count() == 1
    assert "cited" in (aimed.get_attribute("class") or "")
    assert "C.2" in page.locator(".ca-timeline .side").all_inner_texts()[int(aimed.get_attribute("data-seq"))]
    page.wait_for_function(
        "(() => { const r = document.querySelector('.aim').getBoundingClientRect();"
        " return r.top >= 0 && r.top < innerHeight; })()"
    )


def test_a_transcript_is_read_with_keys_and_its_outline_leads_to_events(app: str, page: Any) -> None:
    _open(page, f"{app}/trajectory?trajectory=env_tabular_analysis_8")
    page.wait_for_selector(".ca-timeline .found")
    seqs = page.locator(".ca-timeline .found").evaluate_all("all => all.map(e => e.id)")
    for key, focused in (("n", seqs[0]), ("n", seqs[1]), ("p", seqs[0]), ("j", None), ("k", seqs[0])):
        page.keyboard.press(key)
        if focused:
            assert page.evaluate("document.activeElement.id") == focused
    page.get_by_label("Search in this session").focus()
    page.keyboard.press("j")
    assert page.get_by_label("Search in this session").input_value() == "j", (
        "a key that is typed moves nothing"
    )
    page.locator(".outline a").last.click()
    page.wait_for_function(
        f"(() => {{ const r = document.querySelector('#{seqs[-1]}').getBoundingClientRect();"
        " return r.top >= 0 && r.top < innerHeight; })()"
    )


def test_filters_keep_their_place_in_the_address(app: str, page: Any) -> None:
    _open(page, f"{app}/?task=related_work")
    page.get_by_role("link", name="Process").click()
    page.wait_for_selector("h1:has-text('Process')")
    _settle(page)
    assert "task=related_work" in page.url


def test_a_hostile_session_is_shown_as_the_text_it_is(app: str, page: Any) -> None:
    _open(page, f"{app}/trajectory?trajectory=hostile0000000001&event=1")
    page.wait_for_selector(".ca-timeline .aim")
    shown = page.locator(".ca-timeline").inner_text()
    assert "<script>window.pwned = 1</script>" in shown
    assert "**bold** [link](http://evil.example/)" in shown
    assert page.evaluate("window.pwned") is None
    assert page.locator("img[src*=evil], a[href*=evil], a[href^='javascript']").count() == 0


def test_every_control_has_a_label_and_links_take_the_focus(app: str, page: Any) -> None:
    for path in PAGES.values():
        _open(page, app + path)
        nameless = page.evaluate(
            """[...document.querySelectorAll('[data-testid=stMain] input, [data-testid=stMain] button')]
            .filter(e => e.offsetParent && !e.labels?.length && !e.getAttribute('aria-label')
                && !e.textContent.trim() && !e.title && !e.closest('[aria-label]'))
            .map(e => e.outerHTML.slice(0, 200))"""
        )
        assert nameless == []


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_breaks_a_rule_of_accessibility(app: str, page: Any, scheme: str, width: int) -> None:
    axe = os.environ.get("COAUDIT_AXE")
    if not axe:
        pytest.skip("COAUDIT_AXE names no axe.min.js (npm pack axe-core)")
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 1000})
    broken = []
    for name, path in PAGES.items():
        _open(page, app + path)
        page.wait_for_timeout(500)
        page.add_script_tag(content=Path(axe).read_text(encoding="utf-8"))
        result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        broken += [(name, row["id"], row["nodes"][0]["html"][:200]) for row in result["violations"]]
    assert broken == []


def test_pages_reload_without_an_error_while_another_process_writes(copied: Path, page: Any) -> None:
    app, address = started(copied)
    writer = subprocess.Popen([sys.executable, "-P", "-c", WRITER, str(copied)], stderr=subprocess.PIPE)
    try:
        for path in [*PAGES.values(), *PAGES.values()]:
            _open(page, address + path)
        assert writer.poll() is None, writer.stderr and writer.stderr.read()
    finally:
        for process in (writer, app):
            process.terminate()
            process.communicate(timeout=10)


WRITER = """
import sys, time
from pathlib import Path
from coaudit.pipeline.ingest.measure import save
from coaudit.pipeline.store import Store
from coaudit.pipeline.store.workspace import Workspace
store = Store(Workspace(Path(sys.argv[1])))
with store.reading() as connection:
    ids = [row[0] for row in connection.execute("SELECT id FROM trajectories").fetchall()]
    known = store.load(connection, ids, states=True)
for number in range(10_000):
    new = {"id": f"new{number:013d}", "native_id": f"new_{number}"}
    fresh = known[number % len(known)].model_copy(update=new)
    with store.writing() as connection:
        save(store, [fresh], connection)
    time.sleep(0.2)
"""
