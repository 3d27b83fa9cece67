"""Logs in which more people speak than a survey counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from coaudit.pipeline.systems.formats.draft.drafting import draft
from coaudit.pipeline.systems.formats.draft.unclear import open_questions
from tests.pipeline.systems.formats.draft.test_drafting import read_by_draft
from tests.pipeline.systems.formats.logs import outline
from tests.pipeline.systems.formats.shapes import as_json, as_lines, sentence

TALKS = 90


def talks_of(*speakers: str) -> list[dict[str, Any]]:
    """Talks in which these speak in turn, with the number of the talk in place of `#`."""
    return [
        {
            "dialog_id": n,
            "turns": [
                {"speaker": who.replace("#", str(n)), "text": sentence(k)}
                for k, who in enumerate(speakers * 2)
            ],
        }
        for n in range(TALKS)
    ]


def kinds_of(path: Path) -> list[dict[str, str]]:
    """Name -> kind, of each session that a draft reads."""
    return [{p.name: p.kind for p in run.participants} for run in read_by_draft(path)]


def test_each_of_many_speakers_is_a_participant_in_rows(tmp_path: Path) -> None:
    """Ubuntu's corpus, EmpatheticDialogues: two of hundreds talk, numbered anew or by name."""
    for key in ("from", "speaker_id", "speaker_idx"):
        rows = [
            {"conv_id": talk, "turn_idx": n, key: 7 * (2 * talk + n % 2) + 1, "utterance": sentence(n)}
            for talk in range(TALKS)
            for n in range(3)
        ]
        runs = read_by_draft(as_lines(tmp_path / f"{key}.jsonl", rows))
        assert [(p.name, p.kind) for p in runs[1].participants] == [("15", "human"), ("22", "human")]
        assert outline(runs[1].events) == [
            ("15", "message", sentence(0)),
            ("22", "message", sentence(1)),
            ("15", "message", sentence(2)),
        ]


def test_each_of_many_speakers_is_a_participant_in_lists_and_the_draft_says_what_they_are(
    tmp_path: Path,
) -> None:
    for who, kind in (("W", "human"), ("agent_", "agent")):
        talks = [
            {
                "dialog_id": n,
                "turns": [{"speaker": f"{who}{n}x{k % 2}", "text": sentence(k)} for k in range(4)],
            }
            for n in range(TALKS)
        ]
        path = as_json(tmp_path / f"{who}.json", talks)
        assert {p.kind for run in read_by_draft(path) for p in run.participants} == {kind}
        made = draft(path)
        assert [one for one in open_questions(made.survey, made.guess) if "too many to list" in one]


def test_names_of_many_beside_roles_tell_people_of_a_session_apart(tmp_path: Path) -> None:
    rows = [
        {
            "session_id": talk,
            "role": role,
            "username": f"{name}{talk}" if name else "",
            "content": sentence(n),
        }
        for talk in range(TALKS)
        for n, (role, name) in enumerate(
            (("user", "ann"), ("user", "bob"), ("assistant", ""), ("user", "ann"))
        )
    ]
    first = read_by_draft(as_lines(tmp_path / "rows.jsonl", rows))[0]
    assert [(p.name, p.kind) for p in first.participants] == [
        ("ann0", "human"),
        ("bob0", "human"),
        ("assistant", "agent"),
    ]


def test_one_of_many_people_whose_session_it_is_is_nobody_who_speaks(tmp_path: Path) -> None:
    rows = [
        {"worker_id": f"w{talk}", "sender": ("worker", "bot")[n % 2], "message": sentence(n)}
        for talk in range(TALKS)
        for n in range(4)
    ]
    first = read_by_draft(as_lines(tmp_path / "rows.jsonl", rows))[0]
    assert [(p.name, p.kind) for p in first.participants] == [("worker", "human"), ("bot", "agent")]


def test_ids_of_messages_and_what_is_known_of_who_speaks_are_nobody(tmp_path: Path) -> None:
    """Not with roles beside them, nor without."""
    for key, value in (("sender_message_id", "m{}_{}"), ("actor_id", "{}-{}"), ("author_country", "C{}{}")):
        for roles in (("user", "assistant"), (None, None)):
            rows = [
                {
                    "conv_id": talk,
                    "role": roles[n % 2],
                    key: value.format(talk, n % 3 if key == "author_country" else n),
                    "text": sentence(n),
                }
                for talk in range(TALKS)
                for n in range(4)
            ]
            path = as_lines(tmp_path / f"{key}{roles[0]}.jsonl", rows)
            assert len(read_by_draft(path)[0].participants) == 1 + (roles[0] is not None)


def test_names_that_people_and_agents_of_a_session_share_tell_nobody_apart(tmp_path: Path) -> None:
    rows = [
        {"conv_id": talk, "role": ("Student", "Bot")[n % 2], "login": f"w{talk}{n % 3}", "text": sentence(n)}
        for talk in range(TALKS)
        for n in range(6)
    ]
    assert kinds_of(as_lines(tmp_path / "rows.jsonl", rows))[0] == {"Student": "human", "Bot": "agent"}


def test_a_word_in_the_names_of_many_agents_says_it_of_those_that_a_look_does_not_show(
    tmp_path: Path,
) -> None:
    for number, names in enumerate(
        (("user_#", "bot_#"), ("Ann#", "Ann#-bot"), ("human#", "agent-#-a", "agent-#-b"))
    ):
        path = as_json(tmp_path / f"{number}.json", talks_of(*names))
        kinds = kinds_of(path)
        assert len(kinds) == TALKS
        for talk, own in enumerate(kinds):
            assert own == {
                name.replace("#", str(talk)): "agent" if "bot" in name or "agent" in name else "human"
                for name in names
            }
        made = draft(path)
        (doubt,) = [one for one in open_questions(made.survey, made.guess) if "too many to list" in one]
        assert "names with the word" in doubt and "in [[roles]]" in doubt


def test_whoever_talks_with_all_of_a_crowd_is_its_agent_unless_the_name_says_another(tmp_path: Path) -> None:
    for partner, kind in (("Helper v2", "agent"), ("AI Tutor", "agent"), ("human_agent_1", "human")):
        path = as_json(tmp_path / f"{partner}.json", talks_of(partner, "w#"))
        assert kinds_of(path)[7] == {partner: kind, "w7": "human"}
    made = draft(as_json(tmp_path / "guess.json", talks_of("Helper v2", "w#")))
    assert any("it is a guess: Helper v2 (agent)" in one for one in open_questions(made.survey, made.guess))


def test_a_user_agent_that_names_both_sides_speaks_and_so_do_numbers_of_two_turns(tmp_path: Path) -> None:
    for key, values in (("user_agent", ("user", "agent")), ("turn_id", (0, 1))):
        rows = [
            {"conv_id": talk, key: values[n], "text": sentence(n)} for talk in range(TALKS) for n in range(2)
        ]
        kinds = kinds_of(as_lines(tmp_path / f"{key}.jsonl", rows))[0]
        assert kinds == {str(values[0]): "human", str(values[1]): "agent"}


def test_numbers_of_turns_are_nobody(tmp_path: Path) -> None:
    rows = [
        {"conv_id": talk, "turn_idx": n, "speaker": ("a", "b")[n % 2], "utterance": sentence(n)}
        for talk in range(3)
        for n in range(4)
    ]
    made = draft(as_lines(tmp_path / "rows.jsonl", [{**row, "speaker": None} for row in rows]))
    assert made.guess.event.get("role") is None
    assert draft(as_lines(tmp_path / "both.jsonl", rows)).guess.event["role"] == "speaker"


def test_a_character_speaks_and_a_browser_is_no_agent(tmp_path: Path) -> None:
    acts = [
        {
            "character": ("Leader", "Follower")[n % 2],
            "type": ("order", "reply", "end")[n % 3],
            "text": sentence(n),
        }
        for n in range(6)
    ]
    games = [{"id": f"g{n}", "header": {"user-agent": "Mozilla"}, "actions": acts} for n in range(3)]
    made = draft(as_json(tmp_path / "games.json", games))
    assert made.guess.event["role"] == "actions[].character"
    assert "agent" not in made.guess.head
