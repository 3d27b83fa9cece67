"""The trained judge: a linear model on words and process features, learnt from existing ratings.

scikit-learn for the model, skops to save it: a pickle would run code when loaded, a skops file holds only
types that are on a list. It is the judge that runs offline once there are labels; how far it can be
trusted is what its cross-validation says, and nothing more. So of the units that it learnt from it says what
it did before it had seen their trajectories (Zrnic and Candès 2024): of what was learnt by heart it would be
right in all, and rates that people's labels correct would be its own.
"""

from __future__ import annotations

import hashlib
import json
import math
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile, ZipInfo

from ...schemas import Codebook, Rating, Unit, Verdict
from ...schemas.rating import Maker
from ..errors import JudgeError
from .features import Features, features

FOLDS = 5
FEWEST = 8
"""Labelled units of a code that are needed at the least."""
FORMAT = 2
SCHEMA = "schema.json"
"""The part of a skops file that says what its other parts are."""
ARRAY = b"\x93NUMPY"
"""How each of its other parts begins: an array as NumPy writes it, which is not compressed."""
WORDS: dict[str, Any] = {"ngram_range": (1, 2), "sublinear_tf": True, "token_pattern": r"\w+|\?|!"}
"""How texts are cut into words."""
TERMS = 50_000
"""How many of the most frequent terms are used."""
ANY = "word"
"""A term to stand in where no text has any."""
Answer = tuple[str, float | None]
"""A label with its probability."""


@dataclass(frozen=True)
class Example:
    """A unit with the label to be learnt; `group` is its trajectory, `unit` what `name_of` calls it."""

    features: Features
    label: str
    group: str
    unit: str


@dataclass(frozen=True)
class LearningResult:
    """How well one code was learnt: Cohen's kappa on trajectories that were held out, None with a reason."""

    code: str
    kappa: float | None
    n: int
    trajectories: int
    labels: dict[str, int]
    reason: str | None = None
    learnt: bool = True


@dataclass(frozen=True)
class TrainedJudge:
    """A model that was loaded from a file, for its codebook."""

    codebook: Codebook
    name: str
    version: str
    models: dict[str, Any]

    @cached_property
    def maker(self) -> Maker:
        """The rater; its version is the hash of its file."""
        return Maker(f"trained:{self.name}", "model", self.version, self.codebook)

    def rate(self, units: Sequence[Unit]) -> Iterator[list[Rating]]:
        """Of each unit a rating for each code that was learnt."""
        inputs = [features(unit) for unit in units]
        answers = {code: predict(model, inputs) for code, model in self.models.items()} if inputs else {}
        for place, unit in enumerate(units):
            name = name_of(unit)
            by_code = {code: self._held_out[code].get(name, many[place]) for code, many in answers.items()}
            yield [
                self.maker.rating(unit, Verdict(code, label, probability=probability))
                for code, (label, probability) in by_code.items()
            ]

    @cached_property
    def _held_out(self) -> dict[str, dict[str, Answer]]:
        """Code -> unit that it was learnt from -> what was said of it without its trajectory."""
        return {code: _answers(model["held_out"]) for code, model in self.models.items()}


def name_of(unit: Unit) -> str:
    """What tells a unit from all others, and from what it was before it was changed."""
    return f"{unit.trajectory_id} {unit.hash}"


def learn(codebook: Codebook, code: str, examples: Sequence[Example]) -> tuple[Any | None, LearningResult]:
    """A model of one code and what cross-validation says of it; None where there is nothing to learn."""
    labels = Counter(example.label for example in examples)
    groups = {example.group for example in examples}

    def about(kappa: float | None, why: str | None, *, learnt: bool) -> LearningResult:
        return LearningResult(code, kappa, len(examples), len(groups), dict(labels), why, learnt)

    if len(labels) < 2:
        return None, about(None, f"all labels are {next(iter(labels), 'missing')}", learnt=False)
    if len(examples) < FEWEST:
        reason = f"{len(examples)} labelled units, at least {FEWEST} are needed"
        return None, about(None, reason, learnt=False)
    lesson = Lesson.of(examples)
    answers, why = _cross_validate(lesson, [example.group for example in examples])
    kappa = None
    if answers:
        kappa, why = _kappa(lesson.labels, [label for label, _ in answers])
    held_out = _table([example.unit for example in examples], answers)
    return lesson.fit(range(len(examples))) | {"held_out": held_out}, about(kappa, why, learnt=True)


@dataclass(frozen=True)
class Lesson:
    """Examples as numbers, counted once however many models learn from some of them."""

    terms: list[str]
    counts: Any
    """Sparse, examples by terms: how often each stands in the text."""
    process: Any
    """The fitted DictVectorizer of all process features."""
    features: Any
    """Sparse, examples by what `process` gives."""
    labels: list[str]

    @classmethod
    def of(cls, examples: Sequence[Example]) -> Lesson:
        """Of all examples."""
        from sklearn.feature_extraction import DictVectorizer
        from sklearn.feature_extraction.text import CountVectorizer

        settings = {name: value for name, value in WORDS.items() if name != "sublinear_tf"}
        words = CountVectorizer(**settings).fit([example.features.text for example in examples] + [ANY])
        process = DictVectorizer()
        return cls(
            [str(term) for term in words.get_feature_names_out()],
            words.transform(example.features.text for example in examples),
            process,
            process.fit_transform([example.features.process for example in examples]),
            [example.label for example in examples],
        )

    def fit(self, rows: Sequence[int]) -> dict[str, Any]:
        """A model of these examples."""
        return self._fit(rows)[0]

    def answers(self, rows: Sequence[int], others: Sequence[int]) -> list[Answer]:
        """What a model of some examples says of others."""
        names = {self.labels[row] for row in rows}
        if len(names) < 2:
            return [(name, None) for name in names for _ in others]
        model, table = self._fit(rows)
        return [*_best_labels(model["linear"], table(others))]

    def _fit(self, rows: Sequence[int]) -> tuple[dict[str, Any], Callable[[Sequence[int]], Any]]:
        """A model of these examples, and a function that makes its table of others."""
        import numpy as np
        from scipy.sparse import hstack
        from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer
        from sklearn.linear_model import LogisticRegression

        often = np.asarray(self.counts[rows].sum(axis=0)).ravel()
        places = np.sort(np.argsort(-often, kind="stable")[:TERMS])
        places = places[often[places] > 0] if often.any() else places[:1]  # a vocabulary must not be empty
        weight = TfidfTransformer(sublinear_tf=WORDS["sublinear_tf"]).fit(self.counts[rows][:, places])

        def table(some: Sequence[int]) -> Any:
            return hstack([weight.transform(self.counts[some][:, places]), self.features[some]]).tocsr()

        words = TfidfVectorizer(**WORDS, vocabulary={self.terms[place]: n for n, place in enumerate(places)})
        words.idf_ = weight.idf_
        linear = LogisticRegression(class_weight="balanced", max_iter=5000, C=4.0, solver="newton-cg")
        linear.fit(table(rows), [self.labels[row] for row in rows])
        return {"words": words, "process": self.process, "linear": linear}, table


def save(path: Path, codebook: Codebook, models: dict[str, Any], learnt: Sequence[LearningResult]) -> None:
    """Write the models of a codebook to a skops file; an earlier one is replaced at once or not at all."""
    from skops import io

    about = {"format": FORMAT, "codebook": codebook.name, "version": codebook.version}
    kappas = {result.code: result.kappa for result in learnt}
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        unfinished.write_bytes(_reproducible(io.dumps({"about": about, "kappas": kappas, "models": models})))
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _reproducible(content: bytes) -> bytes:
    """The same skops file without memory addresses and times: what is learnt again from the same labels has
    the same bytes, so the same version, and nothing is rated again."""
    numbers: dict[str, str] = {}
    result = BytesIO()
    with ZipFile(BytesIO(content)) as parts, ZipFile(result, "w") as stable:
        schema = json.loads(parts.read(SCHEMA))
        _renumber(schema, numbers)
        for name in parts.namelist():
            address, dot, ending = name.partition(".")
            part = json.dumps(schema) if name == SCHEMA else parts.read(name)
            stable.writestr(ZipInfo(numbers.get(address, address) + dot + ending), part)
    return result.getvalue()


def _renumber(state: Any, numbers: dict[str, str]) -> None:
    """Replace each object's address in a skops schema, and in names of files, by its number in order."""
    for one in _objects(state):
        if isinstance(address := one.get("__id__"), int):
            one["__id__"] = int(numbers.setdefault(str(address), str(len(numbers))))
        if isinstance(file := one.get("file"), str):
            address, dot, ending = file.partition(".")
            one["file"] = numbers.setdefault(address, str(len(numbers))) + dot + ending


def _objects(state: Any) -> Iterator[dict[str, Any]]:
    """All objects of a skops schema."""
    pending = [state]
    while pending:
        one = pending.pop()
        if isinstance(one, dict):
            yield one
        pending += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()


def _growth(content: bytes) -> str | None:
    """Why a file may take far more memory than its size suggests; None where it does not."""
    with ZipFile(BytesIO(content)) as parts:
        if sum(part.file_size for part in parts.infolist()) > len(content):
            return "holds compressed parts"
        names = [name for name in parts.namelist() if name != SCHEMA]
        if any(parts.open(name).read(len(ARRAY)) != ARRAY for name in names):
            return "holds parts that are no arrays"
        objects = [*_objects(json.loads(parts.read(SCHEMA)))]
    arrays = [(one["file"], repr(one.get("__id__") or id(one))) for one in objects if _is_text(one, "file")]
    if len({*arrays}) > len({file for file, _ in arrays}):  # skops keeps what has the same number once
        return "holds one array several times"
    if any(_is_text(one, "type") and one["type"] == "json" for one in objects):
        return "holds arrays of objects"
    return None


def _is_text(state: dict[str, Any], key: str) -> bool:
    """Whether an object of a skops schema has this; in a vocabulary, the word is followed by an object."""
    return isinstance(state.get(key), str)


def load(path: Path, codebook: Codebook | None = None) -> tuple[str, dict[str, Any], str]:
    """Name of the codebook, models by code and version of a file; JudgeError for anything else.

    One that may take far more memory than its size suggests is refused: ours have nothing compressed, and 60
    MB a code of fifty thousand terms. So is, unread, one with a type that is not on skops' list of harmless
    ones; of the others only what was learnt is taken over, since settings may name files to open, functions
    to call and endless patterns.
    """
    from skops import io

    try:
        content = path.read_bytes()
        if why := _growth(content):
            raise JudgeError(f"{path}: refused, it {why}; no file of `coaudit train` does")
        foreign = io.get_untrusted_types(data=content)
        if foreign:
            raise JudgeError(f"{path}: refused, it holds types that could run code: {', '.join(foreign)}")
        document = io.loads(content, trusted=[])
        about = document["about"]
        if about["format"] != FORMAT:
            raise JudgeError(f"{path}: trained by another version of coaudit; train it again")
        models = {str(code): _safe_model(model) for code, model in document["models"].items()}
        name, version = str(about["codebook"]), str(about["version"])
    except OSError as error:
        raise JudgeError(f"{path}: cannot be read: {error.strerror}") from error
    except JudgeError:
        raise
    except Exception as error:  # zip, JSON and skops' own errors: whatever a foreign file provokes
        raise JudgeError(f"{path}: not a trained judge: {error!r}") from error
    if codebook is not None and version != codebook.version:
        raise JudgeError(
            f"{path}: trained on codebook {name!r} at version {version}, which is now {codebook.version}; "
            "train it again"
        )
    if codebook is not None and (strange := _unknown_answers(models, codebook)):
        raise JudgeError(f"{path}: not a judge of codebook {name!r}, which has no {', '.join(strange[:5])}")
    return name, models, hashlib.blake2b(content, digest_size=6).hexdigest()


def _unknown_answers(models: dict[str, Any], book: Codebook) -> list[str]:
    """The codes, and the labels, of a file's models that their codebook does not have."""
    codes = {code.code for code in book.codes}
    labels = dict.fromkeys(name for model in models.values() for name in map(str, model["linear"].classes_))
    return [
        *(f"code {code!r}" for code in models if code not in codes),
        *(f"label {name!r}" for name in labels if name not in book.labels),
    ]


def _safe_model(model: Any) -> dict[str, Any]:
    """A model with our own settings that has learnt what this one has; ValueError where that is not whole."""
    import numpy as np
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    words = TfidfVectorizer(**WORDS, vocabulary=_places(model["words"].vocabulary_))
    words.idf_ = _array(model["words"].idf_, float)
    process, linear = DictVectorizer(), LogisticRegression()
    process.vocabulary_ = _places(model["process"].vocabulary_)
    process.feature_names_ = sorted(process.vocabulary_, key=process.vocabulary_.__getitem__)
    linear.classes_ = _array(model["linear"].classes_, str)
    linear.coef_ = _array(model["linear"].coef_, float)
    linear.intercept_ = _array(model["linear"].intercept_, float)
    rows = 1 if len(linear.classes_) == 2 else len(linear.classes_)
    columns = len(words.vocabulary_) + len(process.vocabulary_)
    if linear.coef_.shape != (rows, columns) or linear.intercept_.shape != (rows,):
        raise ValueError(f"weights of the shape {linear.coef_.shape} are not those of its words and classes")
    if not all(np.isfinite(numbers).all() for numbers in (words.idf_, linear.coef_, linear.intercept_)):
        raise ValueError("its weights are not all numbers")
    kinds = {"units": str, "labels": str, "probabilities": float}
    held_out = {name: _array(model["held_out"][name], kind) for name, kind in kinds.items()}
    is_known, chances = np.isin(held_out["labels"], linear.classes_).all(), held_out["probabilities"]
    shapes = {column.shape for column in held_out.values()}
    if not is_known or shapes != {(len(chances),)} or ((chances < 0) | (chances > 1)).any():
        raise ValueError("what it says of the units that it learnt from is not whole")
    return {"words": words, "process": process, "linear": linear, "held_out": held_out}


def _array(content: Any, kind: type) -> Any:
    """An array as numbers or texts; ValueError for lists, which in a few lines may stand for billions."""
    import numpy as np

    if not isinstance(content, np.ndarray):
        raise ValueError(f"{type(content).__name__} where an array belongs")
    return content.astype(kind, copy=False)


def _table(units: Sequence[str], answers: Sequence[Answer]) -> dict[str, Any]:
    """Answers by unit as columns, as a file holds them; empty where nothing was held out."""
    import numpy as np

    chances = [math.nan if chance is None else chance for _, chance in answers]
    return {
        "units": np.array(units[: len(answers)], dtype=str),
        "labels": np.array([label for label, _ in answers], dtype=str),
        "probabilities": np.array(chances, dtype=float),
    }


def _answers(table: dict[str, Any]) -> dict[str, Answer]:
    """The same by the name of the unit."""
    rows = zip(*(table[name].tolist() for name in ("units", "labels", "probabilities")), strict=True)
    return {unit: (label, None if math.isnan(chance) else chance) for unit, label, chance in rows}


def _places(vocabulary: dict[Any, Any]) -> dict[str, int]:
    """Word or feature -> its column; ValueError where columns are missing."""
    places = {str(name): int(place) for name, place in vocabulary.items()}
    if sorted(places.values()) != list(range(len(places))):
        raise ValueError("its vocabulary leaves columns out")
    return places


def predict(model: Any, inputs: Sequence[Features]) -> list[Answer]:
    """The most probable label of each, with its probability."""
    from scipy.sparse import hstack

    words = model["words"].transform([features.text for features in inputs])
    process = model["process"].transform([features.process for features in inputs])
    return _best_labels(model["linear"], hstack([words, process]).tocsr())


def _best_labels(linear: Any, table: Any) -> list[Answer]:
    """The most probable label of each row, with its probability."""
    chances = linear.predict_proba(table)
    best = chances.argmax(axis=1)
    return [
        (str(linear.classes_[place]), float(row[place])) for place, row in zip(best, chances, strict=True)
    ]


def _cross_validate(lesson: Lesson, groups: Sequence[str]) -> tuple[list[Answer], str | None]:
    """What is said of each example by a model that had not seen its trajectory; none with the reason."""
    if len(set(groups)) < 2:
        return [], "one trajectory only, nothing can be held out"
    from sklearn.model_selection import GroupKFold

    folds = GroupKFold(n_splits=min(FOLDS, len(set(groups))))
    answers: list[Answer] = [("", None)] * len(groups)
    for rows, others in folds.split(answers, groups=groups):
        for row, answer in zip(others, lesson.answers(rows, others), strict=True):
            answers[row] = answer
    return answers, None


def _kappa(one: Sequence[str], other: Sequence[str]) -> tuple[float | None, str | None]:
    """Cohen (1960), unweighted; undefined where chance alone gives full agreement."""
    n = len(one)
    observed = sum(a == b for a, b in zip(one, other, strict=True)) / n
    first, second = Counter(one), Counter(other)
    expected = sum(first[name] * second[name] for name in first) / n**2
    if math.isclose(expected, 1.0):
        return None, "both always give the same label, so chance agreement is 1"
    return (observed - expected) / (1 - expected), None
