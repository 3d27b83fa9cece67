"""A trained judge's file: what was learnt is taken over, and no setting of whoever wrote it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_LZMA, ZipFile

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from skops import io

from coaudit.judges import JudgeError
from coaudit.judges.trained import Example, TrainedJudge, judge
from coaudit.judges.trained.features import Features, features
from coaudit.pipeline import codebooks, units
from tests.judges.teams import team

pytestmark = pytest.mark.library
BOOK = codebooks.load("initiative")
TEXTS = ("Please add a chart", "Okay, thank you", "Could you change it?", "Sounds good")


def seen(text: str) -> Features:
    return Features(text, {"actor": "human", "position": len(text) / 100})


def learnt() -> Any:
    """A model that says yes to requests."""
    examples = [
        Example(seen(f"{t} {i}"), "yes" if t[0] in "PC" else "no", str(i), f"{i} {t}")
        for i in range(5)
        for t in TEXTS
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
def test_what_is_learnt_again_from_the_same_labels_has_the_same_version(tmp_path: Path) -> None:
    """The file had memory addresses and times in it, so that everything was rated again."""
    versions = set()
    for name in ("first", "again"):
        judge.save(path := tmp_path / name, BOOK, {"initiative": learnt()}, [])
        versions.add(judge.load(path)[2])
    assert len(versions) == 1


@pytest.mark.long
def test_of_units_that_it_learnt_from_it_says_what_it_did_before_it_had_seen_them(tmp_path: Path) -> None:
    """Of words and labels by chance all were right: `validate` gave a kappa of 1, and `rates` its own."""
    rng, words = np.random.default_rng(0), [f"word{number}" for number in range(300)]
    logs = [
        team(
            *[(actor, " ".join(rng.choice(words, 12))) for actor in ("human", "agent") * 3], key=f"t{number}"
        )
        for number in range(15)
    ]
    asked = [unit for log in logs for unit in units.cut(log, BOOK)]
    labels = [str(label) for label in rng.choice(["yes", "no"], len(asked))]
    examples = [
        Example(features(unit), label, unit.trajectory_id, judge.name_of(unit))
        for unit, label in zip(asked, labels, strict=True)
    ]
    model, about = judge.learn(BOOK, "initiative", examples)
    trained = TrainedJudge(BOOK, "chance", "1", {"initiative": loaded(tmp_path / "chance.skops", model)})
    said = [str(rating.label) for (rating,) in trained.rate(asked)]
    assert judge._kappa(labels, said) == (about.kappa, None)
    assert about.kappa is not None and about.kappa < 0.3
    changed = [unit.model_copy(update={"trajectory_id": "other"}) for unit in asked]
    anew = [str(rating.label) for (rating,) in trained.rate(changed)]
    assert anew == [label for label, _ in judge.predict(model, [features(unit) for unit in asked])]


@pytest.mark.long
def test_of_two_that_train_at_once_the_later_file_holds_and_nothing_is_left_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, path = learnt(), tmp_path / "initiative.skops"

    def replaced(unfinished: Path, target: Path) -> Path:
        """Another one comes while the first is about to give its file a name."""
        monkeypatch.undo()
        judge.save(path, BOOK, {}, [])
        return unfinished.replace(target)

    monkeypatch.setattr(Path, "replace", replaced)
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


@pytest.mark.parametrize("method", [ZIP_DEFLATED, ZIP_BZIP2, ZIP_LZMA])
def test_a_compressed_file_is_refused_unread(tmp_path: Path, method: int) -> None:
    path, packed = tmp_path / "judge.skops", tmp_path / "bomb.skops"
    judge.save(path, BOOK, {"initiative": learnt()}, [])
    assert judge.load(path)[0] == BOOK.name
    with ZipFile(path) as parts, ZipFile(packed, "w", method) as bomb:
        for name in parts.namelist():
            bomb.writestr(name, parts.read(name))
    with pytest.raises(
        JudgeError, match="refused, it holds compressed parts; no file of `coaudit train` does"
    ):
        judge.load(packed)


@pytest.mark.parametrize(
    ("growth", "reason"),
    [
        (csr_matrix, "parts that are no arrays"),
        (lambda ones: [ones, ones.copy()], "one array several times"),
        (lambda ones: np.array([[ones, None]] * 2, dtype=object), "arrays of objects"),
    ],
)
def test_a_file_that_grows_otherwise_is_refused_unread(tmp_path: Path, growth: Any, reason: str) -> None:
    """Each took a thousand times its size: what is compressed lay inside, or one part stood for many."""
    path, bomb = tmp_path / "judge.skops", tmp_path / "bomb.skops"
    bomb.write_bytes(io.dumps({"growth": growth(np.ones(1000))}))
    with ZipFile(bomb) as parts, ZipFile(path, "w") as forged:
        names = sorted(name for name in parts.namelist() if name != judge.SCHEMA)
        for name in names[:1]:
            forged.writestr(name, parts.read(name))
        schema = (
            parts.read(judge.SCHEMA).decode().replace("_csr", "_matrix").replace("csr_matrix", "spmatrix")
        )
        for name in names[1:]:
            schema = schema.replace(name, names[0])
        forged.writestr(judge.SCHEMA, schema)
    with pytest.raises(JudgeError, match=f"refused, it holds {reason}; no file"):
        judge.load(path)


def test_lists_for_arrays_are_no_trained_judge(tmp_path: Path) -> None:
    """Ten lists of the next ten, and so on, are a kilobyte of a file and billions of numbers."""
    model = learnt()
    model["linear"].coef_ = model["linear"].coef_.tolist()
    with pytest.raises(JudgeError, match=r"not a trained judge: ValueError.*list where an array belongs"):
        loaded(tmp_path / "lists.skops", model)


def test_words_that_a_file_of_skops_uses_itself_are_learnt_like_others(tmp_path: Path) -> None:
    examples = [
        Example(seen(f"file type __id__ __loader__ json {name}"), name, str(i), f"{i} {name}")
        for i in range(10)
        for name in ("yes", "no")
    ]
    model, _ = judge.learn(BOOK, "initiative", examples)
    model = loaded(tmp_path / "words.skops", model)
    assert {"file", "type", "__id__", "__loader__", "json"} <= set(model["words"].vocabulary_)


@pytest.mark.long
def test_a_model_whose_weights_are_of_other_words_is_refused(tmp_path: Path) -> None:
    model = learnt()
    model["linear"].coef_ = model["linear"].coef_[:, 1:]
    with pytest.raises(JudgeError, match="not a trained judge"):
        loaded(tmp_path / "short.skops", model)


@pytest.mark.long
def test_a_model_of_labels_or_codes_that_its_codebook_lacks_is_refused(tmp_path: Path) -> None:
    """They went into the ledger, where no label is refused any more."""
    model, path = learnt(), tmp_path / "strange.skops"
    judge.save(path, BOOK, {"zzz": model}, [])
    with pytest.raises(JudgeError, match="codebook 'initiative', which has no code 'zzz'"):
        judge.load(path, BOOK)
    model["linear"].classes_ = np.array(["no", "maybe\x1b[31m"])
    model["held_out"]["labels"][:] = "no"
    with pytest.raises(JudgeError, match=r"which has no label 'maybe\\x1b\[31m'"):
        loaded(path, model)


@pytest.mark.long
def test_a_file_of_before_it_knew_what_it_had_learnt_from_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge, "FORMAT", 1)
    judge.save(tmp_path / "old.skops", BOOK, {"initiative": learnt()}, [])
    monkeypatch.undo()
    with pytest.raises(JudgeError, match="trained by another version of coaudit; train it again"):
        judge.load(tmp_path / "old.skops", BOOK)
