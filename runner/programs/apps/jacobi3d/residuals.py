"""Writes the table of expected residuals: ``python -m runner.programs.apps.jacobi3d.residuals``."""

from __future__ import annotations

import json
from pathlib import Path

from runner.programs.apps.jacobi3d.block import serial_block
from runner.programs.apps.jacobi3d.inputs import INPUTS, RESIDUALS, key
from runner.programs.apps.jacobi3d.verify import residual

FEWER = {"default": 600, "halo": 4000}
"""Iterations of the cheap forms of inputs, as ``configs/apps/jacobi3d.toml`` declares them."""


def serial_residual(name: str, iterations: int | None = None) -> float:
    """The residual of a named input, or after fewer iterations, computed in one block."""
    problem = INPUTS[name]
    block = serial_block(problem.size, iterations or problem.iterations)
    return residual(block.square_sum(), problem.size)


def main() -> None:
    """Run every named input and cheap form serially and write the table beside this file."""
    table = {key(i.size, i.iterations): serial_residual(name) for name, i in INPUTS.items()}
    for name, iterations in FEWER.items():
        table[key(INPUTS[name].size, iterations)] = serial_residual(name, iterations)
    path = Path(__file__).with_name(RESIDUALS)
    path.write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")
    print(f"{path}: {len(table)} residuals")


if __name__ == "__main__":
    main()
