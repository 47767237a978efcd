"""The run list and the verdict of the check of outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.common import ROOT
from benchmarks.output_checks import APPS, cases, judge

OUTSIDE = (
    *("cp2k", "gromacs", "hpcg", "hpl", "imb", "lammps", "micro", "npb-", "osu"),
    "quantum-espresso",
)
"""Applications whose program does not come with autotune, or that only measures the machine."""


def row(compared: bool, stop: bool, wanted: bool) -> dict[str, Any]:
    shown = [{"reference": "x 1", "setting": "x 2"}]
    return {
        "program": "p", "setting": "a=1", "states": "ok",
        "compared": compared, "stop": stop, "wanted": wanted, "shown": shown,
    }  # fmt: skip


def test_the_verdict() -> None:
    assert judge([row(True, False, False), row(True, True, True)]) == []
    for wrong in (row(True, True, False), row(True, False, True), row(False, False, False)):
        assert len(judge([wrong])) == 1


def test_every_shipped_application_is_in_the_list() -> None:
    shipped = {path.stem for path in (ROOT / "configs/apps").glob("*.toml")}
    assert set(APPS) == {name for name in shipped if not name.startswith(OUTSIDE)}
    assert all(case.input for case in cases(None) if case.app in ("jacobi3d", "nas-cg"))
    assert [case.name for case in cases(Path("/p")) if case.stop] == ["product, ring"]  # data
    assert not any(case.stop for case in cases(None))
