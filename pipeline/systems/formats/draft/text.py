"""Turns in plain texts: the marks that begin them, and fenced blocks in them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from ..fields.paths import expression
from ..fields.roles import role_of
from ..fields.values import seconds_of
from .names import time_formats
from .result import Guess

_NAME = r"[^\W\d_][\w.'’/-]*(?: [^\W\d_a-z][\w.'’/-]*){0,3}(?: ?\([^)\n]{1,40}\))?"
"""The name of a speaker: up to four words, of which the later ones begin with a capital or have no ASCII
letter for one, and maybe something in brackets."""
_NO_SIGN = r"\x7f\s\u200e\u200f“”„«»："
"""Characters that are in no name; all others that are not ASCII may be, such as pictures."""
_LETTER = rf"[^\x00-@\[-`{{-~{_NO_SIGN}]"
"""A letter or picture."""
_WORD = rf"(?:[\d&#@_]|{_LETTER})(?:[!#$%&'+,./\d@_-]|{_LETTER})*"
_NAME_OF_ANY = rf"(?=[^\n:]{{0,60}}?{_LETTER}){_WORD}(?: {_WORD}){{0,5}}"
"""A name behind a date and a time, where its words may begin with small letters, digits or any of & # @ _."""
_PERSON = rf"(?:{_NAME_OF_ANY}(?: ?\([^)\n]{{1,40}}\))?|\+\d[\d\s()-]{{5,20}}\d)"
"""The same with something in brackets, or a telephone's number."""
_DATE = r"(?P<time>\d{1,4}[/.-]\d\d?[/.-]\d{2,4},? \d\d?:\d\d(?::\d\d)?(?:\s?[APap][Mm])?)"
UNTIMED = (
    r"^\[[^\]\n]{5,40}\][ \t]+(?P<speaker>" + _NAME + r")[ \t]*[:>][ \t]*",
    r"^\[?\(?\d\d?:\d\d(?::\d\d)?(?: ?[AP]M)?\)?\]?(?: -)?[ \t]+(?P<speaker>" + _NAME + r")[ \t]*[:>][ \t]*",
)
"""Marks with a time of day, or anything in square brackets, before the name: no time is read from them."""
BOLD = r"^(?:-{3,}[ \t]*\n\s*_?|_)\*\*(?P<speaker>" + _NAME + r")\*\*_?[ \t]*$"
"""A name in bold below a line of dashes (Cursor), or in bold italics (SpecStory). Headings in what an agent
says look like that, too, so somebody must be known by their name, and other marks come first."""
_BETWEEN_TURNS = r"(?:\|EOM\||<(?:SEP|sep|EOS|eos|EOT|eot)>|\[SEP\])"
PATTERNS = (
    r"^(?:(?:\d+|(?<=\n\n)[^\n]+)[ \t]*\n)?(?:\d+:)?\d\d:\d\d[.,]\d{3} --> [^\n]*\n"
    r"(?:<v(?:\.[\w.]+)? )?(?P<speaker>" + _NAME + r")(?:>|:)[ \t]*",
    r"^<\|(?:im_start\|>)?(?P<speaker>[a-z_]+)(?:\|>)?[ \t]*\n?",
    r"^(?:#{1,6}|\*\*|\[)[ \t]*(?P<speaker>" + _NAME + r")(?:\*\*|\])?[ \t]*:(?:\*\*)?[ \t]*",
    r"^#{1,6}[ \t]+(?P<speaker>" + _NAME + r")[ \t]*$",
    r"^\[?(?P<time>\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?\S*?)\]?(?: -|,|\|)?[ \t]+(?P<speaker>"
    + _NAME
    + r")[ \t]*[:>][ \t]*",
    # WhatsApp puts an invisible mark before some lines, and ~ before who is no contact. Its own lines are
    # nobody's: those without a name, which have that mark where times are in brackets.
    r"^\u200e?\["
    + _DATE
    + r"\](?: [-–])? (?:(?:~\s?)?(?P<speaker>"
    + _PERSON
    + r")[ \t]*:[ \t]*|(?=\u200e))",
    r"^\u200e?" + _DATE + r" [-–] (?:(?:~\s?)?(?P<speaker>" + _PERSON + r")[ \t]*:[ \t]*|(?=\S))",
    # DiscordChatExporter
    r"^\[" + _DATE + r"\][ \t]+(?P<speaker>" + _NAME_OF_ANY + r")(?: \(pinned\))?[ \t]*$",
    r"^\[?" + _DATE + r" (?P<speaker>" + _NAME + r")[ \t]*:[ \t]*",
    *UNTIMED,
    # Transcripts of meetings (Teams, Otter)
    r"^(?P<speaker>" + _NAME + r")[ \t]{2,}\d\d?:\d\d(?::\d\d)?[ \t]*$",
    # What is copied from a page of ChatGPT begins its turns so.
    r"^(?:#{1,6}[ \t]+)?(?P<speaker>" + _NAME + r") said:[ \t]*$",
    r"^(?P<speaker>" + _NAME + r") \((?:to|->|→) [^)\n]*\)[ \t]*:[ \t]*",
    r"^[ \t]*(?P<speaker>" + _NAME + r")[ \t]*:(?:[ \t]+|[ \t]*$)",
    r"^[ \t]*(?P<speaker>" + _NAME + r")[ \t]*：[ \t]*",
    # In one line, with a mark between turns (MathDial)
    r"(?:^(?=[^\n]*"
    + _BETWEEN_TURNS
    + ")|"
    + _BETWEEN_TURNS
    + r")[ \t]*(?P<speaker>"
    + _NAME
    + r")[ \t]*:[ \t]*",
    r"^-{5,}[ \t]*(?P<speaker>" + _NAME + r")[ \t]*-{5,}[ \t]*$",
    r"^={3,}[ \t]*(?P<speaker>" + _NAME + r")[ \t]*={3,}[ \t]*$",
    BOLD,
)
"""How widespread transcripts begin a turn, the most telling first."""
SPEAKERS = 14
"""Most different names in a few texts; with more, what looks like a mark is part of the text."""
CALLS = (
    r"(?:\A\s*\[?|, ?)(?P<action>[A-Za-z_][\w.]*)\((?P<arguments>[\s\S]*?)\)(?=\]?\s*\Z|, ?[A-Za-z_][\w.]*\()"
)
"""Calls as Python writes them, one or a list of them, where they are all of a text."""
TAGGED = (
    r"""<function=(?P<action>[^>\s]+)>(?P<arguments>[\s\S]*?)</function>""",
    r"""<tool_call>\s*\{\s*["']name["']:\s*["'](?P<action>[^"']+)["'],\s*"""
    r"""["']arguments["']:\s*(?P<arguments>\{[\s\S]*?\})\s*\}\s*</tool_call>""",
    r"""<tool_call>\s*\{\s*["']arguments["']:\s*(?P<arguments>\{[\s\S]*?\}),\s*"""
    r"""["']name["']:\s*["'](?P<action>[^"']+)["']\s*\}\s*</tool_call>""",
)
"""Calls in tags, as models write them that have no field for calls (OpenHands, SWE-smith, Qwen, Hermes)."""
FENCED = r"^```(?P<speaker>\w*)[ \t]*\n(?P<text>[\s\S]*?)\n?```[ \t]*$"
"""A whole fenced block, with the language that it is marked as."""
FENCE = re.compile(r"```([\w-]+)[ \t]*\n[\s\S]*?\n[ \t]*```")
LAST_FENCE = r"```[ \t]*\n(?P<command>(?:(?!```)[\s\S])*?)\n?[ \t]*```\s*\Z"
"""An unmarked block at the end of a text."""


def pattern_of(texts: Sequence[str]) -> str | None:
    """The pattern that cuts the texts into turns of a few speakers; None where none does."""
    best: tuple[float, str] | None = None
    for pattern in PATTERNS:
        names = speakers(texts, pattern)
        turns = sum(names.values())
        if turns < 2 * len(texts) * 0.6 or not 2 <= len(names) <= SPEAKERS + len(texts) // 4:
            continue
        if pattern == BOLD and not any(role_of(name).is_known for name in names):
            continue
        again = sum(n for n in names.values() if n > 1 or len(texts) == 1) / turns
        score = again * turns / len(names)
        if again > 0.6 and (best is None or score > best[0] * 1.3):
            best = (score, pattern)
    return best[1] if best else None


def lines_of_turns(text: str, pattern: str) -> int:
    """How many lines have several turns each; 0 where most lines have not."""
    lines = [line for line in text.splitlines() if line.strip()]
    count = sum(len(expression(pattern).matches(line)) > 1 for line in lines)
    return count if count > max(1, len(lines) / 2) else 0


def fence_language(texts: Sequence[str]) -> str | None:
    """The commonest language of fenced code, in pages where each block of it is followed by an unmarked one;
    None in others."""
    languages: Counter[str] = Counter()
    for text in texts:
        blocks = [match["speaker"] for match in expression(FENCED).matches(text)]
        pairs = sum(bool(one) and not two for one, two in pairwise(blocks))
        if pairs < 1 or pairs < 0.4 * len(blocks):
            return None
        languages.update(one for one in blocks if one)
    return languages.most_common(1)[0][0] if languages else None


def speakers(texts: Sequence[str], pattern: str) -> Counter[str]:
    """Name -> turns that begin with it, without those of nobody."""
    return Counter(name for name in _group_values(texts, pattern, "speaker") if name)


def set_time(guess: Guess, texts: Sequence[str], pattern: str) -> None:
    """Set the times with which turns begin as the events' time, where they are ISO 8601 or written in one
    known way; where two ways are possible, only note these."""
    times = _group_values(texts, pattern, "time") if "(?P<time>" in pattern else []
    iso = all(seconds_of(text) is not None for text in times)
    formats = [] if iso else time_formats(times)
    if formats:
        guess.time_path, guess.time_formats = f"{guess.at}[].time", formats
    if times and (iso or len(formats) == 1):
        guess.event["time"] = f"{guess.at}[].time"


def _group_values(texts: Sequence[str], pattern: str, name: str) -> list[str]:
    compiled = expression(pattern)
    return [match[name] for text in texts for match in compiled.matches(text)]
