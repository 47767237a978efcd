"""The numerical kernels of the hydrodynamics step (see runner.native.kernels).

``fields`` are 14 arrays [z][y][x] of doubles, one after the other, with one ghost cell on every
side. ``room`` are five more such arrays. ``geometry`` = row pitch, plane pitch, length of a field,
then the cells along x, y, z. ``numbers`` = gamma, time step over width. Each value is one fixed
expression of its neighbours, so every decomposition gives the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

_TAKES = ("float64", "float64", "uint64", "float64")
KERNELS = {
    "ideal_gas": _TAKES,
    "viscosity": _TAKES,
    "accelerate": _TAKES,
    "fluxes": _TAKES,
    "advect": _TAKES,
    "take_room": _TAKES,
}

ONE = np.uint64(1)


def ideal_gas(fields: Any, room: Any, geometry: Any, numbers: Any) -> None:
    """Pressure and speed of sound from density and energy."""
    g = carray(geometry, (6,))
    row, plane, size = g[0], g[1], g[2]
    nx, ny, nz = g[3], g[4], g[5]
    f = carray(fields, size * np.uint64(14))
    gamma = carray(numbers, (2,))[0]
    z = ONE
    while z <= nz:
        y = ONE
        while y <= ny:
            first = z * plane + y * row
            for i in range(first + ONE, first + nx + ONE):
                pressure = (gamma - 1.0) * f[i] * f[size + i]
                f[size * np.uint64(2) + i] = pressure
                f[size * np.uint64(4) + i] = np.sqrt(np.divide(gamma * pressure, f[i]))
            y += ONE
        z += ONE


def viscosity(fields: Any, room: Any, geometry: Any, numbers: Any) -> None:
    """Artificial viscosity where the gas is compressed."""
    g = carray(geometry, (6,))
    row, plane, size = g[0], g[1], g[2]
    nx, ny, nz = g[3], g[4], g[5]
    f = carray(fields, size * np.uint64(14))
    u0, v0, w0 = size * np.uint64(5), size * np.uint64(6), size * np.uint64(7)
    z = ONE
    while z <= nz:
        y = ONE
        while y <= ny:
            first = z * plane + y * row
            for i in range(first + ONE, first + nx + ONE):
                change = 0.5 * (
                    (f[u0 + i + ONE] - f[u0 + i - ONE])
                    + (f[v0 + i + row] - f[v0 + i - row])
                    + (f[w0 + i + plane] - f[w0 + i - plane])
                )
                squeezed = min(change, 0.0)
                f[size * np.uint64(3) + i] = 2.0 * f[i] * squeezed * squeezed
            y += ONE
        z += ONE


def accelerate(fields: Any, room: Any, geometry: Any, numbers: Any) -> None:
    """Velocities and energy after the work of the pressure (PdV), written into ``room``.

    The gradient is that of Sobel and reads all 26 neighbours; the halo needs its edges and corners.
    """
    g = carray(geometry, (6,))
    row, plane, size = g[0], g[1], g[2]
    nx, ny, nz = g[3], g[4], g[5]
    f = carray(fields, size * np.uint64(14))
    r = carray(room, size * np.uint64(5))
    step = carray(numbers, (2,))[1]
    e0, p0, q0 = size, size * np.uint64(2), size * np.uint64(3)
    u0, v0, w0 = size * np.uint64(5), size * np.uint64(6), size * np.uint64(7)
    z = ONE
    while z <= nz:
        y = ONE
        while y <= ny:
            first = z * plane + y * row
            for i in range(first + ONE, first + nx + ONE):
                gx = 0.0
                gy = 0.0
                gz = 0.0
                a = np.uint64(0)
                while a < np.uint64(3):
                    b = np.uint64(0)
                    while b < np.uint64(3):
                        weight = (2.0 if a == ONE else 1.0) * (2.0 if b == ONE else 1.0)
                        across = i + a * plane + b * row - plane - row
                        over = i + a * plane + b - plane - ONE
                        flat = i + a * row + b - row - ONE
                        gx += weight * (
                            (f[p0 + across + ONE] + f[q0 + across + ONE])
                            - (f[p0 + across - ONE] + f[q0 + across - ONE])
                        )
                        gy += weight * (
                            (f[p0 + over + row] + f[q0 + over + row])
                            - (f[p0 + over - row] + f[q0 + over - row])
                        )
                        gz += weight * (
                            (f[p0 + flat + plane] + f[q0 + flat + plane])
                            - (f[p0 + flat - plane] + f[q0 + flat - plane])
                        )
                        b += ONE
                    a += ONE
                push = np.divide(step, 32.0 * f[i])
                change = 0.5 * (
                    (f[u0 + i + ONE] - f[u0 + i - ONE])
                    + (f[v0 + i + row] - f[v0 + i - row])
                    + (f[w0 + i + plane] - f[w0 + i - plane])
                )
                work = np.divide(step * (f[p0 + i] + f[q0 + i]), f[i]) * change
                r[i] = f[i]
                r[e0 + i] = f[e0 + i] - work
                r[size * np.uint64(2) + i] = f[u0 + i] - push * gx
                r[size * np.uint64(3) + i] = f[v0 + i] - push * gy
                r[size * np.uint64(4) + i] = f[w0 + i] - push * gz
            y += ONE
        z += ONE


def fluxes(fields: Any, room: Any, geometry: Any, numbers: Any) -> None:
    """Volume and mass through the lower faces of every cell."""
    g = carray(geometry, (6,))
    row, plane, size = g[0], g[1], g[2]
    nx, ny, nz = g[3], g[4], g[5]
    f = carray(fields, size * np.uint64(14))
    step = carray(numbers, (2,))[1]
    z = ONE
    while z <= nz:
        y = ONE
        while y <= ny:
            first = z * plane + y * row
            for i in range(first + ONE, first + nx + ONE):
                axis = np.uint64(0)
                back = ONE
                while axis < np.uint64(3):
                    speed = size * (np.uint64(5) + axis)
                    volume = 0.5 * step * (f[speed + i - back] + f[speed + i])
                    upwind = f[i - back] if volume > 0.0 else f[i]
                    f[size * (np.uint64(8) + axis) + i] = volume
                    f[size * (np.uint64(11) + axis) + i] = volume * upwind
                    axis += ONE
                    back = row if axis == ONE else plane
            y += ONE
        z += ONE


def advect(fields: Any, room: Any, geometry: Any, numbers: Any) -> None:
    """Density, energy and velocities after the advection (donor cells), written into ``room``."""
    g = carray(geometry, (6,))
    row, plane, size = g[0], g[1], g[2]
    nx, ny, nz = g[3], g[4], g[5]
    f = carray(fields, size * np.uint64(14))
    r = carray(room, size * np.uint64(5))
    z = ONE
    while z <= nz:
        y = ONE
        while y <= ny:
            first = z * plane + y * row
            for i in range(first + ONE, first + nx + ONE):
                mass = f[i]
                axis = np.uint64(0)
                back = ONE
                while axis < np.uint64(3):
                    m0 = size * (np.uint64(11) + axis)
                    mass += f[m0 + i] - f[m0 + i + back]
                    axis += ONE
                    back = row if axis == ONE else plane
                r[i] = mass
                kind = np.uint64(1)
                while kind < np.uint64(5):
                    # Energy, then the three velocities, which are fields 5 to 7.
                    q0 = size if kind == ONE else size * (kind + np.uint64(3))
                    total = f[i] * f[q0 + i]
                    axis = np.uint64(0)
                    back = ONE
                    while axis < np.uint64(3):
                        m0 = size * (np.uint64(11) + axis)
                        low = f[m0 + i]
                        high = f[m0 + i + back]
                        carried = f[q0 + i - back] if low > 0.0 else f[q0 + i]
                        lost = f[q0 + i] if high > 0.0 else f[q0 + i + back]
                        total += low * carried - high * lost
                        axis += ONE
                        back = row if axis == ONE else plane
                    r[size * kind + i] = np.divide(total, mass)
                    kind += ONE
            y += ONE
        z += ONE


def take_room(fields: Any, room: Any, geometry: Any, numbers: Any) -> None:
    """Copy ``room`` into density, energy and velocities."""
    g = carray(geometry, (6,))
    row, plane, size = g[0], g[1], g[2]
    nx, ny, nz = g[3], g[4], g[5]
    f = carray(fields, size * np.uint64(14))
    r = carray(room, size * np.uint64(5))
    z = ONE
    while z <= nz:
        y = ONE
        while y <= ny:
            first = z * plane + y * row
            for i in range(first + ONE, first + nx + ONE):
                f[i] = r[i]
                f[size + i] = r[size + i]
                f[size * np.uint64(5) + i] = r[size * np.uint64(2) + i]
                f[size * np.uint64(6) + i] = r[size * np.uint64(3) + i]
                f[size * np.uint64(7) + i] = r[size * np.uint64(4) + i]
            y += ONE
        z += ONE
