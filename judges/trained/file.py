"""The file of a trained judge: names and numbers, which cannot run.

skops saves it: a pickle would run code when loaded, a skops file holds only types that are on a list, and of
these ours has lists, dictionaries and arrays alone, so that it is read by any version of scikit-learn.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile, ZipInfo

from ...schemas import Codebook
from ..errors import JudgeError
from .model import Model, Weights

FORMAT = 3
SCHEMA = "schema.json"
"""The part of a skops file that says what its other parts are."""
LARGEST = 1e100
"""Of larger weights a probability may be no number."""
ARRAY = b"\x93NUMPY"
"""How each of its other parts begins: an array as NumPy writes it, which is not compressed."""


class Content(NamedTuple):
    """What a file holds: the name of its codebook, models by code, its version and whose labels it learnt."""

    codebook: str
    models: dict[str, Model]
    version: str
    teacher: str


def save(path: Path, codebook: Codebook, models: Mapping[str, Model], teacher: str) -> None:
    """Write the models of a codebook, learnt from a rater's labels, to a skops file; an earlier one is
    replaced at once or not at all."""
    from skops import io

    about = {
        "format": FORMAT,
        "codebook": codebook.name,
        "version": codebook.version,
        "teacher": teacher,
    }
    document = {"about": about, "models": {code: _model_document(model) for code, model in models.items()}}
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        unfinished.write_bytes(_reproducible(io.dumps(document)))
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


def load(path: Path, codebook: Codebook | None = None) -> Content:
    """The content of a file; JudgeError for anything else.

    One that may take far more memory than its size suggests is refused: ours have nothing compressed. So is,
    unread, one with a type that is not on skops' list of harmless ones.
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
        models = {str(code): _model(model) for code, model in document["models"].items()}
        name, version, teacher = (str(about[key]) for key in ("codebook", "version", "teacher"))
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
    return Content(name, models, hashlib.blake2b(content, digest_size=6).hexdigest(), teacher)


def _unknown_answers(models: Mapping[str, Model], book: Codebook) -> list[str]:
    """The codes, and the labels, of a file's models that their codebook does not have."""
    codes = {code.code for code in book.codes}
    labels = dict.fromkeys(name for model in models.values() for name in model.whole.labels)
    return [
        *(f"code {code!r}" for code in models if code not in codes),
        *(f"label {name!r}" for name in labels if name not in book.labels),
    ]


def _model_document(model: Model) -> dict[str, Any]:
    import numpy as np

    return {
        "terms": _text(model.terms),
        "process": _text(model.process),
        "groups": _text([*model.fold_of]),
        "fold_of": np.array([*model.fold_of.values()]),
        "parts": [_part_document(part) for part in (model.whole, *model.folds)],
    }


def _part_document(part: Weights) -> dict[str, Any]:
    import numpy as np

    return {
        "idf": part.idf,
        "labels": _text(part.labels),
        "coef": part.coef,
        "intercept": part.intercept,
        "calibration": np.array([part.slope, *np.broadcast_to(part.shifts, len(part.labels))]),
    }


def _text(names: Sequence[str]) -> Any:
    """Names as an array of bytes: as an array of texts each would take as much as the longest."""
    import numpy as np

    return np.frombuffer(json.dumps(names).encode(), dtype=np.uint8).copy()


def _model(document: Any) -> Model:
    """The model of a document; ValueError where it is not whole."""
    terms, process, groups = (_names(document[name]) for name in ("terms", "process", "groups"))
    parts = [_part(one, len(terms), len(process)) for one in document["parts"]]
    fold_of = dict(zip(groups, _array(document["fold_of"], int).tolist(), strict=True))
    if not terms or not all(0 <= fold < len(parts) - 1 for fold in fold_of.values()):
        raise ValueError("it has no terms, or lacks a fold")
    whole, *folds = parts
    if any(label not in whole.labels for part in folds for label in part.labels):
        raise ValueError("a fold has labels of its own")
    return Model(terms, process, whole, tuple(folds), fold_of)


def _part(document: Any, terms: int, process: int) -> Weights:
    import numpy as np

    labels, calibration = _names(document["labels"]), _array(document["calibration"], float)
    idf, coef, intercept = (_array(document[name], float) for name in ("idf", "coef", "intercept"))
    rows = len(labels) if len(labels) > 2 else len(labels) - 1
    shapes = [(terms,), (rows, terms + process), (rows,), (1 + len(labels),)]
    if not labels or [one.shape for one in (idf, coef, intercept, calibration)] != shapes:
        raise ValueError(f"weights of the shape {coef.shape} are not those of its words and labels")
    if not all((np.abs(numbers) < LARGEST).all() for numbers in (idf, coef, intercept, calibration)):
        raise ValueError("its weights are not all numbers, or so large that their sums are none")
    return Weights(idf, labels, coef, intercept, float(calibration[0]), calibration[1:])


def _names(content: Any) -> list[str]:
    """The names in an array of bytes; ValueError for anything else, and for one that comes twice."""
    import numpy as np

    if not isinstance(content, np.ndarray) or content.dtype != np.uint8:
        raise ValueError(f"{type(content).__name__} where names belong")
    names = json.loads(content.tobytes())
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("something else where names belong")
    if len(set(names)) < len(names):
        raise ValueError("a name comes twice")
    return names


def _array(content: Any, kind: type) -> Any:
    """An array as numbers; ValueError for lists, which in a few lines may stand for billions."""
    import numpy as np

    if not isinstance(content, np.ndarray):
        raise ValueError(f"{type(content).__name__} where an array belongs")
    if content.dtype.kind != ("i" if kind is int else "f"):
        raise ValueError(f"{content.dtype} where {'whole ' * (kind is int)}numbers belong")
    return content.astype(kind, copy=False)
