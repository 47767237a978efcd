"""The faces of Jacobi3D: two layers of cells, and the cells that need them."""

from __future__ import annotations

from collections.abc import Sequence

from runner.programs.apps.common import box as common_box
from runner.programs.apps.common import faces as common_faces
from runner.programs.apps.common.box import Box
from runner.programs.apps.jacobi3d.block import Block
from runner.programs.apps.jacobi3d.problem import DEPTH


def face_of(box: Box, axis: int, side: int, ghost: bool) -> Box:
    """The two layers of cells at a face (``side`` 0 low, 1 high) of a box, or just outside it."""
    return common_box.face_of(box, axis, side, ghost, DEPTH)


class Faces(common_faces.Faces):
    """Messages of the cells ``box`` of a block over ``remote`` faces (axis, side, other rank)."""

    def __init__(
        self, block: Block, box: Box, remote: Sequence[tuple[int, int, int]], padding: int = 1
    ) -> None:
        super().__init__(block.fields, box, remote, DEPTH, padding=padding)
