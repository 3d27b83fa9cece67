"""Questions to Ray where the task that hands them over fails."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from coaudit.judges.clients.cluster.ray_client import RayClient
from coaudit.judges.clients.engine import Engine
from coaudit.judges.clients.protocol import Fatal, Form, Message, Parameters, Question


class Broken:
    """A stream whose Ray is gone."""

    is_full = False

    def put(self, rows: list[Any]) -> int:
        raise RuntimeError("the actor died")


async def test_a_question_that_cannot_be_handed_over_fails_and_so_does_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = RayClient(Engine("ray", logs=tmp_path), "m", Parameters(), None)
    monkeypatch.setattr(client.connection, "open", lambda: None)
    monkeypatch.setattr(client, "_make_stage", lambda: None)
    monkeypatch.setattr(client, "_begin", lambda questions: setattr(client, "_stream", Broken()))
    monkeypatch.setattr(client, "_is_due", lambda: True)
    await client.start(1)
    question = Question(messages=(Message("user", "hi"),), form=Form(("a",), {}, 1))
    for _ in range(2):
        with pytest.raises(Fatal, match="Ray gave up: the actor died"):
            await asyncio.wait_for(client(question), 10)
