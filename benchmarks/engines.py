"""The same questions through each engine: how long until the first rating, and how fast the rest come.

    .venv/bin/python benchmarks/engines.py [--sessions 100] [--only plain,ray,served,cluster]
        [--model FOLDER] [--engine-args NAME=VALUE ...]

`plain` and `ray` (two workers) ask tests/judges/endpoint.py as a process of its own, with 50 ms latency.
`served` is `--engine vllm`, `cluster` is `--engine ray` with vLLM in the worker: both need weights in
--model and vLLM (`served` in this environment or the one that COAUDIT_VLLM_PYTHON names, `cluster` in this).
On a CPU, --model may be what tests/judges/clients/tiny_model.py makes; on a GPU, what
benchmarks/random_model.py makes, with --engine-args load-format=dummy. Their answers are noise.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from judging import ROOT, endpoint, fill

from coaudit.pipeline.store.ledgers import ledger
from coaudit.schemas import Rating

CONTEXT = 16_384


def moments(workspace: Path) -> list[datetime]:
    """When each rating was made, in order."""
    items = [item for path in ledger.files(workspace / "ratings") for item, _ in ledger.ratings(path)]
    made = [item.created for item in items if isinstance(item, Rating) and item.created]
    return sorted(datetime.fromisoformat(moment) for moment in made)


def measured(folder: Path, sessions: int, options: list[str]) -> tuple[dict[str, Any], float, float, float]:
    """The run's summary, wall seconds, seconds to the first rating, and ratings a second from there on."""
    fill(folder, sessions)
    command = [sys.executable, "-P", "-m", "coaudit.pipeline", "--workspace", str(folder), "judge", "--json"]
    command += ["--codebook", "initiative", *options]
    began, clock = datetime.now().astimezone(), time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wall = time.monotonic() - clock
    assert done.returncode == 0, done.stderr[-2000:]
    summary = json.loads(done.stdout)
    assert summary["errors"] == 0, summary
    made = moments(folder)
    span = (made[-1] - made[0]).total_seconds()
    rate = (len(made) - 1) / span if span else float("nan")
    return summary, wall, (made[0] - began).total_seconds(), rate


def engines(url: str, model: Path | None, arguments: list[str]) -> dict[str, list[str]]:
    """Name -> options, of the engines that can run here; `arguments` are vLLM's."""
    asked = ["--model", "hosted_vllm/judge", "--api-base", f"{url}/v1"]
    result = {"plain": asked, "ray": [*asked, "--engine", "ray", "--workers", "2"]}
    if model is None:
        return result
    loaded = ["--model", str(model), "--engine-args", f"max_model_len={CONTEXT}"]
    loaded += [word for argument in arguments for word in ("--engine-args", argument)]
    if os.environ.get("COAUDIT_VLLM_PYTHON") or importlib.util.find_spec("vllm"):
        result["served"] = [*loaded, "--engine", "vllm"]
    if importlib.util.find_spec("vllm"):
        result["cluster"] = [*loaded, "--engine", "ray", "--workers", "1"]
    return result


def main() -> None:
    """Measure each."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--sessions", type=int, default=100, help="of ten utterances each")
    options.add_argument("--model", type=Path)
    options.add_argument("--engine-args", action="append", help="of vLLM; dtype=float32 unless given")
    options.add_argument("--only", default="", help="engines, parted by commas")
    given = options.parse_args()
    os.environ["PYTHONPATH"] = str(ROOT)
    only = set(filter(None, given.only.split(",")))
    with tempfile.TemporaryDirectory() as name, endpoint() as url:
        for engine, words in engines(url, given.model, given.engine_args or ["dtype=float32"]).items():
            if only and engine not in only:
                continue
            summary, wall, first, rate = measured(Path(name) / engine, given.sessions, words)
            print(
                f"{engine:8} {summary['rated']:6,} rated in {wall:6.1f} s, the first after {first:6.1f} s, "
                f"then {rate:8.1f} a second; {summary['prompt_tokens']:,} prompt tokens, of them "
                f"{summary['cached_tokens']:,} from the cache",
                flush=True,
            )


if __name__ == "__main__":
    main()
