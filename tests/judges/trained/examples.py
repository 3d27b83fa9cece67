"""Examples for tests of trained judges."""

from __future__ import annotations

from coaudit.judges.trained import Example
from coaudit.judges.trained.features import Features
from coaudit.judges.trained.learning import learn
from coaudit.judges.trained.model import Model

TEXTS = ("Please add a chart", "Okay, thank you", "Could you change it?", "Sounds good")


def seen(text: str) -> Features:
    return Features(text, {"actor": "human", "position": len(text) / 100})


def example(text: str, label: str, instance: str = "i", run: str = "") -> Example:
    trajectory = f"{instance}{run}"
    return Example(seen(text), label, f"{trajectory} {text}", trajectory, instance)


def learnt() -> Model:
    """A model that says yes to requests."""
    return learn(
        [example(f"{t} {i}", "yes" if t[0] in "PC" else "no", str(i)) for i in range(5) for t in TEXTS]
    ).model
