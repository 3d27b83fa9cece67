"""What is learnt from labels, and how far it may be trusted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from coaudit.judges.trained import Example
from coaudit.judges.trained.features import Features
from coaudit.judges.trained.learning import learn
from coaudit.judges.trained.model import WORDS
from tests.judges.trained.examples import example, seen

pytestmark = pytest.mark.library


def rare(number: int, seed: int) -> list[Example]:
    """One unit in ten is a yes, and half of these say so; so does one in ten of the others."""
    draw = np.random.default_rng(seed)
    labels = draw.random(number) < 0.1
    says = draw.random(number) < np.where(labels, 0.5, 0.1)
    fill = draw.choice([f"w{k}" for k in range(50)], (number, 6))
    return [
        example(" ".join([*words, "alarm" if told else "calm"]), "yes" if label else "no", f"{seed}-{place}")
        for place, (label, told, words) in enumerate(zip(labels, says, fill, strict=True))
    ]


def test_labels_and_weights_are_those_of_scikit_learn() -> None:
    """On the text alone, for process features are the same in all."""
    texts = [one.features.text for one in rare(200, 0)]
    items = [replace(one, features=Features(one.features.text, {"same": 0.0})) for one in rare(200, 0)]
    model = learn(items).model
    words = TfidfVectorizer(sublinear_tf=True, **WORDS)
    linear = LogisticRegression(class_weight="balanced", max_iter=5000, C=4.0, solver="newton-cg")
    linear.fit(words.fit_transform(texts), [one.label for one in items])
    others = [one.features for one in rare(100, 1)]
    said = [label for label, _ in model.predict(others)]
    assert said == linear.predict(words.transform([one.text for one in others])).tolist()


def test_a_probability_is_how_often_units_have_the_label() -> None:
    """Labels are weighed evenly while it learns: of a code that a tenth of the units have, probabilities
    said that a third had it."""
    items = rare(1500, 0)
    others = rare(3000, 1)
    said = learn(items).model.predict([one.features for one in others])
    chance = np.array([p if label == "yes" else 1 - (p or 0.0) for label, p in said], dtype=float)
    is_yes = np.array([one.label == "yes" for one in others])
    assert abs(chance.mean() - is_yes.mean()) < 0.02
    for low, high in ((0.0, 0.1), (0.1, 0.3), (0.3, 1.0)):
        part = (chance > low) & (chance <= high)
        assert abs(chance[part].mean() - is_yes[part].mean()) < 0.06


def test_a_fold_that_lacks_a_label_says_the_other_without_a_probability() -> None:
    items = [example(f"Yes {n}", "yes", "0") for n in range(4)] + [
        example(f"No {n}", "no", f"{n % 2 + 1}") for n in range(8)
    ]
    learnt = learn(items)
    assert learnt.answers[:4] == [("no", None)] * 4
    assert learnt.model.predict([seen("Yes 9")])[0][0] == "yes"


def test_of_three_labels_one_may_be_missing_from_a_fold() -> None:
    texts = {"1": "poor", "2": "fair", "3": "good"}
    items = [example(f"{texts[label]} {n}", label, f"{n % 4}") for n in range(12) for label in ("1", "2")]
    items += [example(f"good {n}", "3", "9") for n in range(3)]
    learnt = learn(items)
    assert {label for label, _ in learnt.answers[-3:]} <= {"1", "2"}
    assert [label for label, _ in learnt.model.predict([seen("good 1")])] == ["3"]
    assert all(chance and 0 < chance < 1 for _, chance in learnt.answers)
