"""The official results of SP and BT, and how a run is compared with them."""

from __future__ import annotations

from dataclasses import dataclass

from runner.nas.cfd_cell_fields import CellFields
from runner.nas.common_kernel import Check

TOLERANCE = 1e-8
Norms = tuple[float, float, float, float, float]


@dataclass(frozen=True)
class Problem:
    """Points per axis, time steps and their length, norms of the residual and of the error of the
    five components."""

    size: int
    iterations: int
    dt: float
    residual: Norms
    error: Norms


def norm_checks(fields: CellFields, problem: Problem) -> list[Check]:
    """Collective; destroys the right-hand side."""
    error = fields.error_norms()
    residual = fields.residual_norms()
    return [
        Check(f"RMS norm {n} of the {what}", float(value), right, TOLERANCE)
        for what, values, expected in (
            ("residual", residual, problem.residual),
            ("error", error, problem.error),
        )
        for n, (value, right) in enumerate(zip(values, expected, strict=True), start=1)
    ]
