"""Convergence of searches for Python programs: as a table, and as a picture of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from autotune.errors import UsageError
from autotune.files import write_text
from autotune.study.convergence import ConvergencePoint

if TYPE_CHECKING:
    import pandas as pd

AXES = {"runs": "search runs", "machine_s": "machine seconds of the search"}
COLUMNS = ["runs", "machine_s", "ratio", "setting"]


class Search(Protocol):
    """A :class:`autotune.Study` or a :class:`autotune.Replay`."""

    def convergence(self) -> pd.DataFrame:
        """The best setting so far, one row wherever it changes."""


@dataclass(frozen=True)
class Picture:
    """A picture as SVG text; a notebook shows it."""

    svg: str

    def save(self, path: str | Path) -> Path:
        """Write the picture to an SVG file; raises UsageError if that fails."""
        write_text(Path(path), self.svg)
        return Path(path)

    def _repr_svg_(self) -> str:
        return self.svg


def convergence_frame(points: Sequence[ConvergencePoint]) -> pd.DataFrame:
    """The points as a table; its columns are in docs/howto/python.md."""
    import pandas as pd

    rows = [(p.runs, p.machine_s, p.ratio, p.setting.key) for p in points]
    return pd.DataFrame(rows, columns=COLUMNS)


def plot_convergence(
    searches: Mapping[str, Search | Sequence[Search]],
    *,
    by: Literal["runs", "machine_s"] = "runs",
    title: str = "Best setting so far during the search (as measured, before the proof)",
) -> Picture:
    """Draw the best ratio so far of several searches, by name.

    Several searches of one name (seeds) are one line, their median, with a band: the middle 80 % of
    them, or all if there are fewer than ten. ``by`` is the axis: search runs or machine seconds.
    Raises UsageError if there is nothing to draw or matplotlib is missing (the extra ``report``).
    """
    if by not in AXES:
        raise UsageError(
            f"by={by!r} is not an axis; expected one of {', '.join(AXES)}", code="usage.argument"
        )
    curves = {}
    for name, one in searches.items():
        frames = [s.convergence() for s in (one if isinstance(one, Sequence) else [one])]
        points = [list(zip(f[by], f["ratio"], strict=True)) for f in frames if len(f)]
        if points:
            curves[name] = points
    if not curves:
        raise UsageError(
            "none of these searches has tried a setting, so there is nothing to draw",
            code="study.no_runs",
        )
    from autotune.report.figures import bands

    return Picture(bands(curves, title, AXES[by], "time / time of the default"))
