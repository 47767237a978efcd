"""What is explained: the gain, or the logarithm of the time, relative to the default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from autotune.anova.table import Table
from autotune.errors import WorkError

Response = Literal["gain", "log"]
RESPONSES: tuple[Response, ...] = ("gain", "log")
WINSOR = 0.025
"""Share of the rows of a cell at either end whose log ratio is set to that end's limit."""


@dataclass(frozen=True)
class Values:
    """``y`` per row of ``table``, larger is faster; ``left_out``: null cells without a response."""

    table: Table
    y: NDArray[np.float64]
    kind: Response
    left_out: tuple[str, ...] = ()


def respond(table: Table, kind: Response) -> Values:
    """The response of every row.

    ``gain``: (T_default / T - 1) / gain of the cell's OPUB, so that every program weighs equally
    (Pellegrini 1.10.2); null cells have nothing to divide by and are left out.  ``log``:
    -log(T / T_default), winsorised within its cell, on all cells; a failed setting counts as the
    slowest.  Raises WorkError where ``gain`` has no cell left.
    """
    return _gain(table) if kind == "gain" else _log(table)


def _gain(table: Table) -> Values:
    null = tuple(key for key in table.cells if table.best[key].null)
    kept = table.where(lambda place: place.key not in null)
    if not kept.cells:
        raise WorkError(
            f"{table.origin}: in none of its {len(table.cells)} cells does any setting "
            "beat the default beyond noise, so there is no gain to analyse; --response log "
            "uses all cells"
        )
    scale = kept.rows["cell"].map({key: kept.best[key].gain for key in kept.cells}).to_numpy(float)
    # A failed setting has an infinite ratio: its gain is -1, as slow as can be.
    gain = 1.0 / kept.rows["ratio"].to_numpy(dtype=float) - 1.0
    return Values(kept, gain / scale, "gain", null)


def _log(table: Table) -> Values:
    ratio = table.rows["ratio"].to_numpy(dtype=float)
    y = np.empty(len(ratio))
    for number in range(len(table.cells)):
        here = table.blocks == number
        y[here] = winsorised(-np.log(ratio[here]))
    return Values(table, y, "log")


def winsorised(logs: NDArray[np.float64], share: float = WINSOR) -> NDArray[np.float64]:
    """Values beyond the ``share`` and 1 - ``share`` quantiles of the finite ones, set to these."""
    finite = logs[np.isfinite(logs)]
    if not finite.size:
        return np.zeros_like(logs)
    low, high = np.quantile(finite, [share, 1 - share])
    return np.clip(logs, low, high)
