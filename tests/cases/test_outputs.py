"""Forty outputs of programs: the proposed figure of merit, and the verdict of the output."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from autotune.targets.figures import proposal
from tests.case_table import case_table

HERE = Path(__file__).parent
LISTS: dict[str, list[dict[str, Any]]] = tomllib.loads((HERE / "outputs.toml").read_text())
OUTPUTS = [*LISTS["output"], *LISTS["unseen"]]
NOT_RECOGNISED = {
    "ptscotch",  # "T Total min=... max=...": neither a unit nor a word says that it is a time.
    "netpipe",  # A row for each size, in words.
    "own-ranks",  # Two times of each rank, none of them a total.
    "gups",  # A time and a rate.
    "mrbayes",  # CPU time and wall time.
    "meep",  # An elapsed time among others.
    "freefem",  # Two times of each rank in one line.
}
"""Nothing is proposed for them."""
NO_VERDICT = {"own-waerme"}
"""Their verdict is in words that are not known."""


def last_json(text: str) -> dict[str, Any] | None:
    lines = [line for line in text.splitlines() if line.startswith("{")]
    try:
        return dict(json.loads(lines[-1])) if lines else None
    except ValueError:
        return None


@case_table("row", OUTPUTS)
def test_the_figure_of_an_output(row: dict[str, Any]) -> None:
    text = (HERE / "outputs" / row["file"]).read_text()
    proposed = proposal(text, last_json(text))
    if row["kind"] == "none" or row["id"] in NOT_RECOGNISED:
        assert proposed is None
        return
    assert proposed is not None
    assert proposed.figure.rate == (row["kind"] == "rate")
    assert proposed.figure.value == pytest.approx(row["figure"], rel=1e-6, abs=0)
    assert proposed.right == (None if row["id"] in NO_VERDICT else row.get("right"))
    if proposed.right:
        for pattern, present in ((proposed.verify, True), (proposed.absent, False)):
            if pattern is not None and not pattern.startswith("json:"):
                assert (re.search(pattern, text, re.MULTILINE) is not None) == present


def test_how_many_are_recognised() -> None:
    ids = {row["id"] for row in LISTS["output"]}
    assert len(ids) == 40
    assert len(ids & NOT_RECOGNISED) <= 4
