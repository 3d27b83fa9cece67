"""What widespread frameworks write where a tool failed, and where a user's turn is a shell's.

A mark may say both: a return code or `"is_error": false` also tells success. Most say only failure, such as a
text that begins with `Error:`; a result without such a mark says nothing. docs/formats.md has the table.
"""

from __future__ import annotations

import itertools
import re
from typing import Literal, NamedTuple

from .....schemas import JsonValue
from . import contents

Status = Literal["succeeded", "failed"]
LOOK = 2000
"""Characters at each end of a text in which a mark is looked for."""
_CODE_KEYS = ("returncode", "return_code", "exit_code", "exitcode", "exitCode")
_CODE_TAG = re.compile(r"\s*<(?:returncode|return_code|exit_code|exitcode)>\s*(-?\d+)\s*<")
_CODE_HEAD = re.compile(r"\s*(?:Chunk ID: .*\n)?Wall time: .*\nProcess exited with code (-?\d+)\n")
"""How Codex begins the output of a command."""
_CODE_LINE = re.compile(
    r"\W*(?:(?:the |this )?(?:command|process|program|script)\b.{0,40}?)?"
    r"(?:exit|return)(?:ed)?(?: with)?[ _]?(?:exit |return )?(?:code|status)\b"
    r"(?: of| was| is)?[:= ]+(-?\d+)\b"
    r"(?=\W*$|[ .,]*\(execution )",
    re.IGNORECASE,
)
_ERROR = re.compile(
    r"\s*\W{0,3}(?i:(?:tool ?)?error)(?:\s*[:!\[(\n]|\s*$"
    r"|\s+(?:executing|calling|invoking|running|parsing|while|when|in|during|occurred)\b)"
    r"|\s*(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception):\s"
    r"|\s*(?i:(?:code |command |tool )?execution failed)\b"
    r"|\s*<(?:error|exception|tool_use_error)>"
    r"|\s*Traceback \(most recent call last\):"
)
_EXCEPTION = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit)\b")
_TRACEBACK = "Traceback (most recent call last)"
_ERROR_WORDS = re.compile(
    r"\b(?:errors?|exceptions?|failed|failure|traceback|denied|invalid|not found|no such|cannot|timed out)\b",
    re.IGNORECASE,
)
_OBSERVATION = re.compile(
    r"\s*(?:<(?:returncode|return_code|exit_code)>\s*-?\d+\s*<"  # mini-swe-agent
    r"|(?:OBSERVATION|Observation):\s"  # SWE-agent, OpenHands, ReAct, smolagents
    r"|EXECUTION RESULT of \["  # OpenHands
    r"|exitcode: -?\d+ \(execution "  # AutoGen
    r"|\[\w+(?: for '[^\n]*')?\] Result:"  # Cline, Roo Code
    r"|(?:New|Current) [Tt]erminal (?:[Oo]utput|[Ss]creen|[Ss]tate):)"  # Terminus
)
_PROMPT = re.compile(r"\n\(Open file: [^\n]*\)\n\(Current directory: [^\n]*\)\nbash-\$\s*\Z")
"""How SWE-agent's first versions end the output of a command, and the request, which has headings."""
_REQUEST = re.compile(r"^(?:ISSUE|PROBLEM STATEMENT|CHALLENGE DESCRIPTION|INSTRUCTIONS):", re.MULTILINE)
_REFUSAL = r"(?:denied|rejected|declined|refused)"
_TOOL = (
    r"(?:(?:this|the|your) )?(?:(?:tool|command|execution|action|operation|edit|exec|patch)"
    r"(?: (?:use|call|execution|invocation))?|permission(?: to (?:use|run|execute) [^.\n]{1,60}?)?"
    r"|access to (?:the )?tool(?: execution)?)"
)
_BY_USER = (
    # Claude Code; Gemini CLI, Cline, Roo Code, LangChain, opencode, Vercel's AI SDK; Goose; VS Code
    r"(?:the )?user (?:does(?:n[\u2019']t| not) want to (?:proceed with this tool use|take this action)\b"
    rf"|(?:did(?:n[\u2019']t| not) (?:allow|approve|permit)|(?:has )?{_REFUSAL}) {_TOOL}"
    r"|did(?:n[\u2019']t| not) (?:allow|approve|permit)(?: it| this| that)?"
    rf"|has {_REFUSAL} to run this tool"
    r"|chose to skip the tool call)"
)
_VETO = re.compile(
    r"\s*(?:<tool_use_error>|\[\w[^\]\n]{0,200}\]\s*(?:(?:result|reason):\s*)?|(?:error|failed):\s*)?(?:"
    rf"{_BY_USER}|(?:the )?(?:exec(?:ution)?|tool|action|command|operation|edit|patch)\b[\w ]{{0,30}}?"
    rf"\b{_REFUSAL} by (?:the )?user)"
    r"(?:\s*(?:[.!,;:(\n<\"]|$)|\s+(?:and (?:provided|said)|with|for|right now|because)\b)",
    re.IGNORECASE,
)
_COMMENT = re.compile(r"\bthe user said:|(?P<tag><feedback>)|\bwith reason:|\bwith the following feedback:")
"""What a comment follows, to its closing tag or to the end."""
ASKING = "AskUserQuestion"
"""Claude Code's tool that asks the person, whose answers are its result."""
_ANSWERED = re.compile(
    r"User has answered your questions?: (?!\. You can now continue)(.+?)"
    r"(?:\. You can now continue with the user[\u2019']s answers in mind\.?)?",
    re.DOTALL,
)
_TURN_TO = r"(?:ask_followup_question|attempt_completion|plan_mode_respond)"
"""The tools of Cline and Roo Code that a person answers."""
_SPOKEN = re.compile(
    rf"(?:^\[{_TURN_TO}\b[^\n]*\] Result:\s*(?:The user has provided\b[^\n]*?(?:\n\s*)?)?"
    r"|^The user (?:approved this operation and|has) provided\b[^\n]*?(?:\n\s*)?)"
    r"<(?P<tag>answer|feedback|user_message)>",
    re.MULTILINE,
)
"""What a person's words follow. No pattern looks for their end, nor for the space around them: one that does
takes for ever on a text without it."""
_BLOCK = re.compile(
    r"\s*(?:# AGENTS\.md instructions\b[^\n]*\n\s*(?=<INSTRUCTIONS>))?<("
    r"environment_context|environment_details"  # Codex; Cline, Roo Code
    r"|user_instructions|INSTRUCTIONS|turn_aborted"  # Codex
    r"|system-reminder|task-notification|(?:local-command|bash)-(?:stdout|stderr|caveat)"  # Claude Code
    r")>"
)
_CONTINUED = "This session is being continued from a previous conversation that ran out of context."
_SAID_BY_SCAFFOLD = (
    # Claude Code
    "Caveat: The messages below were generated by the user while running local commands. DO NOT",
    f"{_CONTINUED} The conversation is summarized below",
    f"{_CONTINUED} The summary below",
)


def status(content: JsonValue) -> Status | None:
    """Whether a result says that it failed or succeeded; None where it says neither."""
    result = _result_object(content)
    if isinstance(result, dict):
        return _object_status(result)
    text = contents.plain_text(content)
    code = _code(text)
    if code is not None:
        return "failed" if code else "succeeded"
    return "failed" if _fails(text) else None


def error(content: JsonValue) -> str | None:
    """What a result gives as its error, where that is a text of its own."""
    result = _result_object(content)
    errors = (result.get("error"), result.get("error_code")) if isinstance(result, dict) else ()
    return next((one for one in errors if isinstance(one, str) and one), None)


class Veto(NamedTuple):
    """A person kept a tool from running."""

    comment: str | None
    """What they said about it, where that is logged."""


def veto(content: JsonValue) -> Veto | None:
    """The veto in a result that says nothing but that a person did not let the tool run; None in any
    other."""
    text = error(content) or contents.plain_text(content)
    if not _VETO.match(text[:LOOK]):
        return None
    closing = text.rfind("</feedback>")
    marks = (one for one in _COMMENT.finditer(text) if not one["tag"] or one.end() <= closing)
    mark = next(marks, None)
    if mark is None:
        return Veto(None)
    end = text.find("</feedback>", mark.end()) if mark["tag"] else None
    return Veto(text[mark.end() : end].strip() or None)


def answered_words(content: JsonValue, tool: str | None) -> str | None:
    """What a person answered to a tool that asks them; None in the result of any other tool."""
    match = _ANSWERED.fullmatch(contents.plain_text(content).strip()) if tool == ASKING else None
    if match is None and re.fullmatch(_TURN_TO, tool or ""):
        return "\n".join(spoken_words(f"[{tool}] Result:\n{contents.plain_text(content)}")) or None
    return match[1] if match else None


def spoken_words(text: str) -> list[str]:
    """What a person answered, or said of a result, in a turn that a scaffold wrote."""
    words, position = list[str](), 0
    unclosed = set[str]()
    while mark := _SPOKEN.search(text, position):
        position = mark.end()
        tag = f"</{mark['tag']}>"
        end = -1 if tag in unclosed else text.find(tag, position)
        if end < 0:
            unclosed.add(tag)
            continue
        words.append(text[position:end].strip())
        position = end + len(tag)
    return [one for one in words if one]


def reads_like_error(content: JsonValue) -> bool:
    """Whether the first line of a result reads like an error, which is no more than a reason to look."""
    first = contents.plain_text(content)[:LOOK].strip().partition("\n")[0]
    return _ERROR_WORDS.search(first[:200]) is not None


def is_observation(text: str, *, has_agent: bool = True) -> bool:
    """Whether a turn under a user's role is a command's output, which a scaffold puts there; what only ends
    like one is none before an agent spoke (`has_agent`)."""
    if _OBSERVATION.match(text):
        return True
    return has_agent and _PROMPT.search(f"\n{text[-LOOK:]}") is not None and not _REQUEST.search(text)


def is_surroundings(text: str) -> bool:
    """Whether a turn under a user's role is nothing but what a scaffold tells the model: where it runs, a
    project's rules, what a person's own command printed, a summary of what was said."""
    if text.startswith(_SAID_BY_SCAFFOLD):
        return True
    end = 0
    while block := _BLOCK.match(text, end):
        closing = f"</{block[1]}>"
        place = text.find(closing, block.end())
        if place < 0:
            return False
        end = place + len(closing)
    return end > 0 and not text[end:].strip()


def is_from_scaffold(text: str, *, has_agent: bool) -> bool:
    """Whether a scaffold, and no person, put a turn under a user's role; `has_agent` says whether an agent
    spoke before."""
    return is_observation(text, has_agent=has_agent) or is_surroundings(text)


def _result_object(content: JsonValue) -> JsonValue:
    """The object that a result is or holds as JSON text; None without one."""
    if isinstance(content, dict):
        return content
    text = contents.plain_text(content)
    return contents.arguments(text)[0] or None if text.lstrip().startswith("{") else None


def _object_status(result: dict[str, JsonValue]) -> Status | None:
    """Flags of failure count before those of success, and a return code before `error`."""
    metadata = result.get("metadata")  # where Codex has it
    for key, holder in itertools.product(
        _CODE_KEYS, (result, metadata if isinstance(metadata, dict) else {})
    ):
        code = holder.get(key)
        if isinstance(code, int) and not isinstance(code, bool):
            return "failed" if code else "succeeded"
    flags = [result.get(key) for key in ("is_error", "isError")]
    good = [result.get(key) for key in ("success", "ok")]
    # An API that has a code for each result has 0 for none, and some write it as a text.
    error_code = str(result.get("error_code") or "").strip("0")
    if result.get("error") or error_code or True in flags or False in good:
        return "failed"
    return "succeeded" if "error" in result or False in flags or True in good else None


def _code(text: str) -> int | None:
    """The return code that stands first in a text, or on its first or last line."""
    if tag := _CODE_TAG.match(text) or _CODE_HEAD.match(text):
        return int(tag[1])
    head, tail = text[:LOOK].strip(), text[-LOOK:].strip()
    for line in (head.partition("\n")[0], tail.rpartition("\n")[2]):
        if result := _CODE_LINE.match(line):
            return int(result[1])
    return None


def _fails(text: str) -> bool:
    """An error in the first words, or a traceback with what was raised on the last line."""
    if _ERROR.match(text[:LOOK]):
        return True
    last = text[-LOOK:].strip().rpartition("\n")[2]
    return _TRACEBACK in text and _EXCEPTION.match(last) is not None
