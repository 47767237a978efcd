"""Each planted fault is named with the right line."""

from __future__ import annotations

import shlex
from typing import Any

from autotune.check.registry import RULES
from tests.case_table import case_table
from tests.launch_check.planted import FAULTS, findings_of

CODES = {rule.code for rule in RULES}


NAMED = [fault for fault in FAULTS if fault["code"] in CODES]


@case_table("fault", NAMED)
def test_a_planted_fault_is_named_with_the_right_line(fault: dict[str, Any]) -> None:
    findings = findings_of(fault)
    assert fault["code"] in findings
    line = findings[fault["code"]].corrected_line
    assert line is not None
    assert shlex.join(line) == shlex.join(shlex.split(fault["right"]))
