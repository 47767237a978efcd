"""The cases of the Jacobi benchmark use all cores."""

from __future__ import annotations

import pytest

from benchmarks.jacobi_cases import CURVES, SIDE_BY_SIDE, cases, with_before
from runner.apps.jacobi3d.options import VARIANTS, parse


@pytest.mark.parametrize(("cores", "workers"), [(2, 2), (2, 1), (8, 4)])
def test_cases_use_all_cores_and_are_understood(cores: int, workers: int) -> None:
    every = cases(cores, workers, (1, 2, 16))
    assert every[0].variant == "mpi"
    # The number of OpenMP threads is searched for (the space hybrid), not compared here, and graphs
    # of tasks have a benchmark of their own.
    assert {case.variant for case in every} == set(VARIANTS) - {"openmp", "tarragon", "tpod"}
    for variant in CURVES:
        found = [c.factor for c in every if c.variant == variant and not c.apart]
        assert found == [1, 2, SIDE_BY_SIDE, 16]
    assert len({case.name for case in every}) == len(every)
    older = with_before(every, "/elsewhere")[len(every) :]
    assert {c.variant for c in older} == set(CURVES)
    assert all(case.before == "/elsewhere" for case in older)
    for case in every:
        assert case.processes * case.workers == cores
        config = parse(list(case.words)).config
        assert config.workers == case.workers
        assert config.ranks_per_process == case.workers * case.factor
