"""The synchronous form: step by step, panels are broadcast along rows and columns of the mesh."""

from __future__ import annotations

from typing import Any

import numpy as np

from runner.programs.apps.sparse_lu.mesh import Blocks


def factorize(comm: Any, blocks: Blocks) -> None:
    """Factor all blocks; collective over ``comm``, whose ranks are the processes of the mesh."""
    mesh, analysis = blocks.mesh, blocks.analysis
    along_row = comm.Split(blocks.row, blocks.column)
    along_column = comm.Split(mesh.rows + blocks.column, blocks.row)
    for k in range(analysis.count):
        width = analysis.width(k)
        here_row, here_column = k % mesh.rows, k % mesh.columns
        inverses = np.empty((2, width, width))
        if (blocks.row, blocks.column) == (here_row, here_column):
            inverses[0], inverses[1] = blocks.factor(k)
        if not analysis.below[k]:
            continue
        if blocks.column == here_column:
            along_column.Bcast(inverses, here_row)
        if blocks.row == here_row:
            along_row.Bcast(inverses, here_column)
        lower = np.empty((blocks.height(k), width))
        if blocks.column == here_column and len(lower):
            lower[:] = blocks.lower_panel(k, inverses[1])
        if len(lower):
            along_row.Bcast(lower, here_column)
        upper = np.empty((width, blocks.length(k)))
        if blocks.row == here_row and upper.shape[1]:
            upper[:] = blocks.upper_panel(k, inverses[0])
        if upper.shape[1]:
            along_column.Bcast(upper, here_row)
        blocks.update(k, lower, upper)
    along_row.Free()
    along_column.Free()
