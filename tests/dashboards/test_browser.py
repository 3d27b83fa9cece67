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
MANY = {
    "overview": "/",
    "process": "/process",
    "failures": "/failures",
    "failures-all": "/failures?every=true",
    "trajectories": "/trajectory",
    "agreement": "/agreement",
    "efficiency": "/efficiency",
    "tables": "/tables",
    "compare": "/compare",
    "versions": "/compare?by=version",
    "cost": "/cost",
}
"""Pages over thirty conditions."""
SIDES = """['left', 'right'].map(
    side => [...document.querySelectorAll(`.ca-beside [data-side=${side}] .event`)].slice(0, 2).map(
        event => { const {left, right, top} = event.getBoundingClientRect(); return [left, right, top]; }))"""
"""Where the first two events of each side start, end and lie: in one look, for the page may be scrolling."""
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
    width = page.viewport_size["width"]
    height = page.evaluate("document.querySelector('[data-testid=stMainBlockContainer]').scrollHeight")
    page.set_viewport_size({"width": width, "height": max(900, min(6000, height + 60))})
    page.wait_for_timeout(500)
    page.screenshot(path=folder / f"{name}.png")
    page.set_viewport_size({"width": width, "height": 1000})


WIDE = """[...document.querySelectorAll('.ca')]
    .filter(e => e.offsetParent && e.scrollWidth > e.clientWidth + 1)
    .map(e => e.getAttribute('aria-label') || e.className)"""


@pytest.mark.parametrize("width, scheme", [(1440, "light"), (1440, "dark"), (390, "dark")])
@pytest.mark.parametrize("which", ["samples", "thirty conditions"])
def test_every_page_fits_breaks_no_rule_of_accessibility_and_asks_nothing_of_the_outside(
    request: pytest.FixtureRequest, page: Any, tmp_path: Path, which: str, width: int, scheme: str
) -> None:
    address = request.getfixturevalue("app" if which == "samples" else "many_app")
    folder = Path(os.environ.get("COAUDIT_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 1000})
    broken = []
    for name, path in (PAGES if which == "samples" else MANY).items():
        _open(page, address + path)
        _shot(page, folder, f"{name}-{which.replace(' ', '-')}-{width}-{scheme}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        # On a narrow screen a table is moved within its own frame.
        broken += [(name, "wide", what) for what in page.evaluate(WIDE) if width > 1000]
        broken += [(name, rule, where) for rule, where in _violations(page)]
    assert broken == []


def test_a_word_longer_than_a_line_is_broken_in_sentences(app: str, page: Any) -> None:
    _open(page, app)
    page.wait_for_selector(".ca p.said")  # the answers come after the page has settled
    page.evaluate("document.querySelector('.ca p.said').textContent = 'Donaudampfschifffahrt'.repeat(30)")
    assert page.evaluate(WIDE) == []


def test_charts_stand_one_below_the_other_where_two_would_be_too_narrow(app: str, page: Any) -> None:
    page.set_viewport_size({"width": 800, "height": 1000})
    _open(page, app + "/process")
    # What draws the charts is loaded after the page has settled.
    page.wait_for_function("document.querySelectorAll('.stVegaLiteChart :is(canvas, svg)').length > 1")
    widths = "[...document.querySelectorAll('.stVegaLiteChart')].map(e => Math.round(e.clientWidth))"
    page.wait_for_function(f"new Set({widths}).size === 1")


def _violations(page: Any) -> list[tuple[str, str]]:
    """Rules of axe-core that the page breaks, each with the first place."""
    from axe_playwright_python.sync_playwright import Axe

    rows = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [(row["id"], row["nodes"][0]["html"][:200]) for row in rows]


def test_the_first_session_is_reached_by_keys_in_under_ten_steps(app: str, page: Any) -> None:
    _open(page, app)
    steps = _tabs(page, "document.activeElement.textContent.trim() === 'Trajectory'")
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:has-text('Trajectories')")
    _settle(page)
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.matches('.ca.list tr:first-child td a')")
    page.keyboard.press("Enter")
    page.wait_for_selector(".ca-timeline")
    assert steps + 3 < 10, "Enter, j and Enter come to the steps of Tab"


def _tabs(page: Any, there: str) -> int:
    """How often Tab is pressed until the focus is there."""
    for steps in range(1, 40):
        page.keyboard.press("Tab")
        if page.evaluate(there):
            return steps
    raise AssertionError(f"the focus never came where {there}")


QUESTIONS = {
    "which modes differ most": (["Compare"], "Difference"),
    "the five worst sessions": (["Trajectory"], "Found"),
    "where judge and people differ": (["Agreement"], "Disagreements to discuss"),
    "rates by version": (["By version"], "v2"),
    "what it cost": (["Live and cost"], "What judging took"),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_answered_within_two_clicks(many_app: str, page: Any, question: str) -> None:
    clicks, answer = QUESTIONS[question]
    _open(page, many_app)
    for name in clicks:
        page.get_by_role("link", name=name, exact=True).last.click()
        page.wait_for_function("document.querySelector('h1')?.textContent !== 'Overview'")
        _settle(page)
    assert len(clicks) <= 2
    page.get_by_text(answer, exact=True).first.wait_for()


def test_two_sessions_stand_beside_each_other_lined_up_and_keys_stay_on_one_side(app: str, page: Any) -> None:
    _open(page, app + PAGES["beside"])
    page.wait_for_selector(".ca-beside .aim")
    frame = page.locator(".ca-beside")
    left, right = (frame.locator(f"[data-side={side}] .event") for side in ("left", "right"))
    for (_, one_end, one_top), (two_start, _, two_top) in zip(*page.evaluate(SIDES), strict=True):
        assert one_end < two_start and abs(one_top - two_top) < 2
    page.wait_for_function(
        "(() => { const box = document.querySelector('.ca-beside'), aim = box.querySelector('.aim');"
        " const a = aim.getBoundingClientRect(), b = box.getBoundingClientRect();"
        " return a.top >= b.top && a.top < b.bottom; })()"
    )
    left.first.focus()
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.id") == "left-e1", "the next on its side, not beside it"
    right.last.focus()
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.id").startswith("right-"), "the last event has no next one"
    left.first.focus()
    page.keyboard.press("n")
    assert page.evaluate("document.activeElement.id").startswith("left-")


def test_from_the_overview_a_failure_cell_leads_to_the_cited_event(app: str, page: Any) -> None:
    _open(page, app)
    page.get_by_role("link", name="Failures").click()
    page.wait_for_selector("h1:has-text('Failures')")
    _settle(page)
    page.locator("td[title^='C.2 Unannounced change, All'] a").click()
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


def test_pages_reload_without_an_error_while_another_process_writes(copied: Path, page: Any) -> None:
    app, address = started(copied)
    writer = subprocess.Popen([sys.executable, "-P", "-c", WRITER, str(copied)], stderr=subprocess.PIPE)
    try:
        for path in [*PAGES.values(), *PAGES.values()]:
            _open(page, address + path)
            assert page.get_by_text("Another process is writing").count() == 0, path
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
