"""The functions of a block as machine code for Python (see runner.runtimes.core.kernels).

``fields`` are 19 arrays [z][y][x] of doubles, one after the other: those of ``problem.FIELDS``,
then the advanced state. ``geometry`` = row pitch, plane pitch, length of a field, then the cells
along x, y, z. ``factors`` = gamma, time step over width. ``which`` = phase, face, length of the
buffer. The other arguments are those of :mod:`runner.programs.apps.cloverleaf3d.halo`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

from runner.programs.apps.cloverleaf3d import halo, hydro
from runner.runtimes.core.atomic import inner

KERNELS = {
    "run": ("float64", "uint64", "float64", "uint64"),
    "pack": ("float64", "uint64", "int64", "int64", "uint64", "float64"),
    "unpack": ("float64", "uint64", "int64", "int64", "uint64", "float64"),
    "copy": ("float64", "uint64", "int64", "int64", "uint64", "float64", "uint64", "int64"),
    "reflect": ("float64", "uint64", "int64", "int64", "int64", "uint64", "float64"),
}

ONE, TWO, COUNT = np.uint64(1), np.uint64(2), np.uint64(19)

_run = inner(hydro.run)
_pack, _unpack = inner(halo.pack_face), inner(halo.unpack_face)
_copy, _reflect = inner(halo.copy_face), inner(halo.reflect_face)


@inner
def shape(g: Any) -> Any:
    """The extents of the fields as one array."""
    return COUNT, g[5] + TWO, g[4] + TWO, g[3] + TWO


def run(fields: Any, geometry: Any, factors: Any, which: Any) -> None:
    """The kernel of a phase, see :func:`runner.programs.apps.cloverleaf3d.hydro.run`."""
    g = carray(geometry, (6,))
    _run(carray(fields, (COUNT, g[2])), carray(which, (3,))[0], g, carray(factors, (2,)))


def pack(fields: Any, geometry: Any, field_table: Any, boxes: Any, which: Any, buffer: Any) -> None:
    w = carray(which, (3,))
    box = carray(boxes, (6, 6))[w[1]]
    _pack(
        carray(fields, shape(carray(geometry, (6,)))),
        carray(field_table, (4, 7)),
        w[0],
        box,
        carray(buffer, w[2]),
    )


def unpack(
    fields: Any, geometry: Any, field_table: Any, boxes: Any, which: Any, buffer: Any
) -> None:
    w = carray(which, (3,))
    box = carray(boxes, (6, 6))[w[1]]
    _unpack(
        carray(fields, shape(carray(geometry, (6,)))),
        carray(field_table, (4, 7)),
        w[0],
        box,
        carray(buffer, w[2]),
    )


def copy(
    fields: Any,
    geometry: Any,
    field_table: Any,
    boxes: Any,
    which: Any,
    others: Any,
    other_geometry: Any,
    ghosts: Any,
) -> None:
    """Copy into the ghosts of another block behind the face."""
    w = carray(which, (3,))
    box = carray(boxes, (6, 6))[w[1]]
    behind = carray(ghosts, (6, 6))[w[1] ^ ONE]
    other = carray(others, shape(carray(other_geometry, (6,))))
    _copy(
        carray(fields, shape(carray(geometry, (6,)))),
        other,
        carray(field_table, (4, 7)),
        w[0],
        box,
        behind,
    )


def reflect(
    fields: Any,
    geometry: Any,
    field_table: Any,
    boxes: Any,
    ghosts: Any,
    which: Any,
    signs: Any,
) -> None:
    w = carray(which, (3,))
    box, behind = carray(boxes, (6, 6))[w[1]], carray(ghosts, (6, 6))[w[1]]
    f, e = carray(fields, shape(carray(geometry, (6,)))), carray(field_table, (4, 7))
    _reflect(f, e, w[0], box, behind, carray(signs, (COUNT, np.uint64(3))), w[1] // TWO)
