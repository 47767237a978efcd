"""Variant openmp: one rank per process; its OpenMP threads share each update.

The update is a parallel region of gcc's OpenMP run-time; the initial thread exchanges the faces.
OMP_NUM_THREADS says how many threads there are. With one thread the variant is ``mpi``.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from runner.programs.apps.common.box import cut
from runner.programs.apps.common.layout import Layout
from runner.programs.apps.jacobi3d.variant_mpi import BasicMPI


class WithOpenMP(BasicMPI):
    """One block per process, cut into ``layout.local`` parts, one for each thread."""

    def __init__(self, comm: Any, layout: Layout, cache_block: int) -> None:
        super().__init__(comm, dataclasses.replace(layout, local=(1, 1, 1)), cache_block)
        if layout.local_count > 1:
            self._block.share(cut(self._block.whole, layout.local))
