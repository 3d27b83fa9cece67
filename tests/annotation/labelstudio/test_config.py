"""What an annotator sees: a page of a real Label Studio in a headless Chromium."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coaudit.annotation.labelstudio import Server
from coaudit.annotation.labelstudio.config import label_config
from coaudit.pipeline import codebooks, units
from coaudit.pipeline.annotate import draw, pull
from coaudit.pipeline.ingest.measure import save
from coaudit.pipeline.store import Store
from tests.annotation.labelstudio.running import ADMIN, PASSWORD, Running
from tests.annotation.labelstudio.test_server import human, pushed
from tests.conftest import needs
from tests.judges.teams import team

pytestmark = pytest.mark.slow
HOSTILE = (
    "<img src=x onerror=\"document.title='broken in'\"> <b id=bold>bold</b> {{7*7}} $transcript \u202e \x00"
)


@pytest.fixture
def page(label_studio: Running) -> Iterator[Any]:
    needs("chromium", "the annotation page is looked at in a browser")
    from playwright.sync_api import sync_playwright

    flags = ["--no-sandbox", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        opened = browser.new_page(viewport={"width": 1600, "height": 1000})
        opened.goto(f"{label_studio.url}/user/login/")
        opened.fill("input[name=email]", ADMIN)
        opened.fill("input[name=password]", PASSWORD)
        opened.click("button[type=submit]")
        yield opened
        browser.close()


def look(page: Any, name: str) -> None:
    """Keep a screenshot where somebody wants to see it."""
    if folder := os.environ.get("COAUDIT_SCREENSHOTS"):
        page.screenshot(path=str(Path(folder) / f"{name}.png"))


def opened(page: Any, label_studio: Running, project: int, task: int) -> Any:
    page.goto(f"{label_studio.url}/projects/{project}/data?task={task}")
    page.wait_for_selector(".coaudit-page")
    return page.locator(".coaudit-page")


def test_the_page_shows_the_transcript_the_marked_unit_and_the_choices_and_markup_stays_text(
    store: Store, server: Server, label_studio: Running, page: Any
) -> None:
    with store.writing() as connection:
        query = "SELECT trajectory_id, event FROM units WHERE kind = 'utterance' AND NOT opening ORDER BY ALL"
        trajectory, event = connection.execute(query).fetchall()[0]
        place = [HOSTILE, trajectory, event]
        connection.execute("UPDATE events SET text = ? WHERE trajectory_id = ? AND seq = ?", place)
        changed = store.load(connection, [trajectory])[0]
        unit = next(u for u in units.cut(changed, codebooks.load("initiative")) if u.event == event)
        query = "UPDATE units SET hash = ? WHERE trajectory_id = ? AND event = ? AND kind = 'utterance'"
        connection.execute(query, [unit.hash, trajectory, event])
    wish = draw.Wish(codebooks=("initiative",), name="page", size=10_000, annotators=1)
    project = pushed(store, server, draw.draw(store, wish)).project
    task = next(
        t
        for t in label_studio.tasks(project)
        if (t["data"]["trajectory"], t["data"]["event"]) == (trajectory, event)
    )
    shown = opened(page, label_studio, project, task["id"])
    page.wait_for_selector("text=RATE THIS")
    look(page, "initiative")
    assert page.title() != "broken in"
    assert page.locator("#bold").count() == 0 and shown.locator("img[src=x]").count() == 0
    for part in (shown.locator(".coaudit-log"), shown.locator(".coaudit-unit")):
        text = part.inner_text()
        assert "▶ RATE THIS" in text and "<b id=bold>bold</b> {{7*7}} $transcript \\u202e \\u0000" in text
    for label in ("yes", "no", "unclear"):
        assert shown.get_by_role("radio", name=label).count() == 1


def test_a_long_session_fits_the_screen_with_its_unit_in_view_and_no_empty_panels(
    store: Store, server: Server, label_studio: Running, page: Any
) -> None:
    turns = [(("human", "agent")[n % 2], f"Message {n} " + "of many words " * (n % 40)) for n in range(320)]
    with store.writing() as connection:
        log = team(*turns, key="long").model_copy(update={"task": "long"})
        save(store, [log], connection)
    wish = draw.Wish(
        codebooks=("initiative",), name="long", size=999, annotators=1, where=(("task", "long"),)
    )
    project = pushed(store, server, draw.draw(store, wish)).project
    task = next(t for t in label_studio.tasks(project) if t["data"]["event"] == 240)
    shown = opened(page, label_studio, project, task["id"])
    page.wait_for_selector("text=RATE THIS")
    look(page, "long")
    assert shown.bounding_box()["height"] < 1000, "the window"
    unit, log_box = (shown.locator(part).bounding_box() for part in (".coaudit-unit", ".coaudit-log"))
    assert unit["y"] + unit["height"] < 1000 and log_box["width"] > 600
    assert not page.get_by_text("Labeled regions will appear here").is_visible()
    assert "Message 2 " not in shown.inner_text()
    page.get_by_text("Earlier in the log").click()
    page.wait_for_selector("text=Message 2 of many words")


def test_a_failure_mode_is_marked_in_the_log_and_comes_back_with_its_event(
    store: Store, server: Server, label_studio: Running, page: Any
) -> None:
    sample = draw.draw(store, draw.Wish(codebooks=("failures",), name="marked", size=2, annotators=1))
    project = pushed(store, server, sample).project
    task = label_studio.tasks(project)[0]
    shown = opened(page, label_studio, project, task["id"])
    page.wait_for_selector("text=C.1 Silent start")
    assert shown.locator("[class*='label']").filter(has_text="P.3 Preference not carried over").count()
    whole = page.locator("button[aria-label^='Label whole utterance']").nth(1)
    for _ in range(60):  # the page takes keys only once it has drawn itself
        if whole.is_enabled():
            break
        page.keyboard.press("1")
        page.wait_for_timeout(500)
    whole.click()
    page.get_by_text("I read the log to its end").click()
    look(page, "failures")
    with page.expect_response(lambda answer: "/annotations" in answer.url and answer.status == 201):
        page.get_by_role("button", name="Submit").click()
    assert pull.pull(store, server, sample).rated == 26
    (found,) = [row for row in human(store) if row["label"] == "present"]
    assert (found["code"], found["cites"]) == ("C.1", [task["data"]["seqs"][1]])
    assert sum(row["label"] == "absent" for row in human(store)) == 25


@pytest.mark.parametrize("name", ["collaborative_errors", "dilemmas", "team_faults", "related_work_quality"])
def test_a_question_about_the_log_shows_the_log_and_one_about_the_result_the_result(name: str) -> None:
    """Builders and cooks were rated beside an empty "What the team ended with", their log folded up."""
    text = label_config(codebooks.load(name))
    log, result = (text.index(f'value="${part}"') for part in ("transcript", "final"))
    is_of_result = name == "related_work_quality"
    assert (result < log) == is_of_result
    assert ("The log, from its beginning" in text) == is_of_result
