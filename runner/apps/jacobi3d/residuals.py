"""Writes the table of expected residuals: ``python -m runner.apps.jacobi3d.residuals``."""

from __future__ import annotations

import json
from pathlib import Path

from runner.apps.jacobi3d.block import serial_block
from runner.apps.jacobi3d.inputs import INPUTS, RESIDUALS, key
from runner.apps.jacobi3d.verify import residual


def serial_residual(name: str) -> float:
    """The residual of a named input, computed in one block."""
    chosen = INPUTS[name]
    block = serial_block(chosen.size, chosen.iterations)
    return residual(block.square_sum(), chosen.size)


def main() -> None:
    """Run every named input serially and write the table beside this file."""
    table = {key(i.size, i.iterations): serial_residual(name) for name, i in INPUTS.items()}
    path = Path(__file__).with_name(RESIDUALS)
    path.write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")
    print(f"{path}: {len(table)} residuals")


if __name__ == "__main__":
    main()
