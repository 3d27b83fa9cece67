"""The forms of a judge's answer, each with what it asks for and how it is read: they cannot drift apart."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast, get_args

from ...schemas import UNCLEAR, Codebook, Event, Verdict
from ...schemas.base import repeated
from ...schemas.codebook import ErrorSource
from ..clients import Reply
from ..clients.protocol import BadAnswer, CutOff, Form, Refused, Token
from .quoting import occurs, phrases

_THOUGHT = re.compile(r"\A(?:\s*<think>|(?!\s*[{`])).*?</think>", re.DOTALL)
"""Where a chat template begins the thought itself, the text has only its end (`</think>`)."""
_FENCE = "```"
_MARKS = " \t\r\n\"'`*."
"""Characters that models put around a label."""
_REFUSAL = re.compile(
    r"\A\W*(?:i(?:'|’)?m (?:very )?sorry|i am sorry|sorry,|i (?:cannot|can(?:'|’)t|won(?:'|’)t|am unable|"
    r"am not able|must decline)|as an ai)",
    re.IGNORECASE,
)
UNSURE = 0.01
"""Share of the mass of all labels that is left out of a probability where it may be of several."""
UNTOLD = 0.05
"""How much mass, as a share of a label's own, others may have without a word, where none of them is told."""
QUOTE_LENGTH = 200
MOST_CITED = 32
EVENT = {"type": "integer", "minimum": 0, "maximum": 99_999}
"""Without bounds a small model may write digits, or citations, until its tokens run out."""
_NUMBER = re.compile(r"\s*\[?(\d{1,9})\]?\s*")


def words(reply: Reply) -> str:
    """The text of a reply without a reasoning model's thoughts; Refused or BadAnswer where there is none."""
    if reply.refusal:
        raise Refused(f"the model refused: {reply.refusal[:500]}")
    text = _THOUGHT.sub("", reply.text).strip()
    if reply.finish == "content_filter":
        raise Refused(f"the endpoint's content filter cut the answer: {text[:500]!r}")
    if len(text) >= 2 * len(_FENCE) and text.startswith(_FENCE) and text.endswith(_FENCE):
        text = text[len(_FENCE) : -len(_FENCE)].removeprefix("json").strip()
    if reply.finish == "length":
        raise CutOff(f"it was cut off after {reply.completion_tokens} tokens: {text[:80]!r}")
    if not text:
        raise BadAnswer("it is empty")
    return text


@dataclass(frozen=True)
class Choice:
    """One label for the one code of a codebook."""

    codebook: Codebook

    @property
    def instruction(self) -> str:
        """What the prompt says about the answer."""
        *most, last = self.codebook.answers
        return f"Answer with one label and nothing else: {', '.join(most)} or {last}."

    def form(self) -> Form:
        """For endpoints that can hold a model to it."""
        schema = {
            "type": "object",
            "properties": {"answer": {"type": "string", "enum": list(self.codebook.answers)}},
            "required": ["answer"],
            "additionalProperties": False,
        }
        return Form(choices=self.codebook.answers, schema=schema)

    def parse(self, reply: Reply, events: Sequence[Event]) -> list[Verdict]:
        """The verdict; BadAnswer for anything but a label of the codebook."""
        text = words(reply)
        answer = _object(text).get("answer", text) if text.startswith("{") else text
        try:
            label = _label(self.codebook, answer)
        except ValueError as error:
            if _REFUSAL.match(text):
                raise Refused(f"the model refused: {text[:500]}") from error
            raise BadAnswer(str(error)) from error
        probability = label_probability(reply.tokens, label, self.codebook.answers)
        return [Verdict(self.codebook.codes[0].code, label, probability=probability)]


@dataclass(frozen=True)
class Findings:
    """For every code of a codebook a label, the events it rests on, a quotation and the likely source."""

    codebook: Codebook

    @property
    def instruction(self) -> str:
        """What the prompt says about the answer."""
        rule = f". `{self.codebook.finding}` needs at least one" if self.codebook.finding else ""
        lines = [
            "Answer with one JSON object and nothing else. It has one field for every code, in this order: "
            f"{', '.join(code.code for code in self.codebook.codes)}. The value of each is an object:",
            f'- "answer": {_quoted_list(self.codebook.answers)}',
            '- "events": the numbers of the events that the answer rests on, [] where there is none' + rule,
            '- "quote": a few words, copied exactly from one of these events, "" where there are none',
        ]
        if self.codebook.finding:
            lines.append('- "source": "model" for the language model, "scaffolding", "both", or ""')
        return "\n".join(lines)

    def form(self) -> Form:
        """One schema for a codebook, whatever the trajectory, so that a server compiles it once."""
        fields: dict[str, Any] = {
            "answer": {"type": "string", "enum": list(self.codebook.answers)},
            "events": {"type": "array", "items": EVENT, "maxItems": MOST_CITED},
            "quote": {"type": "string", "maxLength": QUOTE_LENGTH},
        }
        if self.codebook.finding:
            fields["source"] = {"type": "string", "enum": ["", *get_args(ErrorSource)]}
        finding = {
            "type": "object",
            "properties": fields,
            "required": list(fields),
            "additionalProperties": False,
        }
        codes = [code.code for code in self.codebook.codes]
        schema = {
            "type": "object",
            "properties": dict.fromkeys(codes, finding),
            "required": codes,
            "additionalProperties": False,
        }
        return Form(schema=schema, max_tokens=1000 + 150 * len(codes), usual_tokens=500 + 60 * len(codes))

    def parse(self, reply: Reply, events: Sequence[Event]) -> list[Verdict]:
        """A verdict a code. A finding that cites what is not there is an error; the others hold."""
        findings = _object(words(reply))
        missing = [code.code for code in self.codebook.codes if code.code not in findings]
        if missing:
            raise BadAnswer(f"these codes are missing: {', '.join(missing)}")
        by_seq: dict[int, list[Event]] = {}
        for event in events:
            by_seq.setdefault(event.seq, []).append(event)
        return [self._verdict(code.code, findings[code.code], by_seq) for code in self.codebook.codes]

    def _verdict(self, code: str, finding: Any, events: Mapping[int, list[Event]]) -> Verdict:
        if isinstance(finding, str):
            finding = {"answer": finding}
        if not isinstance(finding, dict):
            raise BadAnswer(f"{code} must be an object, got {str(finding)[:80]!r}")
        try:
            label = _label(self.codebook, finding.get("answer"))
        except ValueError as error:
            raise BadAnswer(f"{code}: {error}") from error
        positive = self.codebook.finding
        if label != positive and (positive or label == UNCLEAR or not finding.get("events")):
            return Verdict(code, label)
        cites = _cites(code, finding.get("events") or [])
        text = str(finding.get("quote") or "").strip()[:QUOTE_LENGTH]
        quote = text if phrases(text) else None
        if problem := _problem(cites, quote, events):
            return Verdict(code, error=f"unsupported finding: {problem}")
        source = finding.get("source")
        error_source = cast("ErrorSource", source) if source in get_args(ErrorSource) else None
        return Verdict(code, label, cites=cites, quote=quote, error_source=error_source)


Answer = Choice | Findings


def answer_of(codebook: Codebook) -> Answer:
    """The form that a codebook needs: a choice for one code, findings for several."""
    return Choice(codebook) if len(codebook.codes) == 1 else Findings(codebook)


def label_probability(tokens: Sequence[Token], label: str, labels: Sequence[str]) -> float | None:
    """The probability of the label that was given, among all labels; None where the endpoint offers none.

    At the token where the label begins: the mass of the tokens that begin it and no other label, as a share
    of the mass of all that begin a label. None too where no such token begins this label, where more than
    `UNSURE` of the mass may be its or another's (`1` of 1 and 10), and where no rival of its token is told,
    or none that begins another label (`yes`, `Yes`) while the mass that is not told is more than `UNTOLD` of
    the label's: the one label with a mass would always have the probability 1.
    """
    text = "".join(token.text for token in tokens).casefold()
    start, end = text.rfind(label.casefold()), 0
    for token in tokens if start >= 0 else ():
        end += len(token.text)
        if end > start:
            return _share(token, label, labels)
    return None


def _share(token: Token, label: str, labels: Sequence[str]) -> float | None:
    if all(text == token.text for text, _ in token.rivals):
        return None
    own = others = unsure = rest = 0.0
    for text, logprob in {token.text: token.logprob, **dict(token.rivals)}.items():
        start = text.strip(" \t\n\"'").casefold()
        fits = [name for name in labels if start and name.casefold().startswith(start)]
        mass = math.exp(min(0.0, logprob))
        if fits == [label]:
            own += mass
        elif label in fits:
            unsure += mass
        elif fits:
            others += mass
        else:
            rest += mass
    is_told = others > 0 or 1 - own - unsure - rest <= UNTOLD * own
    is_known = own > 0 and is_told and unsure <= UNSURE * (own + others + unsure)
    return min(1.0, own / (own + others)) if is_known else None


def _label(codebook: Codebook, answer: Any) -> str:
    """The label that an answer is, as it stands or else with nothing but marks around it (the longest);
    ValueError for none."""
    text = "" if answer is None else str(answer)  # null is no word, such as a label `none`
    try:
        return codebook.label(text)
    except ValueError:
        matches = [label for label in codebook.answers if _is_marked(label.casefold(), text.casefold())]
        return max(matches, key=len) if matches else codebook.label(text.strip(_MARKS))


def _is_marked(label: str, text: str) -> bool:
    """Whether a text is a label with nothing but marks around it."""
    before, match, after = text.partition(label)
    return bool(match) and not (before + after).strip(_MARKS)


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text, object_pairs_hook=_once)
        if "\\u" in text:  # an escape may be half of a character, which no ledger can hold
            value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        if _REFUSAL.match(text):
            raise Refused(f"the model refused: {text[:500]}") from error
        raise BadAnswer(f"it is not JSON ({error}): {text[:80]!r}") from error
    if not isinstance(value, dict):
        raise BadAnswer(f"it must be a JSON object, got {text[:80]!r}")
    return value


def _once(items: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; BadAnswer where it has a key twice, of which a parser keeps the last without a word."""
    value = dict(items)
    if len(value) < len(items):
        twice = next(iter(repeated(key for key, _ in items)))
        raise BadAnswer(f"it has the key {twice[:40]!r} twice")
    return value


def _cites(code: str, value: Any) -> tuple[int, ...]:
    items = value if isinstance(value, list) else [value]
    numbers = [_NUMBER.fullmatch(str(item)) for item in items]
    if not all(numbers):
        raise BadAnswer(f"{code}: events must be numbers, got {str(value)[:80]}")
    return tuple(dict.fromkeys(int(match[1]) for match in numbers if match))


def _problem(cites: tuple[int, ...], quote: str | None, events: Mapping[int, list[Event]]) -> str | None:
    if not cites:
        return "it cites no event"
    if unknown := [seq for seq in cites if seq not in events]:
        return f"it cites event {', '.join(map(str, unknown))}, which the judge was not shown"
    if quote and not any(occurs(quote, event) for seq in cites for event in events[seq]):
        return (
            f"its quotation {quote!r} is in none of the events that it cites ({', '.join(map(str, cites))})"
        )
    return None


def _quoted_list(labels: Sequence[str]) -> str:
    return ", ".join(f'"{label}"' for label in labels)
