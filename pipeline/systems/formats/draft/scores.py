"""Guesses which list of a record holds scores of its session, each with a name of its own."""

from __future__ import annotations

from dataclasses import dataclass, field

from .names import snake_case
from .survey import Survey

LISTS = ("scores", "feedback_scores", "feedbacks", "feedback", "assessments", "annotations", "evaluations")
"""Names of such lists: Langfuse, Opik, LangSmith, MLflow, Phoenix."""
NAMES = ("metric", "assessment_name", "score_name", "name", "key")
"""Fields with a score's name; a `name` beside a `metric` is that of who gave it."""
VALUES = (
    *("value", "score", "feedback.value", "result.score", "stringValue", "string_value", "label"),
    *("result.label", "expectation.value"),
)
"""Paths of a score's value, numbers before texts."""
PARTS = ("observationId", "observation_id", "spanId", "span_id", "messageId", "message_id")
"""Fields of a score that is of a part of the session."""
PLAIN = ("number", "true or false", "text")
"""Kinds of values that can be an outcome."""


@dataclass(frozen=True)
class Scores:
    """Where scores are, and what they are called."""

    at: str
    name: str
    values: list[str]
    names: list[str] = field(default_factory=list)
    of_part: str | None = None


def scores_in(survey: Survey) -> Scores | None:
    """The first list of scores whose name and items say that it is one."""
    for path, one in survey.paths.items():
        if not one.lengths or "[]" in path or snake_case(one.key) not in LISTS:
            continue
        inside = f"{path}[]."
        keys = [key for key in NAMES if (own := survey.paths.get(inside + key)) and own.has_only("text")]
        values = [key for key in VALUES if (own := survey.paths.get(inside + key)) and own.has_only(*PLAIN)]
        if not keys or not values:
            continue
        parts = (key for key in PARTS if (own := survey.paths.get(inside + key)) and own.kinds["text"])
        return Scores(path, keys[0], values, sorted(survey.paths[inside + keys[0]].values), next(parts, None))
    return None
