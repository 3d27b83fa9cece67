"""What logs call their fields, and tests of what a field's values look like."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from datetime import datetime

from ..fields.mapping import ROLES
from ..fields.roles import role_of
from ..fields.values import SECONDS, seconds_of
from .survey import PathSummary

TYPES_OF_SPEAKERS = (
    *("sender_type", "sender_role", "author_type", "author_role", "speaker_type", "participant_type"),
)
"""Fields that say what whoever speaks is, beside others that say who it is."""
ACCOUNTS = ("user_name", "username", "user")
"""Fields with a person's account."""
NAMES: dict[str, tuple[str, ...]] = {
    "role": (
        *(
            "role",
            *TYPES_OF_SPEAKERS,
            "speaker",
            "from",
            "author",
            "sender",
            "actor",
            "source",
            "speaker_role",
            "role_type",
            "who",
        ),
        *("participant", "agent", "agent_name", "user_type", "speaker_id", "interlocutor", "from_id"),
        *("sprecher", "sprecherin", "rolle", "absender", "locuteur", "émetteur"),
        *("hablante", "emisor", "remitente", "falante", "remetente"),
        *(
            "character",
            "by",
            "turn",
            "type",
            "agent_role",
            "username",
            "user",
            "0",
            "name",
            "nickname",
            "nick",
            "direction",
        ),
    ),
    "actor": (
        *("name", "agent", "agent_name", "actor", "speaker_name", "author_name", "sender", "participant"),
        *("login", "role_name", "sender_name", *ACCOUNTS),
    ),
    "text": (
        *(
            "text",
            "content",
            "message",
            "utterance",
            "value",
            "body",
            "msg",
            "response",
            "thought",
            "thoughts",
        ),
        *("output", "reasoning", "model_output", "completion", "utterances", "say", "sentence", "1", "query"),
        *("chat", "comment", "line", "data", "said", "says", "speech"),
        *("nachricht", "äußerung", "inhalt", "texte", "énoncé", "contenu", "mensaje", "texto", "mensagem"),
    ),
    "time": (
        "timestamp",
        "time",
        "ts",
        "date_unixtime",
        "created_at",
        "created",
        "datetime",
        "date",
        "sent_at",
        "sent",
        "posted_at",
        "at",
        "start",
        "t",
        *("zeitstempel", "zeitpunkt", "horodatage", "date_heure", "fecha_hora", "data_hora"),
    ),
    "seq": (
        *(
            "seq",
            "turn",
            "turn_id",
            "turn_number",
            "turn_index",
            "step",
            "step_id",
            "step_idx",
            "step_number",
        ),
        *("index", "idx", "n", "position", "order", "message_index", "line", "utterance_id", "number"),
    ),
    "action": (
        "tool",
        "tool_name",
        "action",
        "action_name",
        "function",
        "function_name",
        "action_type",
        "op",
        "act",
        "event_name",
    ),
    "arguments": (
        *("args", "arguments", "tool_args", "action_args", "parameters", "params", "tool_input"),
        *("action_input", "kwargs", "input"),
    ),
    "result": (
        "observation",
        "obs",
        "tool_output",
        "tool_response",
        "result",
        "tool_result",
        "output",
        "stdout",
    ),
    "error": ("error", "error_message", "exception"),
    "id": ("id", "event_id", "uid", "uuid", "message_id", "msg_id"),
}
"""Names of an event's fields, the likeliest first."""
SESSION = (
    *(
        "conversation_id",
        "session_id",
        "conv_id",
        "convo_id",
        "dialogue_id",
        "dialog_id",
        "chat_id",
        "thread_id",
        "session",
        "conv",
        *("sitzung", "sitzungs_id", "sitzungsnummer", "gespräch", "gesprächs_id", "séance", "seance"),
        *("sesión", "sesion", "conversación", "conversacion", "sessão", "sessao", "conversa"),
    ),
    *(
        "trajectory_id",
        "traj_id",
        "trace_id",
        "episode_id",
        "episode",
        "run_id",
        "run",
        "conversation",
        "dialog",
    ),
    *(
        "dialogue",
        "game_id",
        "game",
        "instance_id",
        "question_id",
        "sample_id",
        "interaction_id",
        "uuid",
        "uid",
    ),
    *(
        "id",
        "conversation_hash",
        "message_tree_id",
        "task_id",
        "key",
        "hash",
        "case_id",
        "example_id",
        "name",
    ),
)
HEAD: dict[str, tuple[str, ...]] = {
    "agent_model": (
        "model",
        "model_name",
        "llm_name",
        "agent_model",
        "llm",
        "engine",
        "model_id",
        "default_model_slug",
    ),
    "agent": ("agent", "mas_name", "scaffold", "framework", "agent_name", "agent_class", "system_name"),
    "condition": ("condition", "arm", "variant", "group", "experiment", "treatment", "split"),
    "task": ("task", "domain", "env", "benchmark_name", "benchmark", "task_name", "category", "dataset"),
    "instance": ("instance_id", "task_id", "question_id", "problem_id", "instance", "example_id"),
}
OUTCOME = re.compile(
    r"(?:^|[_\W])(?:reward|score|success|successful|resolved|passed|pass|correct|is_correct|is_corrected|rating|solved"
    r"|winner|win|won|accuracy|exit_status|completed|grade|satisfaction|final_reward|outcome|verdict|result|status"
    r"|f1|error_rate|win_rate|utility)(?:$|[_\W])",
    re.IGNORECASE,
)
GOALS = (
    *("resolved", "solved", "is_correct", "correct", "passed", "reward", "score", "win", "won"),
    *("task_success", "utility", "outcome", "result", "status"),
)
"""Outcomes that, where they are 0 or 1, say whether the goal was reached, the likeliest first."""
LOOSE = {"outcome", "result", "status"}
"""Those of them that say so only in words (VERDICTS), at the top of a record."""
TRUTHS = {"0", "1", "0.0", "1.0", "True", "False"}
VERDICTS: dict[str, int] = {
    **dict.fromkeys(
        ("yes", "ja", "oui", "sí", "si", "pass", "passed", "success", "successful", "succeeded"), 1
    ),
    **dict.fromkeys(("true", "solved", "resolved", "correct", "won", "win"), 1),
    **dict.fromkeys(("false", "no", "nein", "non", "fail", "failed", "failure", "unsuccessful"), 0),
    **dict.fromkeys(("unsolved", "unresolved", "incorrect", "wrong", "lost", "loss"), 0),
}
"""Words for whether a goal was reached."""
SECRET = re.compile(
    r"ground_?truth|gold|reference_answer|expected|mistake_|annotation|label|answer_key"
    r"|(?:true|correct|final) ?_?answer|(?:^|\.)target$",
    re.IGNORECASE,
)
"""Names of what neither a judge nor an annotator should see."""
REQUESTS = (
    *("question", "query", "instruction", "problem_statement", "prompt", "goal", "intent", "request"),
    *("task_description", "task", "user_query", "input", "problem"),
)
"""Names of what a session is asked for, where it stands beside the session."""
PEOPLE = {"user", "user_id", "userid", "username", "user_name", "participant", "participant_id", "member"}
"""Fields whose names are people's where nothing in them says otherwise."""
SUBJECTS = (
    *("participant_id", "participant", "subject_id", "subject", "respondent_id", "respondent", "pid"),
    *("prolific_pid", "prolific_id", "student_id", "user_id", "userid", "worker_id"),
)
"""Fields that say whose session it is, where nothing else tells sessions apart."""
GROUPS = (
    *("group_id", "team_id", "room_id", "pair_id", "dyad_id", "trial_id", "match_id", "meeting_id"),
    *("channel_id", "team", "room", "pair", "dyad", "triad", "trial", "match", "meeting", "channel"),
    *("issue_url", "pull_request_url", "issue_id", "ticket_id", "issue_number", "issue", "ticket"),
)
"""Fields that may say whose or which session it is, where nothing else tells sessions apart."""
BROWSERS = {"user_agent", "useragent"}
"""Names of fields with the program that a person saw the talk in, which is no agent."""
PLACES = ("room", "team", "channel")
"""Those of them that may also say where somebody is at the time, or on whose side."""
CALLED = ("user", "user_id", "username", "user_name", "bot_name", "name")
"""Where people and bots have their names or ids."""
PLAYERS = (
    *(
        "player",
        "player_type",
        "driver",
        "pilot",
        "operator",
        "controller",
        "control_source",
        "controlled_by",
    ),
    *("actor_type", "performed_by", "initiator"),
)
"""Fields that say who acts, where a value is plainly a person or an agent."""
BOTS_ARE = ("is_bot", "bot", "is_agent", "is_ai", "automated")
"""Flags that are true of messages of bots."""
BOTS_HAVE = ("bot_id", "bot_profile", "bot_name", "app_id")
"""Fields that only messages of bots have."""
BEGUN = ("task", "task_description", "description", "input", "prompt", "instruction", "question", "summary")
"""Fields that say what begins, in records without a text."""
SAYS = re.compile(r"answer|response|output|input|prompt|token|cost|patch", re.I)
"""Names of what is about an agent or its model, and is not their name."""
LESSER = {"rejected"}
"""Names of a conversation beside which one was liked more, which is read instead."""
LISTS = (
    *(
        "messages",
        "history",
        "conversations",
        "conversation",
        "trajectory",
        "traj",
        "turns",
        "steps",
        "dialogue",
    ),
    *("dialog", "events", "log", "chat", "trace", "transcript", "utterances", "chat_history", "actions"),
)
ASIDE = (
    *("is_sidechain", "sidechain", "is_meta", "is_internal", "internal", "is_synthetic", "synthetic"),
    *("is_hidden", "hidden", "is_deleted", "deleted", "is_compact_summary", "is_summary"),
    *("is_api_error_message", "is_thought"),
)
"""Flags that are true of messages that are no part of the talk."""
DELETED = ("deleted_at", "delete_at", "deleted_date_time", "deleted_time", "deleted_on", "date_deleted")
"""Times that only messages have which their authors took back."""
CHOSEN = ("if_chosen", "is_chosen", "chosen", "is_selected", "selected", "is_preferred", "preferred")
"""Flags that are false of rival answers which nobody went on with."""
DONE = {"action", "actions", "step", "steps", "plan", "command", "commands", "order", "orders", "reasons"}
"""Words in the names of lists whose plain texts are no turns that somebody said."""
SPEAKERS = {"role", "speaker", "actor", "sender", "author", "from"}
"""Names of who speaks, whatever the values."""
TOOLS = {"tool", "function", "action", "call", "tool_call", "command"}
"""Objects whose `name` is that of what was done."""
TOOL_NAMES = ("name", "type", "action_type", "kind")
VAGUE = {
    "type",
    "id",
    "by",
    "at",
    "n",
    "user",
    "0",
    "1",
    "data",
    "line",
    "name",
    "number",
    "start",
    "index",
    "order",
}
"""Names that say nothing as one word of a longer key."""
WORDS = 3
SPEECH = {
    "send_teammate_message",
    "message",
    "say",
    "speak",
    "reply",
    "respond",
    "send_message",
    "chat",
    "utter",
    "ask",
    "tell",
}
"""Actions that only say something."""
DAYS = (
    *("%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%Y.%m.%d", "%d-%m-%Y", "%m-%d-%Y"),
    *("%d.%m.%y", "%m/%d/%y", "%d/%m/%y", "%y/%m/%d", "%d %b %Y", "%b %d, %Y", "%d %B %Y", "%B %d, %Y"),
    *("%a, %d %b %Y", "%A, %B %d, %Y"),
)
BETWEEN = (" ", ", ", "T", " at ")
CLOCKS = (
    *("%H:%M:%S", "%H:%M", "%H:%M:%S.%f", "%I:%M:%S %p", "%I:%M %p"),
    *("%H:%M:%S %z", "%H:%M:%S %Z", "%I:%M:%S %p %Z"),
)
YEAR_LAST = ("%a %b %d %H:%M:%S %Y", "%a %b %d %H:%M:%S %z %Y")
"""Formats (strptime) of days and times that are not ISO 8601, the likeliest first: between slashes the month
before the day, between dashes the day, where either may be."""
NUMBERS = ("%d", "%m", "%Y", "%y")
"""How formats of days begin that begin with a number."""
SAID = {"text", "content", "message", "utterance", "value", "body", "msg", "say"}
"""Names of what is said, whatever the values."""
CHAT = {"system", "developer", "user", "assistant", "tool", "function", "human", "ai"}
_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
"""Characters of Thai, Japanese and Chinese, which put no spaces between words of some two characters."""
OF_MESSAGES = ("_id", "_ids", "_uuid", "_type")
"""Endings of the names of ids and kinds of messages."""
NAME_LENGTH = 40
"""The greatest mean length, in characters, of a speaker's name or a label."""
PAIRS = (
    (("system", "system_prompt"), "system"),
    (
        ("prompt", "instruction", "question", "input", "query", "user", "human", "user_input", "request"),
        "user",
    ),
    (
        ("response", "output", "completion", "answer", "assistant", "reply", "bot", "model_response"),
        "assistant",
    ),
)


def fields_named(
    paths: dict[str, PathSummary], names: tuple[str, ...], inside: str = "", depth: int = 1
) -> list[PathSummary]:
    """The fields up to `depth` objects below `inside` whose keys are among the names, in their order, then
    those with one as a word."""
    order = {name: place for place, name in enumerate(names)}
    items = [(_place(one, inside, order, depth), one) for one in paths.values()]
    return [
        one for place, one in sorted(((p, o) for p, o in items if p is not None), key=lambda item: item[0])
    ]


def snake_case(key: str) -> str:
    """A key as names are listed here: words in lower case, joined by _."""
    name = key.rpartition(".")[2]  # in a key with dots, all before the last says whose it is
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().replace("-", "_").replace(" ", "_")


def _place(field: PathSummary, inside: str, order: dict[str, int], most: int) -> tuple[int, int] | None:
    """Sort key of a match, (rank, depth): its key's rank among the names, or behind all of them that of one
    of its words; None where neither is one."""
    if not field.path.startswith(inside) or "[]" in field.path[len(inside) :]:
        return None
    depth = len(re.findall(r"(?<!\\)\.", field.path[len(inside) :]))
    if depth > most:
        return None
    key = snake_case(field.key)
    if key in order:
        return order[key], depth
    if key in BROWSERS and not has_both_sides(field):
        return None
    words = [order[word] for word in key.split("_") if word in order and word not in VAGUE]
    return (len(order) + min(words), depth) if words and key.count("_") < WORDS else None


def is_utterance(field: PathSummary) -> bool:
    """Whether texts may be what somebody said: they are long or many, or the field's name says so."""
    has_text_name = field.key.lower() in SAID
    if snake_case(field.key).endswith(OF_MESSAGES):
        return False
    return field.kinds["text"] > 0 and (
        has_text_name or field.has_more_values or field.mean_length > 12 or len(field.values) > 8
    )


def is_sentence(field: PathSummary) -> bool:
    """Whether texts have several words, and most are different, whatever the field is called."""
    texts = [text for text in field.texts if text]
    words = sum(len(text.split()) + len(_UNSPACED.findall(text)) / 2 > 2 for text in texts)
    different = field.has_more_values or len(field.values) > 0.5 * field.count
    return bool(texts) and set(field.kinds) <= {"text", "null"} and different and words > 0.6 * len(texts)


def is_one_word(field: PathSummary) -> bool:
    """Whether its texts are all single words, as names are."""
    return not any(" " in text.strip() or _UNSPACED.search(text) for text in field.texts)


def has_both_sides(field: PathSummary) -> bool:
    """Whether values are known names of people and of agents, and nothing else."""
    roles = [role_of(value) for value in field.values if value]
    is_known = all(role.is_known for role in roles) and not field.has_more_values and field.has_only("text")
    return is_known and {"human", "agent"} <= {role.kind for role in roles}


def parent_of(field: PathSummary) -> str:
    """The key of the object that a path is in."""
    return field.path.rpartition(".")[0].rpartition(".")[2].removesuffix("[]").lower()


def is_speaker(field: PathSummary) -> bool:
    """Whether values are who speaks: few names that come again and again; any under a name that says so, or
    that are roles'."""
    if not field.has_only("text", "number", "true or false") or (
        field.has_more_values and field.mean_length > NAME_LENGTH
    ):
        return False
    if is_turn_number(field) or (snake_case(field.key) == "direction" and not has_both_sides(field)):
        return False  # moves have directions, too, other than `incoming` and `outgoing`
    roles = [role_of(value) for value in field.values]
    has_speaker_name = field.key.lower() in SPEAKERS or parent_of(field) in SPEAKERS
    if not has_speaker_name and is_sentence(field):
        return False
    telling = (
        has_speaker_name
        or any(role.name.lower() in ROLES for role in roles)
        or (bool(roles) and all(role.is_known for role in roles))
    )
    if telling and field.kinds["text"] and not field.has_more_values:
        return field.mean_length <= NAME_LENGTH
    return 0 < len(field.values) <= max(2, min(40, field.count // 2)) and not field.has_more_values


def is_turn_number(field: PathSummary) -> bool:
    """Whether a field that might name a speaker only counts turns."""
    numbers = field.has_only("number") or all(value.isdecimal() for value in field.values)
    return "turn" in snake_case(field.key).split("_") and numbers and len(field.values) > 2


def is_tool_name(field: PathSummary) -> bool:
    """Whether values are names of tools, which come again and have no spaces in them."""
    names = [value for value in field.values if value]
    single = all(re.fullmatch(r"[\w.:/-]{1,60}", value) for value in names)
    return bool(names) and single and not field.has_more_values and len(names) <= max(3, field.count * 0.7)


def tells_messages(field: PathSummary) -> bool:
    """Whether values are types of events with messages of a person and of an agent: `user_message`."""
    types = [value for value in field.values if "message" in snake_case(value).split("_")]
    roles = [role for role in map(role_of, types) if role.is_known]
    return {"human", "agent"} <= {role.kind for role in roles}


def is_time(field: PathSummary) -> bool:
    texts = field.texts[:5]
    if texts:
        return all(re.match(r"\d{4}-\d\d-\d\d", text) or _is_counted(text) for text in texts)
    numbers = [float(value) for value in field.values] if field.has_only("number") else []
    return bool(numbers) and all(map(_is_recent, numbers))


def _is_counted(text: str) -> bool:
    """Whether a text counts seconds or milliseconds since 1970."""
    return SECONDS.fullmatch(text) is not None and _is_recent(text)


def _is_recent(value: str | float) -> bool:
    """Whether it is a time from 1985 to 2128, in whatever unit it is counted."""
    return 5e8 < (seconds_of(value) or 0) < 5e9


def time_formats(texts: Iterable[object]) -> list[str]:
    """The formats (strptime) of DAYS and CLOCKS, or YEAR_LAST, that fit all texts, the likeliest first; none
    without a text. ISO 8601 needs none."""
    times = {text.strip() for text in texts if isinstance(text, str) and text.strip()}
    if not times or not all(re.search(r"\d:\d", text) for text in times):  # as all CLOCKS have it
        return []
    formats = [f"{day}{between}{clock}" for day, between, clock in itertools.product(DAYS, BETWEEN, CLOCKS)]
    formats += YEAR_LAST
    for text in times:
        formats = [one for one in formats if one.startswith(NUMBERS) == text[0].isdigit()]
        formats = [one for one in formats if _is_written(text, one)]
    return formats


def _is_written(text: str, pattern: str) -> bool:
    try:
        datetime.strptime(text, pattern)
    except ValueError:
        return False
    return True


def is_seq(field: PathSummary) -> bool:
    return field.has_only("number") and all(re.fullmatch(r"\d{1,9}", value) for value in field.values)


def is_numeric(field: PathSummary) -> bool:
    return field.has_only("number", "true or false")


def verdicts(field: PathSummary) -> dict[str, int]:
    """Word of a field -> 1 or 0, whether a goal was reached; {} where a word is no verdict, or all are the
    same one."""
    if not field.has_only("text"):  # true and false of JSON are numbers as they are
        return {}
    values = {word.strip(): VERDICTS.get(word.strip().lower()) for word in field.values}
    numbers = {word: value for word, value in values.items() if value is not None}
    return (
        numbers
        if len(numbers) == len(values) and len(set(numbers.values())) == 2 and not field.has_more_values
        else {}
    )


def is_head(field: PathSummary, name: str) -> bool:
    if not field.has_only("text", "number"):
        return False
    return name == "instance" or (
        not field.has_more_values and field.mean_length <= NAME_LENGTH and len(field.values) <= 30
    )


def is_label(field: PathSummary) -> bool:
    if field.has_only("number", "true or false"):
        return True
    return not field.has_more_values and field.mean_length <= NAME_LENGTH and 0 < len(field.values) <= 30


def first_field(items: list[PathSummary]) -> PathSummary | None:
    return next(iter(items), None)
