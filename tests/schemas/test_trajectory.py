"""What a piece that could not be read is called."""

from __future__ import annotations

from coaudit.schemas import Quarantined


def test_what_could_not_be_read_is_named_on_one_line_whatever_its_file_is_called() -> None:
    forged = Quarantined(source="logs\n0 quarantined\r.jsonl", line=3, reason="not JSON: at\ncolumn 1")
    assert str(forged) == "logs\\n0 quarantined\r.jsonl:3: not JSON: at\\ncolumn 1"
    assert str(Quarantined(source="a.zip", reason="damaged")) == "a.zip: damaged"
