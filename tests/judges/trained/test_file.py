"""A trained judge's file: names and numbers are taken over, and anything else is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_LZMA, ZipFile

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from skops import io

from coaudit.judges import JudgeError
from coaudit.judges.trained import file
from coaudit.judges.trained.learning import learn
from coaudit.judges.trained.model import Model
from coaudit.pipeline import codebooks
from tests.judges.trained.examples import TEXTS, example, learnt, seen

pytestmark = pytest.mark.library
BOOK = codebooks.load("initiative")


class Folds(dict[str, int]):
    """Numbers of folds of which none is whole, as a foreign file may have them."""

    def values(self) -> Any:
        return [np.nan]


def loaded(path: Path, model: Model) -> Model:
    file.save(path, BOOK, {"initiative": model}, "ann")
    return file.load(path, BOOK)[1]["initiative"]


@pytest.mark.long
def test_a_model_says_the_same_once_it_was_saved_and_loaded(tmp_path: Path) -> None:
    model = learnt()
    asked = [seen(text) for text in (*TEXTS, "", "Something else, please!")]
    assert loaded(tmp_path / "a.skops", model).predict(asked) == model.predict(asked)


@pytest.mark.long
def test_what_is_learnt_again_from_the_same_labels_has_the_same_version(tmp_path: Path) -> None:
    """The file had memory addresses and times in it, so that everything was rated again."""
    versions = set()
    for name in ("first", "again"):
        file.save(path := tmp_path / name, BOOK, {"initiative": learnt()}, "ann")
        versions.add(file.load(path)[2])
    assert len(versions) == 1 and file.load(path).teacher == "ann"


@pytest.mark.long
def test_of_two_that_train_at_once_the_later_file_holds_and_nothing_is_left_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, path = learnt(), tmp_path / "initiative.skops"

    def replaced(unfinished: Path, target: Path) -> Path:
        """Another one comes while the first is about to give its file a name."""
        monkeypatch.undo()
        file.save(path, BOOK, {}, "ann")
        return unfinished.replace(target)

    monkeypatch.setattr(Path, "replace", replaced)
    file.save(path, BOOK, {"initiative": model}, "ann")
    assert set(file.load(path, BOOK)[1]) == {"initiative"}
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("method", [ZIP_DEFLATED, ZIP_BZIP2, ZIP_LZMA])
def test_a_compressed_file_is_refused_unread(tmp_path: Path, method: int) -> None:
    path, packed = tmp_path / "judge.skops", tmp_path / "bomb.skops"
    file.save(path, BOOK, {"initiative": learnt()}, "ann")
    assert file.load(path)[0] == BOOK.name
    with ZipFile(path) as parts, ZipFile(packed, "w", method) as bomb:
        for name in parts.namelist():
            bomb.writestr(name, parts.read(name))
    with pytest.raises(
        JudgeError, match="refused, it holds compressed parts; no file of `coaudit train` does"
    ):
        file.load(packed)


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
        names = sorted(name for name in parts.namelist() if name != file.SCHEMA)
        for name in names[:1]:
            forged.writestr(name, parts.read(name))
        schema = parts.read(file.SCHEMA).decode().replace("_csr", "_matrix").replace("csr_matrix", "spmatrix")
        for name in names[1:]:
            schema = schema.replace(name, names[0])
        forged.writestr(file.SCHEMA, schema)
    with pytest.raises(JudgeError, match=f"refused, it holds {reason}; no file"):
        file.load(path)


def test_lists_for_arrays_are_no_trained_judge(tmp_path: Path) -> None:
    """Ten lists of the next ten, and so on, are a kilobyte of a file and billions of numbers."""
    model = learnt()
    lists = replace(model, whole=replace(model.whole, coef=model.whole.coef.tolist()))
    with pytest.raises(JudgeError, match=r"not a trained judge: ValueError.*list where an array belongs"):
        loaded(tmp_path / "lists.skops", lists)


def test_words_that_a_file_of_skops_uses_itself_are_learnt_like_others(tmp_path: Path) -> None:
    examples = [
        example(f"file type __id__ __loader__ json {name}", name, str(i))
        for i in range(10)
        for name in ("yes", "no")
    ]
    model = loaded(tmp_path / "words.skops", learn(examples).model)
    assert {"file", "type", "__id__", "__loader__", "json"} <= set(model.terms)


def test_a_word_as_long_as_a_text_takes_no_more_room_than_it_is_long(tmp_path: Path) -> None:
    """As an array of texts, of which each takes as much as the longest, it was 80 kB for each term."""
    long = [example(f"{name} {'x' * 20_000} {i}", name, str(i)) for i in range(10) for name in ("yes", "no")]
    model = loaded(tmp_path / "long.skops", learn(long).model)
    assert "x" * 20_000 in model.terms
    assert (tmp_path / "long.skops").stat().st_size < 20 * 3 * 20_000


@pytest.mark.long
def test_a_model_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    model = learnt()
    whole = model.whole
    damaged = [
        replace(model, whole=replace(whole, coef=whole.coef[:, 1:])),
        replace(model, whole=replace(whole, intercept=np.array([np.nan]))),
        replace(model, whole=replace(whole, coef=whole.coef * 1e308)),  # a probability was no number
        replace(model, whole=replace(whole, coef=whole.coef.astype(str))),
        replace(model, whole=replace(whole, labels=["yes", "yes"])),
        replace(model, folds=()),
        replace(model, folds=(replace(model.folds[0], labels=["maybe", "no"]), *model.folds[1:])),
        replace(model, fold_of={"0": -1}),
        replace(model, fold_of=Folds({"0": 0})),
    ]
    for one in damaged:
        with pytest.raises(JudgeError, match="not a trained judge"):
            loaded(tmp_path / "damaged.skops", one)


@pytest.mark.long
def test_a_model_of_labels_or_codes_that_its_codebook_lacks_is_refused(tmp_path: Path) -> None:
    """They went into the ledger, where no label is refused any more."""
    model, path = learnt(), tmp_path / "strange.skops"
    file.save(path, BOOK, {"zzz": model}, "ann")
    with pytest.raises(JudgeError, match="codebook 'initiative', which has no code 'zzz'"):
        file.load(path, BOOK)
    strange = ["no", "maybe\x1b[31m"]
    parts = [replace(part, labels=strange) for part in (model.whole, *model.folds)]
    with pytest.raises(JudgeError, match=r"which has no label 'maybe\\x1b\[31m'"):
        loaded(path, replace(model, whole=parts[0], folds=tuple(parts[1:])))


@pytest.mark.long
def test_a_file_of_before_it_knew_what_it_had_learnt_from_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "FORMAT", 2)
    file.save(tmp_path / "old.skops", BOOK, {"initiative": learnt()}, "ann")
    monkeypatch.undo()
    with pytest.raises(JudgeError, match="trained by another version of coaudit; train it again"):
        file.load(tmp_path / "old.skops", BOOK)
