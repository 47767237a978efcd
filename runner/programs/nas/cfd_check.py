"""The official results of SP and BT, and the comparison of a run with them."""

from __future__ import annotations

from dataclasses import dataclass

from runner.programs.nas.cfd_cell_fields import CellFields
from runner.programs.nas.common.kernel import Check

TOLERANCE = 1e-8
Norms = tuple[float, float, float, float, float]


@dataclass(frozen=True)
class Problem:
    """One class of SP or BT.

    It has the points per axis, time steps and their length, and the norms of the residual and of
    the error of the five components.
    """

    size: int
    iterations: int
    dt: float
    residual: Norms
    error: Norms


def norm_checks(fields: CellFields, problem: Problem) -> list[Check]:
    """The checks of both norms. Collective; overwrites the right-hand side."""
    error = fields.error_norms()
    residual = fields.residual_norms()
    return [
        Check(f"RMS norm {n} of the {what}", float(value), right, TOLERANCE)
        for what, values, reference in (
            ("residual", residual, problem.residual),
            ("error", error, problem.error),
        )
        for n, (value, right) in enumerate(zip(values, reference, strict=True), start=1)
    ]
