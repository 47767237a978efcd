"""The outcome of a verification as OpenMetrics text, and the board that shows it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from autotune.notes import Note
from autotune.publish.documents import ExpiredFile, FileRow, RecheckRow, VerifiedFiles
from autotune.publish.openmetrics import METRICS, metrics_text

BOARD = Path(__file__).parents[2] / "examples" / "grafana_board.json"
STRANGE = '/a "b"\\c\n{d}\udcff'


def row(path: str, **changes: Any) -> FileRow:
    plain: dict[str, Any] = {
        "path": path,
        "in_force": True,
        "refused": False,
        "code": None,
        "why": "",
        "format": "sh",
        "source": "study:a",
        "unchecked": [],
        "expired": None,
        "unsafe": None,
    }
    return FileRow(**plain | changes)


EXPIRED = ExpiredFile(
    path=STRANGE, family="openmpi", proven_with="4.1.4", installed="4.1.8", commands={}
)
SHRUNK: RecheckRow = {
    "source": "study:a",
    "program": "cg A on 2 ranks",
    "status": "still there",
    "still_better": True,
    "words": "",
}
FIGURES = {"gain": 0.08, "gain_ci95": [0.05, None], "published_gain": 0.1}
DOCUMENT = VerifiedFiles(
    ok=False,
    files=[
        row("/home/a/.openmpi/mca-params.conf", unsafe=Note("published.unsafe", "unsafe")),
        row(STRANGE, in_force=None, expired=EXPIRED, format=None),
    ],
    comparisons=[{**SHRUNK, **FIGURES, "gain_ci95": [0.05, 0.11]}],  # type: ignore[typeddict-item]
    renewals=[],
)
SAMPLE = re.compile(r'([a-z0-9_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)+)\})? (\S+)')


def samples(document: VerifiedFiles) -> list[tuple[str, str, float]]:
    """Name, labels and value of each line; every line must be of OpenMetrics."""
    *lines, end, after = metrics_text(document, 1e9).encode().decode().split("\n")
    assert (end, after) == ("# EOF", "")
    found = []
    for line in lines:
        if line.startswith("# "):
            assert line.split()[1] in ("HELP", "TYPE")
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        found.append((match[1], match[2] or "", float(match[3])))
    return found


def test_every_gauge_has_its_value() -> None:
    found = samples(DOCUMENT)
    assert {name for name, _, _ in found} == set(METRICS)
    by_name = {(name, "b" in labels.split(",")[0]): value for name, labels, value in found}
    assert by_name["autotune_published_ok", False] == 0
    assert by_name["autotune_published_gain_lost", False] == 0
    assert [v for n, _, v in found if n.endswith("_expired")] == [0, 1]
    # What cannot be observed is absent, and so is an end of an interval that is open.
    assert [v for n, _, v in found if n.endswith("_in_force")] == [1]
    open_end = VerifiedFiles(ok=True, files=[], comparisons=[{**SHRUNK, **FIGURES}], renewals=[])  # type: ignore[typeddict-item]
    assert "autotune_published_gain_upper_ratio" not in {name for name, _, _ in samples(open_end)}


@pytest.mark.parametrize(
    "document", [VerifiedFiles(ok=True, files=[], comparisons=[], renewals=[])]
)
def test_nothing_published(document: VerifiedFiles) -> None:
    assert {name for name, _, _ in samples(document)} == {
        "autotune_verification_timestamp_seconds",
        "autotune_published_ok",
        "autotune_published_files",
    }


def test_the_board_shows_gauges_that_there_are() -> None:
    board = json.loads(BOARD.read_text())
    asked = {
        name
        for panel in board["panels"]
        for target in panel["targets"]
        for name in re.findall(r"autotune_\w+", target["expr"])
    }
    assert asked <= set(METRICS)
    assert len(asked) >= 6
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
