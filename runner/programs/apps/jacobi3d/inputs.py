"""The named inputs, and the residuals that every run of them must reach.

``residuals.json`` maps ``SIZE:ITERATIONS`` to the residual of a serial run. ``python -m
runner.programs.apps.jacobi3d.residuals`` makes the file. It holds on every machine, because the
update of a cell is one fixed sequence of IEEE operations.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources

from runner.programs.apps.common.grid import Shape, show_shape

RESIDUALS = "residuals.json"


@dataclass(frozen=True)
class Input:
    """Cells along x, y, z and the number of updates."""

    size: Shape
    iterations: int
    description: str


INPUTS = {
    "tiny": Input((16, 16, 16), 20, "for tests: a few milliseconds"),
    "small": Input((48, 48, 48), 400, "short messages, some hundredths of a second"),
    "default": Input((64, 64, 64), 6000, "about one second at 2 ranks"),
    "halo": Input((24, 24, 24), 40000, "small blocks, many iterations: bound by latency"),
    "face": Input((96, 96, 192), 100, "faces of 72 KiB: beyond the eager limit of TCP"),
    "long": Input((2048, 64, 64), 80, "a small face between large blocks: what latency costs"),
    "large": Input((256, 256, 256), 80, "larger than the caches: bound by memory"),
}


def key(size: Shape, iterations: int) -> str:
    return f"{show_shape(size)}:{iterations}"


def stored_residual(size: Shape, iterations: int) -> float | None:
    """The residual of a serial run; None if no such run was stored."""
    text = resources.files(__package__).joinpath(RESIDUALS).read_text(encoding="utf-8")
    table: dict[str, float] = json.loads(text)
    return table.get(key(size, iterations))
