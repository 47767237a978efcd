"""The list of planted faults: half from complaints, half as they were drawn."""

from __future__ import annotations

import shlex

from tests.launch_check.draw import NUMBER, drawn
from tests.launch_check.planted import FAULTS, facts_of


def test_the_second_half_is_the_draw() -> None:
    sources = [fault["source"] for fault in FAULTS]
    kinds = [fault["kind"] for fault in FAULTS if fault["source"] == "drawn"]
    assert len(sources) == 2 * NUMBER
    assert kinds == [draw.kind for draw in drawn()]


def test_each_fault_is_a_line_with_facts() -> None:
    for fault in FAULTS:
        facts = facts_of(fault)
        assert shlex.join(facts.line.words) == shlex.join(shlex.split(fault["line"]))
