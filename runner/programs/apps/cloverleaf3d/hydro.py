"""The five kernels of a step, for flat MPI and for compiled regions.

They are functions of the dialect of compiled regions (runner/runtimes/mate/README.md). Fields are
arrays of one dimension that hold [z][y][x] with one ghost cell on every side. ``geometry`` = row
pitch, plane pitch, length of a field, then the cells along x, y, z. ``factors`` = gamma, time step
over width. Each value is one fixed expression of its neighbours, so every decomposition gives the
same bits. All integers are unsigned, so that an index needs no check for negative values.

The state at the begin of a step is read up to the acceleration, which writes the advanced state;
the advection reads that and writes the state of the next step. So nothing is copied back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runner.runtimes.core.distinct import distinct

ONE = np.uint64(1)


@distinct
def ideal_gas(density: Any, energy: Any, pressure: Any, sound: Any, g: Any, factors: Any) -> None:
    """Pressure and speed of sound from density and energy. It reads no ghosts."""
    row, plane, nx, ny, nz = g[0], g[1], g[3], g[4], g[5]
    gamma = factors[0]
    z = ONE
    while z <= nz:
        y = ONE
        while y <= ny:
            first = z * plane + y * row + ONE
            for i in range(first, first + nx):
                p = (gamma - 1.0) * density[i] * energy[i]
                pressure[i] = p
                sound[i] = np.sqrt(np.divide(gamma * p, density[i]))
            y += ONE
        z += ONE


def expansion(u: Any, v: Any, w: Any, i: Any, row: Any, plane: Any) -> Any:
    """The divergence of the velocity in a cell, times its width."""
    return 0.5 * (
        (u[i + ONE] - u[i - ONE]) + (v[i + row] - v[i - row]) + (w[i + plane] - w[i - plane])
    )


@distinct
def viscosity(density: Any, u: Any, v: Any, w: Any, q: Any, g: Any) -> None:
    """Artificial viscosity where the gas is compressed."""
    row, plane, nx, ny, nz = g[0], g[1], g[3], g[4], g[5]
    z = ONE
    while z <= nz:
        y = ONE
        while y <= ny:
            first = z * plane + y * row + ONE
            for i in range(first, first + nx):
                compression = min(expansion(u, v, w, i, row, plane), 0.0)
                q[i] = 2.0 * density[i] * compression * compression
            y += ONE
        z += ONE


def rise(p: Any, q: Any, i: Any, stride: Any) -> Any:
    """Pressure and viscosity one cell ahead less those one cell behind."""
    return (p[i + stride] + q[i + stride]) - (p[i - stride] + q[i - stride])


def slope(p: Any, q: Any, i: Any, stride: Any, a: Any, b: Any) -> Any:
    """32 times the gradient of Sobel, from the nine lines around a cell."""
    total = rise(p, q, i - b - a, stride)
    total += 2.0 * rise(p, q, i - b, stride)
    total += rise(p, q, i - b + a, stride)
    total += 2.0 * rise(p, q, i - a, stride)
    total += 4.0 * rise(p, q, i, stride)
    total += 2.0 * rise(p, q, i + a, stride)
    total += rise(p, q, i + b - a, stride)
    total += 2.0 * rise(p, q, i + b, stride)
    total += rise(p, q, i + b + a, stride)
    return total


@distinct
def accelerate(
    density: Any,
    energy: Any,
    p: Any,
    q: Any,
    u: Any,
    v: Any,
    w: Any,
    density1: Any,
    energy1: Any,
    u1: Any,
    v1: Any,
    w1: Any,
    g: Any,
    factors: Any,
) -> None:
    """The advanced state: velocities and energy after the work of the pressure (PdV).

    The gradient is that of Sobel and reads all 26 neighbours; the halo needs its edges and corners.
    """
    row, plane, nx, ny, nz = g[0], g[1], g[3], g[4], g[5]
    step = factors[1]
    z = ONE
    while z <= nz:
        y = ONE
        while y <= ny:
            first = z * plane + y * row + ONE
            for i in range(first, first + nx):
                push = np.divide(step, 32.0 * density[i])
                work = np.divide(step * (p[i] + q[i]), density[i]) * expansion(
                    u, v, w, i, row, plane
                )
                density1[i] = density[i]
                energy1[i] = energy[i] - work
                u1[i] = u[i] - push * slope(p, q, i, ONE, row, plane)
                v1[i] = v[i] - push * slope(p, q, i, row, ONE, plane)
                w1[i] = w[i] - push * slope(p, q, i, plane, ONE, row)
            y += ONE
        z += ONE


@distinct
def flux(
    density: Any, speed: Any, volume: Any, mass: Any, first: Any, nx: Any, step: Any, back: Any
) -> None:
    """Volume and mass through the lower faces of a row of cells along one axis.

    ``back`` is the distance to the cell behind such a face.
    """
    for i in range(first, first + nx):
        flow = 0.5 * step * (speed[i - back] + speed[i])
        lower, centre = density[i - back], density[i]
        volume[i] = flow
        mass[i] = flow * (lower if flow > 0.0 else centre)


def fluxes(f: Any, g: Any, factors: Any) -> None:
    """Volume and mass through the lower faces of every cell."""
    row, plane, nx, ny, nz = g[0], g[1], g[3], g[4], g[5]
    step = factors[1]
    density, u, v, w = f[14], f[16], f[17], f[18]
    volume_x, volume_y, volume_z, mass_x, mass_y, mass_z = f[8], f[9], f[10], f[11], f[12], f[13]
    z = ONE
    while z <= nz:
        y = ONE
        while y <= ny:
            first = z * plane + y * row + ONE
            flux(density, u, volume_x, mass_x, first, nx, step, ONE)
            flux(density, v, volume_y, mass_y, first, nx, step, row)
            flux(density, w, volume_z, mass_z, first, nx, step, plane)
            y += ONE
        z += ONE


def net_inflow(q: Any, mass: Any, i: Any, back: Any) -> Any:
    """What the mass through both faces of one axis carries of a quantity into a cell."""
    low, high = mass[i], mass[i + back]
    lower, centre, upper = q[i - back], q[i], q[i + back]
    return low * (lower if low > 0.0 else centre) - high * (centre if high > 0.0 else upper)


@distinct
def advect(
    density1: Any,
    energy1: Any,
    u1: Any,
    v1: Any,
    w1: Any,
    mx: Any,
    my: Any,
    mz: Any,
    density: Any,
    energy: Any,
    u: Any,
    v: Any,
    w: Any,
    g: Any,
) -> None:
    """The state of the next step: the advanced state after the advection (donor cells)."""
    row, plane, nx, ny, nz = g[0], g[1], g[3], g[4], g[5]
    z = ONE
    while z <= nz:
        y = ONE
        while y <= ny:
            first = z * plane + y * row + ONE
            for i in range(first, first + nx):
                before = density1[i]
                mass = before + (mx[i] - mx[i + ONE])
                mass += my[i] - my[i + row]
                mass += mz[i] - mz[i + plane]
                density[i] = mass
                energy[i] = np.divide(
                    before * energy1[i]
                    + net_inflow(energy1, mx, i, ONE)
                    + net_inflow(energy1, my, i, row)
                    + net_inflow(energy1, mz, i, plane),
                    mass,
                )
                u[i] = np.divide(
                    before * u1[i]
                    + net_inflow(u1, mx, i, ONE)
                    + net_inflow(u1, my, i, row)
                    + net_inflow(u1, mz, i, plane),
                    mass,
                )
                v[i] = np.divide(
                    before * v1[i]
                    + net_inflow(v1, mx, i, ONE)
                    + net_inflow(v1, my, i, row)
                    + net_inflow(v1, mz, i, plane),
                    mass,
                )
                w[i] = np.divide(
                    before * w1[i]
                    + net_inflow(w1, mx, i, ONE)
                    + net_inflow(w1, my, i, row)
                    + net_inflow(w1, mz, i, plane),
                    mass,
                )
            y += ONE
        z += ONE


def run(f: Any, phase: int, g: Any, factors: Any) -> None:
    """One kernel of a block; ``f`` holds the fields in the order of ``problem.FIELDS``."""
    density, energy, p, q, sound, u, v, w = f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7]
    mx, my, mz = f[11], f[12], f[13]
    density1, energy1, u1, v1, w1 = f[14], f[15], f[16], f[17], f[18]
    if phase == 0:
        ideal_gas(density, energy, p, sound, g, factors)
    elif phase == 1:
        viscosity(density, u, v, w, q, g)
    elif phase == 2:
        accelerate(density, energy, p, q, u, v, w, density1, energy1, u1, v1, w1, g, factors)
    elif phase == 3:
        fluxes(f, g, factors)
    else:
        advect(density1, energy1, u1, v1, w1, mx, my, mz, density, energy, u, v, w, g)
