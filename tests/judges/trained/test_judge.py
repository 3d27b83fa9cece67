"""A trained judge's file: what was learnt is taken over, and no setting of whoever wrote it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from skops import io

from coaudit.judges import JudgeError
from coaudit.judges.trained import Example, judge
from coaudit.judges.trained.features import Features
from coaudit.pipeline import codebooks

pytestmark = pytest.mark.library
BOOK = codebooks.load("initiative")
TEXTS = ("Please add a chart", "Okay, thank you", "Could you change it?", "Sounds good")


def seen(text: str) -> Features:
    return Features(text, {"actor": "human", "position": len(text) / 100})


def learnt() -> Any:
    """A model that says yes to requests."""
    examples = [
        Example(seen(f"{t} {i}"), "yes" if t[0] in "PC" else "no", str(i)) for i in range(5) for t in TEXTS
    ]
    model, _ = judge.learn(BOOK, "initiative", examples)
    return model


def loaded(path: Path, model: Any) -> Any:
    judge.save(path, BOOK, {"initiative": model}, [])
    _, models, _ = judge.load(path, BOOK)
    return models["initiative"]


@pytest.mark.long
def test_a_model_says_the_same_once_it_was_saved_and_loaded(tmp_path: Path) -> None:
    model = learnt()
    asked = [seen(text) for text in (*TEXTS, "", "Something else, please!")]
    assert judge.predict(loaded(tmp_path / "a.skops", model), asked) == judge.predict(model, asked)


@pytest.mark.long
def test_of_two_that_train_at_once_the_later_file_holds_and_nothing_is_left_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, really, path = learnt(), io.dump, tmp_path / "initiative.skops"

    def dumped(document: Any, file: Path) -> None:
        """Another one comes while the first is about to give its file a name."""
        really(document, file)
        monkeypatch.undo()
        judge.save(path, BOOK, {}, [])

    monkeypatch.setattr(io, "dump", dumped)
    judge.save(path, BOOK, {"initiative": model}, [])
    assert set(judge.load(path, BOOK)[1]) == {"initiative"}
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.long
@pytest.mark.parametrize(
    "settings",
    [
        {"input": "filename"},
        {"token_pattern": r"(?:\w+ ?)+\x01"},
        {"analyzer": "char"},
        {"encoding": "utf-16"},
    ],
    ids=["paths to open", "a pattern without end", "letters for words", "another encoding"],
)
def test_settings_of_a_foreign_file_are_not_obeyed(tmp_path: Path, settings: dict[str, str]) -> None:
    model = learnt()
    secret = tmp_path / "secret.txt"
    secret.write_text("Please add a chart")
    asked = [seen(str(secret)), seen("word " * 40)]
    said = judge.predict(model, asked)
    model["words"].set_params(**settings)
    assert judge.predict(loaded(tmp_path / "evil.skops", model), asked) == said


@pytest.mark.long
def test_a_model_whose_weights_are_of_other_words_is_refused(tmp_path: Path) -> None:
    model = learnt()
    model["linear"].coef_ = model["linear"].coef_[:, 1:]
    with pytest.raises(JudgeError, match="not a trained judge"):
        loaded(tmp_path / "short.skops", model)
