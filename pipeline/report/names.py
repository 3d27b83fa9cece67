"""Readable names of metrics and of groups."""

from __future__ import annotations

from collections.abc import Collection

from ..analyze.totals import OUTCOME

NAMES = {
    "breaks_without_effect": "Breaks without effect",
    "cohen_kappa": "Cohen's κ",
    "collab_score": "Collab score",
    "effective_confirmations": "Effective confirmations (CA+)",
    "error_rate": "Failed steps",
    "exact_match": "Answered exactly",
    "fleiss_kappa": "Fleiss' κ",
    "gwet_ac1": "Gwet's AC1",
    "halting_messages": "Halting messages (CA−)",
    "human_intervention_rate": "Steps by people",
    "initiating_capability": "Asks for help when needed",
    "initiation_errors": "Wrong requests",
    "initiative_entropy": "Initiative entropy (H_init)",
    "interventions": "Human steps",
    "ites": "Incremental efficiency (ITES)",
    "krippendorff_alpha": "Krippendorff's α",
    "partial_structure": "Nothing stands that should not",
    "progress_completeness": "Progress completeness (PC)",
    "repeated_action_rate": "Repeated actions",
    "responding_capability": "Answers requests rightly",
    "reward": "Reward R = T − λC",
    "tes": "Trajectory efficiency (TES)",
    "time_to_first_human_message": "Seconds to first human message",
    "timesteps": "Steps until the end",
    "win_rate": "Win rate",
}
"""Metric -> name, where its own words are not enough."""
SCORINGS = {
    "actions": "by steps done",
    "place_break": "placing and breaking only",
    "automatic": "automatic rating",
    "human": "human rating",
}


def metric_name(metric: str, scoring: str | None = None, participant: str | None = None) -> str:
    """A metric's readable name, with its scoring and the participant that it is of."""
    own = metric.removeprefix(OUTCOME)
    words = f"Outcome: {own}" if own != metric else metric.replace("_", " ").capitalize()
    name = NAMES.get(metric, words)
    reading = f", {SCORINGS.get(scoring, scoring)}" if scoring else ""
    return f"{name}{reading}" + (f" of {participant}" if participant else "")


def group_name(group: tuple[str, ...], groups: Collection[tuple[str, ...]]) -> str:
    """The values of a group as one name, without the columns in which no group has a value ("–")."""
    columns = zip(group, zip(*groups, strict=True), strict=True)
    return " · ".join(value for value, values in columns if set(values) != {"–"})
