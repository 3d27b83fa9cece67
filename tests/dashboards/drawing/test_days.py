"""An axis of days shows the days of the data, wherever it is looked at."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import altair as alt
import pytest

from coaudit.dashboards.drawing import days

pytestmark = pytest.mark.slow
DRAW = "import sys, vl_convert; print(vl_convert.vegalite_to_svg(sys.stdin.read()))"


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "UTC", "Pacific/Auckland"])
def test_days_are_the_same_wherever_they_are_looked_at(zone: str) -> None:
    rows = [{"day": "2026-10-31", "value": 1}, {"day": "2026-11-01", "value": 2}]
    chart = alt.Chart(alt.Data(values=rows)).mark_point().encode(x=days.axis("day", "Day", rows))
    done = subprocess.run(
        [sys.executable, "-P", "-c", DRAW],
        input=json.dumps(chart.to_dict()).encode(),
        capture_output=True,
        env={**os.environ, "TZ": zone},
        check=True,
    )
    words = re.findall(r"<text[^>]*>([^<]*)</text>", done.stdout.decode())
    assert words == ["Oct 31, 2026", "Nov 01, 2026", "Day"]
