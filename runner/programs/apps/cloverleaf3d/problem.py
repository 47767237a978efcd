"""The problem of the hydrodynamics step: fields, start values, boundaries."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from runner.programs.apps.common.grid import Shape

DEPTH = 1
"""Ghost cells on every side."""
FACE_BYTES = 64
"""Bytes of the smallest usual message for each cell of a face: eight fields share it."""
GAMMA = 1.4
DT_DX = 0.02
"""Time step over the width of a cell; far below the stability limit for the start values."""

FIELDS = (
    *("density", "energy", "pressure", "viscosity", "soundspeed"),
    *("velocity_x", "velocity_y", "velocity_z"),
    *("volume_flux_x", "volume_flux_y", "volume_flux_z"),
    *("mass_flux_x", "mass_flux_y", "mass_flux_z"),
)
"""The 14 fields of the original."""
NUMBER = {name: number for number, name in enumerate(FIELDS)}
COUNT = len(FIELDS)


def numbers(*names: str) -> tuple[int, ...]:
    return tuple(NUMBER[name] for name in names)


VELOCITIES = numbers("velocity_x", "velocity_y", "velocity_z")
STATE = (*numbers("density", "energy"), *VELOCITIES)
FLUXES = tuple(range(NUMBER["volume_flux_x"], COUNT))
ADVANCED_FIELDS = tuple(range(COUNT, COUNT + len(STATE)))
"""The state after the acceleration, in five more fields."""
STEP = ("ideal_gas", "viscosity", "accelerate", "fluxes", "advect")
"""The kernels of a step, in the order of :func:`runner.programs.apps.cloverleaf3d.hydro.run`."""
EXCHANGES = (
    numbers("density", "energy", "pressure", "velocity_x", "velocity_y", "velocity_z"),
    numbers("viscosity"),
    ADVANCED_FIELDS,
    FLUXES,
)
"""The fields whose halo is exchanged after each kernel of a step but the last.

After the last one nothing is exchanged: ``ideal_gas`` reads no ghosts, and the exchange after it
carries the whole state.
"""
PHASES = len(EXCHANGES)


def reflection(field: int, axis: int) -> float:
    """The factor between a ghost cell beyond a wall and the cell before the wall.

    Nothing flows through a wall: the normal velocity changes its sign, normal fluxes vanish.
    """
    if field in ADVANCED_FIELDS:
        field = STATE[field - COUNT]
    if field in VELOCITIES:
        return -1.0 if field - VELOCITIES[0] == axis else 1.0
    if field in FLUXES:
        return 0.0 if (field - FLUXES[0]) % 3 == axis else 1.0
    return 1.0


def start_values(size: Shape, start: Shape, stop: Shape) -> NDArray[np.float64]:
    """Fields [14][z][y][x] of a block with its ghosts: a hot dense corner in a cold thin gas.

    The values depend only on the cell, so every decomposition has the same bits.
    """
    x, y, z = (
        (np.arange(a - DEPTH, b + DEPTH) + 0.5) / n
        for a, b, n in zip(start, stop, size, strict=True)
    )
    inside = (x[None, None, :] < 0.4) & (y[None, :, None] < 0.5) & (z[:, None, None] < 0.3)
    fields = np.zeros((COUNT, len(z), len(y), len(x)))
    fields[NUMBER["density"]] = np.where(inside, 1.0, 0.2)
    fields[NUMBER["energy"]] = np.where(inside, 2.5, 1.0)
    return fields
