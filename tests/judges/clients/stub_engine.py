"""A stub of vLLM's server, for where vLLM is not installed; no model is in it.

It is started as the server is (`-c PROGRAM --model …`), writes on stdout, holds a
grandchild in a session of its own like an engine's worker, and answers as the endpoint of these tests does.
What it was called with goes to `STUB_RECORD`; `STUB_DIES` is the number of questions after which it is gone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

from tests.judges.endpoint import Endpoint

WORKER = "import time; time.sleep(600)"


def main(words: list[str]) -> None:
    """Serve until ended."""
    print("stub engine: loading", flush=True)
    options = {name: value for name, value in pairwise(words) if name.startswith("--")}
    if "missing" in options["--model"]:
        print("OSError: no file named config.json\nstub engine: cannot load the model", flush=True)
        raise SystemExit(1)
    worker = subprocess.Popen([sys.executable, "-c", WORKER], start_new_session=True)
    record = {"words": words, "pid": os.getpid(), "worker": worker.pid}
    Path(os.environ["STUB_RECORD"]).write_text(json.dumps(record), encoding="utf-8")
    endpoint = Endpoint(
        models=(options["--served-model-name"],), key=os.environ["VLLM_API_KEY"], context=16_384
    )
    endpoint.latency = float(os.environ.get("STUB_LATENCY", "0"))
    app = endpoint.app()
    app.router.add_get("/health", _healthy)
    app.middlewares.append(_dying(endpoint, int(os.environ.get("STUB_DIES", "1000000"))))
    web.run_app(app, host=options["--host"], port=int(options["--port"]), print=None)


async def _healthy(_: web.Request) -> web.Response:
    return web.Response(text="")


def _dying(endpoint: Endpoint, after: int) -> Any:
    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        if endpoint.requests >= after:
            print("stub engine: out of memory", flush=True)
            os._exit(7)
        return await handler(request)

    return middleware


if __name__ == "__main__":
    main(sys.argv[1:])
