"""A real Label Studio for tests: its own environment, a private port, SQLite in a temporary folder."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from coaudit.annotation.labelstudio import server

ENVIRONMENT = Path(
    os.environ.get("COAUDIT_LABEL_STUDIO_ENV") or Path.home() / ".cache" / "coaudit-tests" / "label-studio"
)
ADMIN = "admin@example.org"
PASSWORD = "a-password-for-tests"
TOKEN = "0123456789abcdef0123456789abcdef01234567"  # of a server that lives for one test run on 127.0.0.1


@dataclass
class Running:
    """A server that tests may stop and start again; its data stays."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        return f"http://{server.HOST}:{self.port}"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def restart(self) -> None:
        self.process = _start(self.folder, self.port)

    def api(self, method: str, path: str, token: str = TOKEN, **given: Any) -> Any:
        """One call of Label Studio's API; the answer's JSON, None where it has none."""
        headers = {"Authorization": f"Token {token}"}
        answer = httpx.request(method, self.url + path, headers=headers, timeout=60, **given)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text[:400]}"
        return answer.json() if answer.content else None

    def tasks(self, project: int) -> list[dict[str, Any]]:
        """The tasks of a project, oldest first."""
        found = self.api("GET", "/api/tasks", params={"project": project, "fields": "all", "page_size": 500})
        return sorted(found["tasks"], key=lambda task: int(task["id"]))

    def annotate(self, task: int, result: list[dict[str, Any]], token: str = TOKEN, **more: Any) -> int:
        """Submit an annotation as the token's owner; its id."""
        body = {"result": result, "lead_time": 12.5, **more}
        return int(self.api("POST", f"/api/tasks/{task}/annotations/", token, json=body)["id"])

    def signed_up(self, email: str) -> str:
        """A new annotator by the invitation link; their token."""
        invitation = self.api("GET", "/api/invite")["invite_url"]
        with httpx.Client(base_url=self.url, follow_redirects=True, timeout=60) as browser:
            browser.get(invitation)
            form = {"email": email, "password": PASSWORD, "csrfmiddlewaretoken": browser.cookies["csrftoken"]}
            browser.post(invitation, data=form)
            return str(browser.get("/api/current-user/token").json()["token"])

    def personal_access_token(self) -> str:
        """The other kind of token, as the account page makes it."""
        with httpx.Client(base_url=self.url, follow_redirects=True, timeout=60) as browser:
            page = browser.get("/user/login/").text
            csrf = re.search(r'csrfmiddlewaretoken" value="([^"]+)"', page)
            assert csrf is not None
            form = {"email": ADMIN, "password": PASSWORD, "csrfmiddlewaretoken": csrf[1]}
            browser.post("/user/login/", data=form, headers={"Referer": self.url})
            headers = {"X-CSRFToken": browser.cookies["csrftoken"], "Referer": self.url}
            return str(browser.post("/api/token/", headers=headers).json()["token"])


def started(folder: Path) -> Running:
    """A fresh server; the very first start makes a database, which is kept for the runs after it."""
    with socket.socket() as free:
        free.bind((server.HOST, 0))
        port = int(free.getsockname()[1])
    template = _template()
    if not template.is_dir():
        server.stop(_start(folder, port))
        partial = template.with_name(f"{template.name}.{os.getpid()}")
        shutil.copytree(folder / "data", partial)
        with contextlib.suppress(OSError):  # another run was faster
            partial.rename(template)
    else:
        shutil.copytree(template, folder / "data")
    return Running(folder, port, _start(folder, port))


def choice(label: str, name: str = "answer") -> dict[str, Any]:
    """An answer to one question."""
    value = {"choices": [label]}
    return {"from_name": name, "to_name": "transcript", "type": "choices", "value": value}


def _template() -> Path:
    """An empty database with its administrator, for this version of Label Studio."""
    (found,) = ENVIRONMENT.glob("lib/python*/site-packages/label_studio-*.dist-info")
    return ENVIRONMENT.parent / f"{found.stem}-{ENVIRONMENT.name}-data"


def _start(folder: Path, port: int) -> subprocess.Popen[bytes]:
    settings = {
        "LABEL_STUDIO_USERNAME": ADMIN,
        "LABEL_STUDIO_PASSWORD": PASSWORD,
        "LABEL_STUDIO_USER_TOKEN": TOKEN,
        "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
    }
    log = folder / "server.log"
    process = server.start(ENVIRONMENT, port, folder / "data", log, settings)
    server.wait(process, port, log)
    return process
