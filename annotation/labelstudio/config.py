"""What an annotator sees and answers in Label Studio, made from a codebook.

A codebook with a few codes asks one question a code. One with many yes/no codes, such as 26 failure modes, is
a checklist: the annotator labels passages of the transcript with the modes they show (so a mode cites its
events), ticks modes in a taxonomy, and says that the log was read to its end. Names of controls are stable;
`answers` reads answers back. Nothing from a log gets into a configuration.
"""

from __future__ import annotations

import html
import re
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ...schemas import UNCLEAR, Code, Codebook, content_hash

TRANSCRIPT, UNIT, FINAL, GIVEN = "transcript", "unit", "final", "given"
EARLIER, LATER, WHOLE = "earlier", "later", "whole"
"""What lies before and after the part of the log around a unit; all of it, where the part has gaps."""
ANSWER, EVIDENCE, PRESENT, CANNOT_TELL, READ, SOURCE, NOTES = (
    "answer",
    "evidence",
    "present",
    "cannot_tell",
    "read",
    "error_source",
    "notes",
)
READ_TO_THE_END = "I read the log to its end: what I did not mark is absent"
READ_THE_UNIT = "I read all of what is asked about: what I did not mark is absent"
READ_THE_DISPUTE = "I read all that the dispute is about: what of it I did not mark is absent"
SOURCES = ("model", "scaffolding", "both")
_NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
FEW = 5
"""Up to so many codes are asked one by one."""
COLOURS = ("#d1495b", "#00798c", "#8f6a00", "#5b5f97", "#3f7d20", "#a23b72", "#8d5524")
_CSS = """
.coaudit-page { display: flex; gap: 24px; align-items: flex-start; }
.coaudit-log { flex: 3 1 0; min-width: 0; max-height: 86vh; overflow-y: auto; }
.coaudit-log [class*="container--"] { max-height: none; }
.coaudit-page [class*="dialoguetext--"] { white-space: pre-wrap; overflow-wrap: anywhere; }
.coaudit-page [class*="dialoguetext--"], .coaudit-final * { font: 13px/1.5 monospace !important; }
.coaudit-page [class*="time--"], .coaudit-unit [class*="wrapper_header--"] { display: none; }
.coaudit-plain [class*="selectAllBtnWrapper--"] { display: none; }
.coaudit-ask { flex: 2 1 0; min-width: 320px; position: sticky; top: 0; max-height: 92vh; overflow-y: auto; }
.coaudit-labels, .coaudit-labels span { font-size: 12px; }
.coaudit-end { border-top: 2px solid #00798c; margin-top: 12px; padding-top: 8px; }
.coaudit-unit { border: 2px solid #d1495b; border-radius: 6px; padding: 4px 10px; }
.coaudit-unit { max-height: 46vh; overflow-y: auto; }
.coaudit-final { white-space: pre-wrap; overflow-wrap: anywhere; border: 1px solid #bbb; padding: 6px 10px; }
"""
_NO_PANELS = """
[class*="sidepanels__wrapper_align_right"] { display: none !important; }
[class~="lsf-sidepanels"] { padding-right: 0 !important; }
"""
"""Label Studio's panels are for marked passages: where none are marked they are empty."""
_LAPTOP = f"@media (max-width: 1500px) {{{_NO_PANELS}}}"
"""A small screen is the log's: a passage is marked, chosen and taken back without the panels."""


def is_checklist(book: Codebook) -> bool:
    """Whether the codes are ticked off in one list instead of asked one by one."""
    return book.binary and len(book.codes) > FEW


def label_config(book: Codebook, *, adjudication: bool = False) -> str:
    """The labelling configuration, as XML; in an adjudication with what the annotators answered."""
    root = Element("View")
    SubElement(root, "Style").text = _CSS + (_LAPTOP if is_checklist(book) else _NO_PANELS)
    page = _view(root, "coaudit-page" if is_checklist(book) else "coaudit-page coaudit-plain")
    ask = _view(page, "coaudit-ask")
    _header(ask, book.question, 5)
    if book.unit != "trajectory":
        _dialogue(_view(ask, "coaudit-unit"), UNIT)
    if adjudication:
        _header(ask, "What the annotators answered differently: yours settles it", 5)
        _dialogue(_view(ask, "coaudit-unit"), GIVEN)
    if is_checklist(book):
        _checklist(ask, book)
    else:
        _questions(ask, book, required=not adjudication or len(book.codes) == 1)
    notes = SubElement(ask, "TextArea", name=NOTES, toName=TRANSCRIPT, rows="2", editable="true")
    notes.set("placeholder", "Notes: why, or what makes it hard (optional)")
    _definitions(ask, book)
    _log(_view(page, "coaudit-log"), book, adjudication)
    indent(root)
    return _in_xml(tostring(root, encoding="unicode"))


def is_folded(book: Codebook) -> bool:
    """Whether the log around the unit is shown and the rest on a click; a session needs it all."""
    return book.unit not in ("trajectory", "participant")


def is_parted(book: Codebook) -> bool:
    """Whether what one participant did is shown with what is next to it, and the whole log on a click."""
    return book.unit == "participant"


def _log(parent: Element, book: Codebook, adjudication: bool) -> None:
    if is_folded(book):
        _dialogue(_folded_view(parent, "Earlier in the log"), EARLIER)
        _dialogue(parent, TRANSCRIPT)
        _dialogue(_folded_view(parent, "Later in the log"), LATER)
    elif is_parted(book):
        _dialogue(parent, TRANSCRIPT)
        _dialogue(_folded_view(parent, "The whole log"), WHOLE)
    elif book.context == "none":
        _final(parent)
        _dialogue(_folded_view(parent, "The log, from its beginning"), TRANSCRIPT)
    else:
        _dialogue(parent, TRANSCRIPT)
        _final(parent)
    if is_checklist(book):  # at the end of what is shown: who ticks it has come past the rest
        end = _view(parent, "coaudit-end")
        read = SubElement(end, "Choices", name=READ, toName=TRANSCRIPT, choice="multiple", required="true")
        is_whole = book.unit == "trajectory"
        what = "the log to its end" if is_whole else "what is asked about"
        read.set("requiredMessage", f"Read {what} and tick there that you did")
        undisputed = READ_TO_THE_END if is_whole else READ_THE_UNIT
        SubElement(read, "Choice", value=READ_THE_DISPUTE if adjudication else undisputed)


def _final(parent: Element) -> None:
    _header(parent, "What the team ended with", 5)
    SubElement(_view(parent, "coaudit-final"), "Text", name=FINAL, value=f"${FINAL}")


def _folded_view(parent: Element, title: str) -> Element:
    panel = SubElement(SubElement(parent, "Collapse", open="false", bordered="true"), "Panel", value=title)
    return SubElement(panel, "View")


def config_hash(config: str) -> str:
    """What a project's description remembers of its configuration, to notice changes by hand."""
    return content_hash(re.sub(r"\s+", " ", config).strip())[:12]


def answer_control(book: Codebook, code: Code) -> str:
    """The name of the control that asks for one code."""
    if len(book.codes) == 1:
        return ANSWER
    return f"{ANSWER}_{book.codes.index(code) + 1}_{re.sub(r'[^A-Za-z0-9]+', '_', code.code)}"


def code_title(code: Code) -> str:
    """A code as an annotator sees it and as Label Studio's results name it: `C.1 Silent start`."""
    return attribute(code.name if code.name == code.code else f"{code.code} {code.name}")


def code_path(book: Codebook, code: Code) -> list[str]:
    """Where a code hangs in the taxonomy: its category, and itself."""
    above = [attribute(f"{c.category} {c.name}") for c in book.categories if c.category == code.category]
    return [*above, code_title(code)]


def instruction(book: Codebook) -> str:
    """The codebook as HTML, for the project's instruction page; all text in it is escaped."""
    parts = [
        f"<h2>{_text(book.title)}</h2>",
        f"<p><b>{_text(book.question)}</b></p>",
        f"<p>Answers: {_text(', '.join(book.answers))}. Codebook {_text(book.name)}@{book.version}.</p>",
        "".join(f"<p>{_text(p)}</p><br>" for p in book.guidance.strip().split("\n") if p.strip()),
    ]
    for code in book.codes:
        title = code_title(code) if len(book.codes) > 1 else code.name
        parts.append(f"<br><h3><b>{_text(title)}</b></h3><p>{_text(code.definition)}</p>")
        parts.append(_list("Counts", code.counts) + _list("Does not count", code.does_not_count))
        parts.append("".join(_example(e.text, e.reply, e.label, e.why) for e in code.examples))
    return "\n".join(part for part in parts if part)


def _evidence(parent: Element, book: Codebook) -> None:
    """The codes as labels for passages of the transcript, a row for each category."""
    box = _view(parent, "coaudit-labels")
    _header(box, "1 · Choose a mode, then mark the passage that shows it (Backspace takes it back)", 5)
    labels = SubElement(box, "ParagraphLabels", name=EVIDENCE, toName=TRANSCRIPT, showInline="true")
    names = [c.category for c in book.categories]
    for code in book.codes:
        colour = COLOURS[names.index(code.category) % len(COLOURS)] if code.category in names else COLOURS[0]
        label = SubElement(labels, "Label", value=code_title(code), background=colour)
        label.set("hint", attribute(code.definition))
    if any(code.error_source for code in book.codes):
        where = {"perRegion": "true", "whenTagName": EVIDENCE, "choice": "single", "showInline": "true"}
        _header(box, "What is behind the marked finding? (optional)", 5, perRegion=True)
        source = SubElement(box, "Choices", where, name=SOURCE, toName=TRANSCRIPT)
        for name in SOURCES:
            SubElement(source, "Choice", value=name)


def _checklist(parent: Element, book: Codebook) -> None:
    _evidence(parent, book)
    _header(parent, f"2 · {book.positive.capitalize()} without a passage to mark", 5)
    _taxonomy(parent, book, PRESENT)
    _header(parent, "3 · Can't be told from this log", 5)
    _taxonomy(parent, book, CANNOT_TELL)
    end = "the log" if book.unit == "trajectory" else "what is shown"
    _header(parent, f"4 · At the end of {end}, say that you read it", 5)


def _taxonomy(parent: Element, book: Codebook, name: str) -> None:
    tree = SubElement(parent, "Taxonomy", name=name, toName=TRANSCRIPT, leafsOnly="true", showFullPath="true")
    tree.set("placeholder", "choose modes ...")
    branches: dict[str, Element] = {}
    for code in book.codes:
        *above, leaf = code_path(book, code)
        branch = tree
        for name in above:
            if name not in branches:
                branches[name] = SubElement(tree, "Choice", value=name)
            branch = branches[name]
        SubElement(branch, "Choice", value=leaf, hint=attribute(code.definition))


def _questions(parent: Element, book: Codebook, *, required: bool) -> None:
    for code in book.codes:
        if len(book.codes) > 1:
            _header(parent, code_title(code), 5)
        attributes = {"choice": "single-radio", "showInline": "true"}
        if required:
            attributes |= {"required": "true", "requiredMessage": attribute(f"Answer: {code.name}")}
        choices = SubElement(
            parent, "Choices", attributes, name=answer_control(book, code), toName=TRANSCRIPT
        )
        for label in book.answers:
            SubElement(choices, "Choice", value=attribute(label), hint=attribute(_meaning(book, code, label)))


def _meaning(book: Codebook, code: Code, label: str) -> str:
    """What an answer says, in one line."""
    if label == UNCLEAR and UNCLEAR not in book.labels:
        return "It can't be told from what is shown"
    scale = [line for line in code.counts if line.startswith(f"{label}:")]
    return scale[0] if scale else (code.definition if label == book.finding else f"{code.name}: {label}")


def _definitions(parent: Element, book: Codebook) -> None:
    """The codebook, folded up; Markdown is the one tag that shows text with structure."""
    collapse = SubElement(parent, "Collapse", open="false", bordered="true")
    if book.guidance:
        _panel(collapse, "How to rate", _markdown(book.guidance.strip()))
    for code in book.codes:
        parts = [_markdown(code.definition), _bullets("Counts", code.counts)]
        parts.append(_bullets("Does not count", code.does_not_count))
        examples = [f"{e.text} ↩ {e.reply}" if e.reply else e.text for e in code.examples]
        lines = [
            f"{e.label}: {text} ({e.why})" if e.why else f"{e.label}: {text}"
            for e, text in zip(code.examples, examples, strict=True)
        ]
        parts.append(_bullets("Examples", tuple(lines)))
        _panel(
            collapse,
            code_title(code) if len(book.codes) > 1 else code.name,
            "\n\n".join(part for part in parts if part),
        )


def _panel(parent: Element, title: str, markdown: str) -> None:
    panel = SubElement(parent, "Panel", value=attribute(title))
    SubElement(SubElement(panel, "View"), "Markdown", value=markdown)  # a Panel takes no Markdown itself


def _view(parent: Element, name: str) -> Element:
    return SubElement(parent, "View", className=name)


def _header(parent: Element, text: str, size: int, *, perRegion: bool = False) -> None:
    where = parent
    if perRegion:
        where = SubElement(parent, "View", visibleWhen="region-selected")
    SubElement(where, "Header", value=attribute(text), size=str(size))


def _dialogue(parent: Element, name: str) -> None:
    attributes = {"layout": "dialogue", "nameKey": "author", "textKey": "text"}
    SubElement(parent, "Paragraphs", attributes, name=name, value=f"${name}")


def attribute(text: str) -> str:
    """A codebook's text as an attribute: one line, and no `$name`, which would be replaced by task data."""
    return _in_xml(" ".join(text.split()).replace("$", "＄"))


def _in_xml(text: str) -> str:
    """Text with what XML cannot hold shown as escapes."""
    return _NO_XML.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _text(text: str) -> str:
    """Text for the instruction page: all of it escaped, words in backticks set apart."""
    return re.sub(r"`([^`\n]+)`", r"<code><b>\1</b></code>", html.escape(text))


def _markdown(text: str) -> str:
    """Text with every character that Markdown, HTML or `$name` would take for its own made an entity."""
    safe = re.sub(r"[\\`*_{}\[\]<>#|~$&!]", lambda match: f"&#{ord(match[0])};", text)
    return re.sub(r"\n(?=\S)", "  \n", safe)


def _bullets(title: str, lines: tuple[str, ...]) -> str:
    if not lines:
        return ""
    return f"**{title}**\n\n" + "\n".join(f"* {_markdown(' '.join(line.split()))}" for line in lines)


def _list(title: str, lines: tuple[str, ...]) -> str:
    # Label Studio's page takes away bullets, spacing and any style that we give.
    items = "".join(f"<p>• {_text(line)}</p>" for line in lines)
    return f"<br><p><b>{title}</b></p>{items}" if lines else ""


def _example(text: str, reply: str | None, label: str, why: str | None) -> str:
    answer = f"<br>↩ {_text(reply)}" if reply else ""
    content = f"{_text(text)}{answer}<br><b>{_text(label)}</b> {_text(why or '')}"
    return f"<br><blockquote>{content}</blockquote>"
