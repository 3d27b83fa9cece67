"""What the documents say is so: the examples of docs/formats.md, the paths that CONTRIBUTING.md names."""

from __future__ import annotations

import json
import re
from math import inf
from pathlib import Path

import pytest

from coaudit.pipeline.analyze.totals import RATES
from coaudit.pipeline.systems.formats.fields import mapping
from coaudit.schemas.metric import BOUNDS
from tests.conftest import ROOT, Coaudit
from tests.pipeline.systems.formats.logs import call_and_answer, one, outline, read, write_lines

PAGE = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
EXAMPLES = dict(re.findall(r"<!-- example: (\w+) -->\n```\w+\n(.*?)```", PAGE, re.DOTALL))


@pytest.mark.parametrize("system", ["coaudit", "chat", "otlp", "openinference", "mapped"])
def test_an_example_of_the_page_is_a_trajectory_of_a_human_and_an_agent(tmp_path: Path, system: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(EXAMPLES[system], encoding="utf-8")
    found = one(system, path, map=EXAMPLES["map"] if system == "mapped" else None)
    assert [p.kind for p in found.participants if p.kind != "environment"] == ["human", "agent"]
    assert next(e.text for e in found.events if e.kind == "message") == "To Ulm, please."


def test_the_mapping_of_the_page_names_every_field_there_is() -> None:
    example = EXAMPLES["map"]
    for model in (mapping.Mapping, mapping.EventFields, mapping.HeadFields, mapping.Constants):
        assert [name for name in model.model_fields if not re.search(rf"\b{name}\b", example)] == []


def test_what_the_page_maps_is_what_comes_out(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(EXAMPLES["mapped"], encoding="utf-8")
    found = one("mapped", path, map=EXAMPLES["map"])
    assert outline(found.events) == [("Ada", "message", "To Ulm, please."), ("Bot", "action", "book")]
    assert (found.condition, found.tags, found.setting) == ("b", {"group": "g"}, "real")
    booked = found.events[1]
    assert booked.action and booked.action.arguments == {"seats": 2, "target": "train"}


def test_the_rules_of_the_page_say_who_speaks_and_what_failed(tmp_path: Path) -> None:
    told = [
        {"role": "user", "content": "Go."},
        *call_and_answer("a", "Sorry, no."),
        *call_and_answer("b", "Fine."),
    ]
    told.append({"role": "user", "content": "[shell] 3 files"})
    path = write_lines(tmp_path / "log.jsonl", {"messages": told})
    found = one("chat", path, map=EXAMPLES["rules"])
    assert [e.status for e in found.events if e.kind == "action"] == ["failed", "succeeded"]
    assert outline(found.events)[-1] == ("shell", "note", "[shell] 3 files")


@pytest.mark.parametrize(
    ("example", "name", "log"),
    [
        (
            "messages",
            "log.json",
            '[{"task_id": 1, "trial": 0, "traj": [{"role": "user", "content": "To Ulm, please."}]}]',
        ),
        (
            "spans",
            "log.jsonl",
            '{"trace_id": "t", "id": "1", "run_type": "llm", "inputs": {"prompt": "To Ulm, please."}}\n',
        ),
        ("turns", "log.txt", "User: To Ulm, please.\nAssistant: Done."),
        ("pairs", "log.csv", 'question,answer\n"To Ulm, please.",Done.\n'),
    ],
)
def test_a_mapping_of_the_page_reads_what_it_is_for(
    tmp_path: Path, example: str, name: str, log: str
) -> None:
    path = tmp_path / name
    path.write_text(log, encoding="utf-8")
    trajectory = one("mapped", path, map=EXAMPLES[example])
    first = trajectory.events[0]
    kinds = {person.name: person.kind for person in trajectory.participants}
    assert (first.text, kinds[first.actor]) == ("To Ulm, please.", "human")


def test_a_record_of_two_sessions_is_both_as_the_page_says(tmp_path: Path) -> None:
    talk = [{"role": "user", "content": "To Ulm, please."}]
    path = write_lines(
        tmp_path / "log.jsonl", {"conversation_a": talk, "conversation_b": talk, "winner": "model_b"}
    )
    found, wrong = read("mapped", path, map=EXAMPLES["sides"])
    assert wrong == [] and [run.native_id for run in found] == ["1/a", "1/b"]
    assert [run.outcomes[0].value for run in found] == [0, 1]


def test_rows_with_what_each_said_are_one_session_as_the_page_says(tmp_path: Path) -> None:
    rows = [{"session": "s1", "question": f"Turn {n}.", "answer": None if n else "Yes."} for n in range(2)]
    trajectory = one("mapped", write_lines(tmp_path / "log.jsonl", *rows), map=EXAMPLES["rounds"])
    assert [(e.actor, e.text) for e in trajectory.events] == [
        ("user", "Turn 0."),
        ("assistant", "Yes."),
        ("user", "Turn 1."),
    ]


def test_turns_under_numbered_names_are_a_list_as_the_page_says(tmp_path: Path) -> None:
    said = [{"role": ("user", "assistant")[n % 2], "content": f"Turn {n}."} for n in range(11)]
    record = {"id": "a", **{f"message_{n}": said[n] for n in (10, *range(10))}, "message_11": None}
    trajectory = one("mapped", write_lines(tmp_path / "log.jsonl", record), map=EXAMPLES["numbered"])
    assert [event.text for event in trajectory.events] == [f"Turn {n}." for n in range(11)]


@pytest.mark.parametrize(("page", "least"), [("CONTRIBUTING.md", 30), ("docs/reliability.md", 8)])
def test_every_path_that_a_page_names_exists(page: str, least: int) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = re.findall(r"[`(]((?:\w+/)+[\w.]*)[`),]", text)
    assert len(named) > least
    assert [path for path in named if "NAME" not in path and not (ROOT / path).exists()] == []


def test_every_file_that_the_code_names_exists() -> None:
    rooms = ("pipeline", "judges", "annotation", "schemas", "dashboards", "tests", "benchmarks")
    pattern = re.compile(rf"(?<![\w./-])(?:docs|{'|'.join(rooms)})/[\w/.-]+\.(?:py|sql|toml|md)\b")
    files = [path for room in rooms for end in ("py", "sql") for path in (ROOT / room).rglob(f"*.{end}")]
    named = [(path, name) for path in files for name in pattern.findall(path.read_text(encoding="utf-8"))]
    assert len(named) > 20
    bases = (ROOT, ROOT / "tests")
    assert [
        (path.name, name)
        for path, name in named
        if "NAME" not in name and not any((base / name).exists() for base in bases)
    ] == []


@pytest.mark.long
def test_the_labels_of_the_page_are_ratings(tmp_path: Path, coaudit: Coaudit) -> None:
    page = (ROOT / "docs" / "labels.md").read_text(encoding="utf-8")
    examples = dict(re.findall(r"<!-- example: (\w+) -->\n```\w+\n(.*?)```", page, re.DOTALL))
    for name, text in (("labels.csv", examples["table"]), ("labels.toml", examples["labels"])):
        (tmp_path / name).write_text(text, encoding="utf-8")
    log = write_lines(tmp_path / "log.jsonl", {"id": "s1", "messages": [{"role": "user", "content": "Go."}]})
    coaudit("ingest", log)
    coaudit("ratings", "import", tmp_path / "labels.csv", "--map", tmp_path / "labels.toml")
    lines = [json.loads(line) for line in coaudit("ratings", "export").out.splitlines()]
    assert sorted((one["code"], one["rater"], one["label"]) for one in lines) == [
        ("C.1", "ann", "present"),
        ("P.3", "ann", "present"),
        ("P.3", "bob", "present"),
    ]


def test_the_page_of_metrics_has_every_metric_with_its_range() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    ranges = {inf: "{:g} and more", 1.0: "{:g} to 1", 0.5: "{:g} to 0.5", 5.0: "{:g} to 5"}
    expected = {
        RATES.get(name, name): "up to 1" if low == -inf else ranges[high].format(low).replace("-", "−")
        for name, (low, high) in BOUNDS.items()
    }
    assert dict(re.findall(r"^\| `(\w+)`(?: †)? \| ([^|]+) \|", page, re.MULTILINE)) == expected


def test_every_page_of_the_documents_is_linked_and_every_link_leads_somewhere() -> None:
    pages = sorted((ROOT / "docs").glob("*.md"))
    texts = {page: page.read_text(encoding="utf-8") for page in (ROOT / "README.md", *pages)}
    links = {page: re.findall(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)", text) for page, text in texts.items()}
    files = [(page, link) for page, names in links.items() for link in names if "://" not in link]
    assert [(page.name, link) for page, link in files if not (page.parent / link).exists()] == []
    named = {(page.parent / link).resolve() for page, link in files}
    assert [page.name for page in pages if page.resolve() not in named] == []
