"""Barnes-Hut in compiled code: the octree, forces from it, and direct sums.

A body is a row x, y, z, mass. The tree depends only on the bodies, and the force on a body only on
the tree, so equal bodies give equal bits on any rank.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

KERNELS = {
    "build": ("float64", "int64", "int64", "float64", "float64", "uint64"),
    "accelerate": ("float64", "int64", "int64", "float64", "float64", "float64", "uint64"),
    "direct": ("float64", "float64", "float64", "float64", "uint64"),
}
"""``children``: eight words for each cell; -1: nothing, -2 - b: body b, else the number of a cell.

``following``: for each body the next one in its leaf, or -1. ``cells``: for each cell x, y, z and
mass of its centre of mass, and its width. ``numbers``: bodies, capacity of cells, first and last
body of this rank; ``build`` writes the number of cells to ``status``.
"""
DEEPEST = 60
"""Maximum depth of the tree; bodies not separated there share a leaf."""
STACK = 8 * DEEPEST


def build(
    bodies: Any, children: Any, following: Any, cells: Any, status: Any, numbers: Any
) -> None:
    """The octree of all bodies; ``status[0]``: number of cells, or 0 if there is no room for
    them."""
    shape = carray(numbers, 4)
    count, room = np.int64(shape[0]), np.int64(shape[1])
    x = carray(bodies, (count, 4))
    child = carray(children, (room, 8))
    chain = carray(following, count)
    cell = carray(cells, (room, 5))
    result = carray(status, 4)
    result[0] = 0.0
    most = 0.0
    for b in range(count):
        for d in range(3):
            most = max(most, abs(x[b, d]))
    # The centres of cells while the tree is built; later the centres of mass.
    for d in range(3):
        cell[0, d] = 0.0
    cell[0, 4] = 2.0 * most * 1.0000001 + 1e-300
    for octant in range(8):
        child[0, octant] = -1
    cell_count = np.int64(1)
    for b in range(count):
        chain[b] = -1
        at, depth = np.int64(0), 0
        while True:
            octant = 0
            for d in range(3):
                if x[b, d] >= cell[at, d]:
                    octant |= 1 << d
            node = child[at, octant]
            if node == -1:
                child[at, octant] = -2 - b
                break
            if node <= -2 and depth >= DEEPEST:
                chain[b] = -2 - node
                child[at, octant] = -2 - b
                break
            if node <= -2:
                # The existing body moves one cell down.
                if cell_count == room:
                    return
                new, other = cell_count, -2 - node
                cell_count += 1
                half = 0.5 * cell[at, 4]
                cell[new, 4] = half
                place = 0
                for d in range(3):
                    if octant & (1 << d):
                        cell[new, d] = cell[at, d] + 0.5 * half
                    else:
                        cell[new, d] = cell[at, d] - 0.5 * half
                    if x[other, d] >= cell[new, d]:
                        place |= 1 << d
                for n in range(8):
                    child[new, n] = -1
                child[new, place] = node
                child[at, octant] = new
                node = new
            at = node
            depth += 1
    # A cell comes after the one that contains it.
    for back in range(cell_count):
        at = cell_count - 1 - back
        mass = 0.0
        mx = 0.0
        my = 0.0
        mz = 0.0
        for octant in range(8):
            node = child[at, octant]
            if node >= 0:
                m = cell[node, 3]
                mass += m
                mx += m * cell[node, 0]
                my += m * cell[node, 1]
                mz += m * cell[node, 2]
            b = -2 - node
            while node != -1 and b >= 0:
                m = x[b, 3]
                mass += m
                mx += m * x[b, 0]
                my += m * x[b, 1]
                mz += m * x[b, 2]
                b = chain[b]
        part = np.divide(1.0, mass)
        cell[at, 0] = mx * part
        cell[at, 1] = my * part
        cell[at, 2] = mz * part
        cell[at, 3] = mass
    result[0] = float(cell_count)


def accelerate(
    bodies: Any,
    children: Any,
    following: Any,
    cells: Any,
    accelerations: Any,
    terms: Any,
    numbers: Any,
) -> None:
    """Accelerations of bodies ``first`` to ``last``; ``terms``: theta^2, softening^2.

    A cell acts as one body if its width is less than theta times its distance.
    """
    shape = carray(numbers, 4)
    count, room = np.int64(shape[0]), np.int64(shape[1])
    first, last = np.int64(shape[2]), np.int64(shape[3])
    x = carray(bodies, (count, 4))
    child = carray(children, (room, 8))
    chain = carray(following, count)
    cell = carray(cells, (room, 5))
    result = carray(accelerations, (last - first, 3))
    term = carray(terms, 2 + STACK)
    theta2, soft2 = term[0], term[1]
    for b in range(first, last):
        ax, ay, az = 0.0, 0.0, 0.0
        px, py, pz = x[b, 0], x[b, 1], x[b, 2]
        # The stack of cells still to visit; their numbers are exact as floats.
        top = 1
        term[2] = 0.0
        while top > 0:
            top -= 1
            at = np.int64(term[2 + top])
            dx, dy, dz = cell[at, 0] - px, cell[at, 1] - py, cell[at, 2] - pz
            r2 = dx * dx + dy * dy + dz * dz
            if cell[at, 4] * cell[at, 4] < theta2 * r2:
                s = r2 + soft2
                f = np.divide(cell[at, 3], s * np.sqrt(s))
                ax += f * dx
                ay += f * dy
                az += f * dz
                continue
            for octant in range(8):
                node = child[at, octant]
                if node >= 0:
                    term[2 + top] = float(node)
                    top += 1
                    continue
                other = -2 - node
                while node != -1 and other >= 0:
                    if other != b:
                        dx, dy, dz = x[other, 0] - px, x[other, 1] - py, x[other, 2] - pz
                        s = dx * dx + dy * dy + dz * dz + soft2
                        f = np.divide(x[other, 3], s * np.sqrt(s))
                        ax += f * dx
                        ay += f * dy
                        az += f * dz
                    other = chain[other]
        result[b - first, 0] = ax
        result[b - first, 1] = ay
        result[b - first, 2] = az


def direct(bodies: Any, accelerations: Any, potential: Any, terms: Any, numbers: Any) -> None:
    """Accelerations of bodies ``first`` to ``last`` by all others, and their potential energies."""
    shape = carray(numbers, 4)
    count = np.int64(shape[0])
    first, last = np.int64(shape[2]), np.int64(shape[3])
    x = carray(bodies, (count, 4))
    result = carray(accelerations, (last - first, 3))
    energy = carray(potential, last - first)
    soft2 = carray(terms, 2)[1]
    for b in range(first, last):
        ax, ay, az, e = 0.0, 0.0, 0.0, 0.0
        for other in range(count):
            if other != b:
                dx, dy, dz = x[other, 0] - x[b, 0], x[other, 1] - x[b, 1], x[other, 2] - x[b, 2]
                s = dx * dx + dy * dy + dz * dz + soft2
                one = np.divide(1.0, np.sqrt(s))
                f = x[other, 3] * one * one * one
                ax += f * dx
                ay += f * dy
                az += f * dz
                e -= x[other, 3] * one
        result[b - first, 0] = ax
        result[b - first, 1] = ay
        result[b - first, 2] = az
        energy[b - first] = x[b, 3] * e
