"""What a model costs, from the price list inside litellm's package: read as a file, nothing is downloaded."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_LIST = "model_prices_and_context_window_backup.json"


@dataclass(frozen=True)
class Price:
    """Dollars a token, and the model's context where the list has it."""

    prompt: float
    cached: float
    completion: float
    context: int | None = None

    def of(self, prompt_tokens: int, cached_tokens: int, completion_tokens: int) -> float:
        """The cost of a request in dollars; cached tokens are among the prompt's."""
        cached = min(cached_tokens, prompt_tokens)
        fresh = prompt_tokens - cached
        return fresh * self.prompt + cached * self.cached + completion_tokens * self.completion


def price_of(model: str) -> Price | None:
    """The price of a model by litellm's name for it, or None where the list has none."""
    prices = _price_list()
    for name in (model, model.partition("/")[2]):
        entry = prices.get(name)
        if isinstance(entry, dict) and "input_cost_per_token" in entry:
            return _price(entry)
    return None


def _price(entry: dict[str, Any]) -> Price:
    prompt = float(entry["input_cost_per_token"] or 0)
    return Price(
        prompt=prompt,
        cached=float(entry.get("cache_read_input_token_cost", prompt) or 0),
        completion=float(entry.get("output_cost_per_token") or 0),
        context=entry.get("max_input_tokens") or None,
    )


def _price_list() -> dict[str, Any]:
    package = importlib.util.find_spec("litellm")
    for folder in (package.submodule_search_locations or []) if package else []:
        path = Path(folder) / _LIST
        if path.is_file():
            prices: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            return prices
    return {}
