"""The list of planted faults: half from complaints, half as they were drawn."""

from __future__ import annotations

import tomllib
from pathlib import Path

from tests.launch_check.draw import NUMBER, drawn

FAULTS = tomllib.loads(Path(__file__).with_name("planted.toml").read_text(encoding="utf-8"))


def test_the_second_half_is_the_draw() -> None:
    sources = [fault["source"] for fault in FAULTS["fault"]]
    kinds = [fault["kind"] for fault in FAULTS["fault"] if fault["source"] == "drawn"]
    assert len(sources) == 2 * NUMBER
    assert kinds == [draw.kind for draw in drawn()]
