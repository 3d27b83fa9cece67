"""What an annotator answered, read out of a Label Studio result; and a judge's ratings written as one.

A result is somebody else's data: a control we did not make, a label that isn't in the codebook or a region
outside the transcript is a problem that is reported, never a label.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from unicodedata import normalize

from ...schemas import UNCLEAR, Code, Codebook, JsonValue, Rating, Verdict
from ...schemas.codebook import ErrorSource
from . import config
from .tasks import INSTRUCTIONS, NO_EVENT, NOTICE

SKIPPED = "skipped by the annotator"
UNKNOWN = "the annotator marked a label of it that is not in the codebook"
UNREAD = "the annotator did not confirm reading the log to its end"
QUOTE = 400
GAP = " … "
"""Between words that do not stand next to each other in the log."""
_HEAD = re.compile(r"\[(\d+)(?:, [\w ]+ after the start(?: \([\w ]+\))?)?\] ")
"""Begins the line of an event in a task."""


@dataclass
class AnnotationAnswers:
    """The verdicts of one annotation on all codes, and what in it could not be used."""

    verdicts: list[Verdict]
    problems: list[str] = field(default_factory=list)


def read(
    book: Codebook, annotation: dict[str, Any], seqs: Sequence[int], disputed: Collection[str] | None = None
) -> AnnotationAnswers:
    """The answers in an annotation; the lines of its transcript show the events `seqs`.

    Whoever was asked to settle the `disputed` codes settles no others: a code that they left unmarked they
    did not answer, and one that they marked is not theirs to overrule.
    """
    codes = [code.code for code in book.codes if disputed is None or code.code in disputed]
    if annotation.get("was_cancelled"):
        return AnnotationAnswers([Verdict(code, error=SKIPPED) for code in codes])
    by_name: dict[str, list[dict[str, Any]]] = {}
    problems = []
    controls = _controls(book)
    for item in map(_dict, _list(annotation.get("result"))):
        name = str(item.get("from_name"))
        if name in controls:
            by_name.setdefault(name, []).append(item)
        elif item.get("from_name") is not None:
            problems.append(f"control {name[:40]!r} is not one of this codebook's")
    notes = "\n".join(text for item in by_name.get(config.NOTES, []) for text in _texts(item, "text")) or None
    reader = _checklist_verdicts if config.is_checklist(book) else _question_verdicts
    answers = reader(book, by_name, seqs, problems)
    problems += _undisputed_problems(book, answers, codes)
    verdicts = [
        replace(verdict, rationale=notes)
        if len(book.codes) == 1 or verdict.label == book.positive
        else verdict
        for verdict in answers
        if verdict.code in codes
    ]
    return AnnotationAnswers(verdicts, problems)


def prediction(
    book: Codebook, ratings: Iterable[Rating], lines: Sequence[dict[str, Any]], seqs: Sequence[int]
) -> list[dict[str, JsonValue]]:
    """A judge's labels on one unit as the result of a Label Studio prediction."""
    labelled = [rating for rating in ratings if rating.label is not None]
    if not config.is_checklist(book):
        return [
            _result(
                config.answer_control(book, book.code(r.code)),
                "choices",
                {"choices": [config.attribute(r.label or "")]},
            )
            for r in labelled
        ]
    result: list[dict[str, JsonValue]] = []
    for name, label in ((config.PRESENT, book.positive), (config.CANNOT_TELL, UNCLEAR)):
        paths: list[JsonValue] = [
            [*config.code_path(book, book.code(r.code))] for r in labelled if r.label == label
        ]
        if paths:
            result.append(_result(name, "taxonomy", {"taxonomy": paths}))
    for rating in (r for r in labelled if r.label == book.positive):
        places = (_place(seq, lines, seqs) for seq in rating.cites if seq in seqs)
        result += [_region(book.code(rating.code), place, lines) for place in places]
    return result


def _controls(book: Codebook) -> set[str]:
    if config.is_checklist(book):
        controls = {config.EVIDENCE, config.PRESENT, config.CANNOT_TELL, config.READ, config.SOURCE}
    else:
        controls = {config.answer_control(book, code) for code in book.codes}
    return {*controls, config.NOTES}


def _undisputed_problems(book: Codebook, answers: Sequence[Verdict], codes: Collection[str]) -> Iterator[str]:
    """A problem for answers on codes other than `codes`, which were asked about; in a checklist for marks
    alone."""
    extra = [v for v in answers if v.code not in codes and v.label is not None]
    names = [v.code for v in extra if v.label == book.positive or not config.is_checklist(book)]
    if names:
        yield f"nobody disputes {', '.join(names)}: what it says of that is not counted"


def _question_verdicts(
    book: Codebook, rows: dict[str, list[dict[str, Any]]], seqs: Sequence[int], problems: list[str]
) -> list[Verdict]:
    return [
        _choice(book, code, rows.get(config.answer_control(book, code), []), problems) for code in book.codes
    ]


def _choice(book: Codebook, code: Code, items: list[dict[str, Any]], problems: list[str]) -> Verdict:
    choices = [text for item in items for text in _texts(item, "choices")]
    if len(choices) != 1:
        why = "not answered" if not choices else f"{len(choices)} answers where one is asked for"
        return Verdict(code.code, error=why)
    try:
        answers = {config.attribute(answer): answer for answer in book.answers}
        return Verdict(code.code, label=book.label(answers.get(choices[0], choices[0])))
    except ValueError as error:
        problems.append(str(error))
        return Verdict(code.code, error=str(error))


def _checklist_verdicts(
    book: Codebook, rows: dict[str, list[dict[str, Any]]], seqs: Sequence[int], problems: list[str]
) -> list[Verdict]:
    """Present where marked or ticked, unclear where said so, else absent: if the log was read to its end.

    A code is not absent where an unknown label may stand for it, such as a handmade one with another name of
    it.
    """
    codes = {config.code_title(code): code.code for code in book.codes}
    strange: list[list[str]] = []
    evidence = _regions(rows, codes, seqs, problems, strange)
    present = {*evidence, *_ticked_codes(rows.get(config.PRESENT, []), codes, strange)}
    unclear = _ticked_codes(rows.get(config.CANNOT_TELL, []), codes, strange)
    problems += [f"label {path[-1][:40]!r} is not in the codebook" for path in strange]
    doubtful = {code for path in strange for code in _possible_codes(book, path)}
    is_read = any(_texts(item, "choices") for item in rows.get(config.READ, []))
    absent = next(label for label in book.labels if label != book.positive)
    verdicts = []
    for code in (code.code for code in book.codes):
        if code in present:
            if code in unclear:
                problems.append(f"{code} is both {book.positive} and unclear: taken as {book.positive}")
            verdicts.append(_present(code, book.positive, evidence.get(code, [])))
        elif not is_read:
            verdicts.append(Verdict(code, error=UNREAD))
        elif code in doubtful and code not in unclear:
            verdicts.append(Verdict(code, error=UNKNOWN))
        else:
            verdicts.append(Verdict(code, label=UNCLEAR if code in unclear else absent))
    return verdicts


def _possible_codes(book: Codebook, path: Sequence[str]) -> set[str]:
    """The codes for which an unknown label may stand: the one with which it begins, else any that it names
    and all of its category."""
    *above, name = path
    matches = {code.code: _code_match(code.code, name) for code in book.codes}
    starts = {code: match.start() for code, match in matches.items() if match}
    beside = {code.code for code in book.codes if above and config.code_path(book, code)[:-1] == above}
    return {code for code, start in starts.items() if start == 0} or {*starts, *beside}


def _code_match(code: str, label: str) -> re.Match[str] | None:
    """Where a label names a code, however it is written, and not as a part of another: 1.1 is not in 1.10."""
    needle, haystack = (normalize("NFKC", text).casefold().strip(" ()[]") for text in (code, label))
    return re.search(rf"(?<!\w)(?<!\w\.){re.escape(needle)}(?!\.?\w)", haystack)


@dataclass(frozen=True)
class _Finding:
    cites: tuple[int, ...]
    quote: str
    source: ErrorSource | None


def _present(code: str, label: str, findings: list[_Finding]) -> Verdict:
    cites = tuple(sorted({seq for finding in findings for seq in finding.cites}))
    quote = GAP.join(finding.quote for finding in findings if finding.quote) or None
    sources = {finding.source for finding in findings if finding.source}
    source: ErrorSource | None = "both" if len(sources) > 1 else next(iter(sources), None)
    return Verdict(code, label=label, cites=cites, quote=quote, error_source=source)


def _regions(
    rows: dict[str, list[dict[str, Any]]],
    codes: dict[str, str],
    seqs: Sequence[int],
    problems: list[str],
    strange: list[list[str]],
) -> dict[str, list[_Finding]]:
    """Code -> the passages marked with it; labels that are none go to `strange`."""
    sources = {
        str(item.get("id")): next(iter(_texts(item, "choices")), None) for item in rows.get(config.SOURCE, [])
    }
    findings: dict[str, list[_Finding]] = {}
    for item in rows.get(config.EVIDENCE, []):
        value = _dict(item.get("value"))
        cites = _events(value, seqs)
        if not cites:
            problems.append("a marked passage lies outside the transcript: it cites no event")
        source = sources.get(str(item.get("id")))
        for name in _texts(item, "paragraphlabels"):
            if name not in codes:
                strange.append([name])
                continue
            error_source = source if source in config.SOURCES else None
            quote = _quote(value, seqs)[:QUOTE]
            findings.setdefault(codes[name], []).append(_Finding(cites, quote, error_source))  # type: ignore[arg-type]
    return findings


def _events(value: dict[str, Any], seqs: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted({*_line_seqs(value, seqs)} - {NO_EVENT}))


def _line_seqs(value: dict[str, Any], seqs: Sequence[int]) -> Sequence[int]:
    """The seqs of the lines that a passage touches; none where it lies outside the transcript."""
    try:
        first, last = int(value["start"]), int(value["end"])
    except (KeyError, OverflowError, TypeError, ValueError):
        return ()
    return seqs[first : last + 1] if 0 <= first <= last < len(seqs) else ()


def _quote(value: dict[str, Any], seqs: Sequence[int]) -> str:
    """The words of a passage as the log has them, without the heads that its lines have in a task.

    Words of the log may look like a head: only one that a line of the passage must begin with is ours.
    """
    heads = [str(seq) for seq in _line_seqs(value, seqs)[1:] if seq != NO_EVENT]
    first, *lines = str(value.get("text") or "").split("\n")
    head = None if value.get("startOffset") else _HEAD.match(first)
    parts = [first[head.end() :] if head else first]
    for line in lines:
        head = _HEAD.match(line)
        if head and head[1] in heads[:1]:
            heads = heads[1:]
            parts.append(line[head.end() :])
        else:
            parts[-1] += f"\n{line}"
    return GAP.join(part for part in parts if part)


def _ticked_codes(items: list[dict[str, Any]], codes: dict[str, str], strange: list[list[str]]) -> set[str]:
    """The codes ticked; paths to labels that are none go to `strange`."""
    present = set()
    for item in items:
        for choice in _list(_dict(item.get("value")).get("taxonomy")):
            path = [str(name) for name in _list(choice)] or [""]
            if path[-1] in codes:
                present.add(codes[path[-1]])
            else:
                strange.append(path)
    return present


def _texts(item: dict[str, Any], key: str) -> list[str]:
    return [str(text) for text in _list(_dict(item.get("value")).get(key))]


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _place(seq: int, lines: Sequence[dict[str, Any]], seqs: Sequence[int]) -> int:
    """Where the line of a cited event stands: notices and instructions before it have its seq, too."""
    places = [place for place, one in enumerate(seqs) if one == seq]
    return next((place for place in places if not _is_before(lines[place], seq)), places[0])


def _is_before(line: dict[str, Any], seq: int) -> bool:
    return line["author"] == INSTRUCTIONS or str(line["text"]).startswith(f"[{seq}] {NOTICE}")


def _region(code: Code, line: int, lines: Sequence[dict[str, Any]]) -> dict[str, JsonValue]:
    text = str(lines[line]["text"])
    value: dict[str, JsonValue] = {"start": str(line), "end": str(line), "startOffset": 0, "text": text}
    value |= {"endOffset": len(text), "paragraphlabels": [config.code_title(code)]}
    return _result(config.EVIDENCE, "paragraphlabels", value)


def _result(name: str, kind: str, value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {"from_name": name, "to_name": config.TRANSCRIPT, "type": kind, "value": value}
