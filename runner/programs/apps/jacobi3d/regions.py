"""The update of a rank, a task or a block, in the dialect of compiled regions."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from runner.programs.apps.common.meter import SAMPLE
from runner.programs.apps.jacobi3d import stencil


class Clocks(Protocol):
    """The clocks of the worker that runs an update."""

    def seconds(self) -> float: ...
    def cpu_seconds(self) -> float: ...


class Piece(Protocol):
    """The data of a rank, a task or a block for the update of its cells."""

    @property
    def ctx(self) -> Clocks: ...

    cells: tuple[NDArray[Any], ...]
    """The two fields, flat."""
    geometry: NDArray[np.uint64]
    weights: NDArray[np.float64]
    kernels_s: NDArray[np.float64]
    """Seconds of its kernels; wall and CPU seconds of the sampled ones."""


def compute(part: Piece, i: int) -> None:
    """Update the cells from field ``i % 2`` into the other field."""
    is_sample = i % SAMPLE == 0
    cpu = part.ctx.cpu_seconds() if is_sample else 0.0
    begin = part.ctx.seconds()
    stencil.update(part.cells[i % 2], part.cells[(i + 1) % 2], part.geometry, part.weights)
    seconds = part.ctx.seconds() - begin
    part.kernels_s[0] += seconds
    if is_sample:
        part.kernels_s[1] += seconds
        part.kernels_s[2] += part.ctx.cpu_seconds() - cpu
