"""The types that everything is made of: what was logged, what is rated, who rated it, what is reported."""

from .base import JsonValue, Model, canonical_json, content_hash, text_hash
from .codebook import UNCLEAR, Code, Codebook
from .event import Action, Event, Events
from .metric import Agreement, Measure, Metric, Need, Rate
from .rating import GOLD, Maker, Rating, Verdict
from .trajectory import FIELDS, Finding, Outcome, Participant, Quarantined, Trajectory
from .unit import Unit

__all__ = [
    "FIELDS",
    "GOLD",
    "UNCLEAR",
    "Action",
    "Agreement",
    "Code",
    "Codebook",
    "Event",
    "Events",
    "Finding",
    "JsonValue",
    "Maker",
    "Measure",
    "Metric",
    "Model",
    "Need",
    "Outcome",
    "Participant",
    "Quarantined",
    "Rate",
    "Rating",
    "Trajectory",
    "Unit",
    "Verdict",
    "canonical_json",
    "content_hash",
    "text_hash",
]
