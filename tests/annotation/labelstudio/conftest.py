"""What the Label Studio tests share: one real server, and a store of the sample logs for each test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from coaudit.annotation.labelstudio import Server
from coaudit.annotation.labelstudio import server as labelstudio_server
from coaudit.pipeline.ingest import run as ingest
from coaudit.pipeline.store import Store, Workspace
from coaudit.pipeline.systems import ReadOptions
from tests.annotation.labelstudio.running import ENVIRONMENT, TOKEN, Running, started
from tests.conftest import ROOT


@pytest.fixture(scope="session")
def label_studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    try:
        labelstudio_server.install(ENVIRONMENT)
    except labelstudio_server.InstallError as error:
        if os.environ.get("COAUDIT_REQUIRE_SERVERS"):
            pytest.fail(f"Label Studio can't be installed, but COAUDIT_REQUIRE_SERVERS is set: {error}")
        pytest.skip(f"Label Studio can't be installed: {error}")
    running = started(tmp_path_factory.mktemp("label-studio"))
    yield running
    labelstudio_server.stop(running.process)


@pytest.fixture(scope="session")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workspace = tmp_path_factory.mktemp("ingested") / "workspace"
    ingest.ingest(Store(Workspace(workspace)), [ROOT / "data" / "cogym"], ReadOptions())
    return workspace


@pytest.fixture
def store(workspace: Path, ingested: Path) -> Store:
    shutil.copytree(ingested, workspace)
    return Store(Workspace(workspace))


@pytest.fixture
def server(label_studio: Running) -> Iterator[Server]:
    with Server(label_studio.url, TOKEN) as connected:
        yield connected
