"""Who is let in by the app that `coaudit dashboard` starts, wherever it is started."""

from __future__ import annotations

import http.client
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from coaudit.pipeline.ingest import run as ingest
from coaudit.pipeline.store import Store, Workspace
from coaudit.pipeline.systems import ReadOptions
from tests.dashboards.conftest import started
from tests.shared import ROOT

pytestmark = pytest.mark.slow
OPEN = """[server]
enableCORS = false
enableXsrfProtection = false
enableAgentApi = true
corsAllowedOrigins = ["http://evil.example"]
allowedHosts = ["*"]
[client]
allowedOrigins = ["http://framing.example"]
"""
"""What a folder of downloaded logs may bring along as .streamlit/config.toml."""


@pytest.fixture(scope="module")
def proxy() -> Iterator[socket.socket]:
    """The server that the app sends its own requests to."""
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.MonkeyPatch.context() as patch:
        for name in ("http_proxy", "https_proxy"):
            patch.setenv(name, f"http://127.0.0.1:{server.getsockname()[1]}")
        patch.setenv("no_proxy", "127.0.0.1")
        server.setblocking(False)
        yield server


@pytest.fixture(scope="module")
def launched(tmp_path_factory: pytest.TempPathFactory, proxy: socket.socket) -> Iterator[str]:
    """Host and port of the app over a relative workspace, started in a folder that would open it."""
    folder = tmp_path_factory.mktemp("downloaded")
    (folder / ".streamlit").mkdir()
    (folder / ".streamlit" / "config.toml").write_text(OPEN)
    ingest.ingest(Store(Workspace(folder / "study")), [ROOT / "data/coblock"], ReadOptions())
    process, address = started(Path("study"), folder)
    yield address.removeprefix("http://")
    process.terminate()
    process.wait(10)


def _handshake(place: str, **headers: str) -> int:
    """The status that a WebSocket to the app is answered with."""
    key = {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version": "13"}
    connection = http.client.HTTPConnection(place, timeout=20)
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", **key, **headers}
    connection.request("GET", "/_stcore/stream", headers=upgrade)
    status = connection.getresponse().status
    connection.close()
    return status


def test_a_page_whose_name_was_turned_to_this_machine_is_not_let_in(launched: str) -> None:
    port = launched.rpartition(":")[2]
    evil = f"evil.example:{port}"
    assert _handshake(launched, Host=evil, Origin=f"http://{evil}") == 403
    assert _handshake(launched, Host=evil) == 403
    for host in (launched, f"localhost:{port}"):
        assert _handshake(launched, Host=host, Origin=f"http://{host}") == 101


def test_a_configuration_in_the_folder_where_it_starts_opens_nothing(launched: str) -> None:
    assert _handshake(launched, Origin="http://evil.example") == 403
    asked = urllib.request.Request(f"http://{launched}/_stcore/agent/interact", data=b"{}")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(asked)
    assert refused.value.code == 403 and b"not_available" in refused.value.read()
    with urllib.request.urlopen(f"http://{launched}/_stcore/host-config") as answer:
        assert "http://framing.example" not in answer.read().decode(), "nor what no option of ours names"


def test_a_web_page_that_is_refused_makes_the_app_ask_nobody(launched: str, proxy: socket.socket) -> None:
    assert _handshake(launched, Origin="http://another.example") == 403
    with pytest.raises(BlockingIOError):
        proxy.accept()
