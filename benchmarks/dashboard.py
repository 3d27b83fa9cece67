"""How fast the dashboard is on 100,000 trajectories: python benchmarks/dashboard.py [WORKSPACE].

The workspace is made by synthetic.py where it is not there. Wanted: first page within 3 s of a warm server,
page switch within 1 s, a trajectory of 2,000 events within 2 s, memory below 1 GB, ten people at once.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parent))
import synthetic

TRAJECTORIES = 100_000
PEOPLE = 10
LOOKED_AT = 20.0
"""Seconds that somebody looks at the first page; meanwhile the others are read ahead."""
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
SETTLED = "document.querySelector('[data-testid=stApp]')?.dataset.testScriptState === 'notRunning'"
PAGES = {
    "Process": "Process",
    "Failures": "Failures",
    "Compare": "Compare",
    "Trajectory": "Trajectories",
    "Agreement": "Agreement",
    "Interventions and efficiency": "Interventions and efficiency",
    "Tables": "Tables",
    "Live and cost": "Live and cost",
}
"""A page's name in the menu -> its heading."""


def main() -> None:
    """Make the workspace if it is not there, start the app, measure, print one JSON document."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "workspace"
    if not (folder / "coaudit.duckdb").exists():
        synthetic.make(folder, TRAJECTORIES)
    app, address = _start(folder)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
            print(json.dumps(_measure(browser, address, app.pid), indent=1))
    finally:
        app.terminate()
        app.wait(10)


def _measure(browser: Any, address: str, pid: int) -> dict[str, Any]:
    found: dict[str, Any] = {"first page, nothing cached": _open(browser.new_page(), address)}
    page = browser.new_page()
    found["first page, warm"] = _open(page, address)
    time.sleep(LOOKED_AT)
    for when in ("first time", "warm"):
        for name in PAGES:
            found[f"switch to {name}, {when}"] = _switch(page, name)
    orders = {"triage by findings": "most findings", "triage by disagreement": "judge and people differ"}
    for name, order in orders.items():
        found[name] = _open(page, f"{address}/trajectory?{urlencode({'sort': order})}")
    found["search in all events"] = _open(page, f"{address}/trajectory?search=step+19")
    pair = {"a": "collaborative", "b": "autonomous", "code": "C.1"}
    found["two sessions beside each other"] = _open(page, f"{address}/compare?{urlencode(pair)}")
    found["all differences"] = _open(page, f"{address}/compare?go=true")
    long = f"{address}/trajectory?trajectory={synthetic.LONG}&event=1200"
    found["trajectory of 2,000 events"] = _open(browser.new_page(), long)
    before = _processor(pid)
    found["ten people at once, slowest"] = _together(browser, address)
    found["of which the server's processor time"] = round(_processor(pid) - before, 2)
    found["memory, MB"] = _memory(pid)
    return found


def _open(page: Any, address: str) -> float:
    began = time.perf_counter()
    page.goto(address)
    _drawn(page)
    return round(time.perf_counter() - began, 2)


def _switch(page: Any, name: str) -> float:
    began = time.perf_counter()
    page.locator("[data-testid=stSidebarNavLink]", has_text=re.compile(f"^{name}$")).click()
    page.wait_for_selector(f"h1:has-text('{PAGES[name]}')", timeout=120_000)
    _drawn(page)
    return round(time.perf_counter() - began, 2)


def _drawn(page: Any) -> None:
    page.wait_for_selector("h1", timeout=120_000)
    page.wait_for_function(SETTLED, timeout=120_000)


def _together(browser: Any, address: str) -> float:
    """Ten pages of ten sessions are asked for at one moment; until the last one is drawn."""
    pages = [browser.new_page() for _ in range(PEOPLE)]
    paths = ["", "process", "failures", "trajectory", "cost"]
    began = time.perf_counter()
    for number, page in enumerate(pages):
        page.goto(f"{address}/{paths[number % len(paths)]}", wait_until="commit")
    for page in pages:
        _drawn(page)
    return round(time.perf_counter() - began, 2)


def _processor(pid: int) -> float:
    """Seconds of processor time so far; the rest of what ten pages take is their browser's."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _memory(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) // 1024


def _start(folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-P", "-m", "coaudit.pipeline", "dashboard", "--port", str(port)]
    app = subprocess.Popen(command, env={**os.environ, "COAUDIT_WORKSPACE": str(folder)})
    address = f"http://127.0.0.1:{port}"
    for _ in range(300):
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=1):
                return app, address
        except OSError:
            time.sleep(0.2)
    raise SystemExit("the dashboard did not start")


if __name__ == "__main__":
    main()
