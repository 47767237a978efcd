"""The multigrid with cut cells: mesh, shares, the same bits everywhere, and balance that helps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from autotune.space import load_space
from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.flowcart.application import INPUTS, RESIDUALS, parse, residual_is_wrong
from runner.programs.apps.flowcart.cycle import CYCLE
from runner.programs.apps.flowcart.domain import serial
from runner.programs.apps.flowcart.mesh import CUT_WORK, LEVELS, Mesh, morton
from runner.runtimes.mate.balance import consecutive
from tests.apps.conftest import Launch, results_of
from tests.case_table import case_table
from tests.refusals import refused

ROOT = Path(__file__).parents[2]


def test_the_curve_keeps_families_together() -> None:
    x, y, z = np.indices((4, 4, 4)).reshape(3, -1)
    keys = morton(x, y, z)
    assert sorted(keys.tolist()) == list(range(64))
    for parent in range(8):
        family = keys[morton(x // 2, y // 2, z // 2) == parent]
        assert sorted(family.tolist()) == list(range(8 * parent, 8 * parent + 8))


def test_the_mesh() -> None:
    mesh = Mesh(16)
    for level in mesh.levels:
        # Neighbours know each other.
        for place, back in ((0, 1), (2, 3), (4, 5)):
            there = level.neighbours[:, place]
            known = there >= 0
            assert np.array_equal(level.neighbours[there[known], back], np.flatnonzero(known))
    fine, middle, coarse = mesh.levels
    assert coarse.count < middle.count < fine.count < 16**3
    assert 0 < (fine.work == CUT_WORK).sum() < fine.count / 3
    assert np.array_equal(middle.coordinates[fine.parents], fine.coordinates // 2)
    for width in (8, 18, 3):
        with pytest.raises(AppUsageError):
            Mesh(width)


@case_table("ranks", [1, 2, 7, 32])
def test_shares(ranks: int) -> None:
    mesh = Mesh(16)
    owners = mesh.shares(ranks)
    assert len(owners) == LEVELS
    for level, owner in zip(mesh.levels, owners, strict=True):
        assert set(owner.tolist()) == set(range(ranks))
        assert (np.diff(owner) >= 0).all()
        assert len(owner) == level.count
    for depth in range(LEVELS - 1):
        assert np.array_equal(owners[depth], owners[depth + 1][mesh.levels[depth].parents])


def test_too_many_ranks() -> None:
    with refused(AppUsageError, "app_option.ranks"):
        Mesh(16).shares(65)


def test_the_cost_of_cut_cells_can_be_said() -> None:
    mesh = Mesh(16, 7)
    assert set(np.unique(mesh.levels[0].work)) == {0, 7}
    assert parse(["--input", "heavy"]).cut_work == 2 * CUT_WORK
    assert parse(["--input", "tiny", "--cut-work", "7"]).cut_work == 7
    assert parse(["--width", "16"]).cut_work == CUT_WORK


def test_work_is_uneven_and_can_be_dealt_out() -> None:
    """What the balancer promises before anything is measured: work by cells, 16 ranks, 2 shares."""
    mesh = Mesh(32)
    owner = mesh.shares(16)[0]
    # A step of a cut cell's extra work takes about half as long as all else done to a cell.
    costs = np.bincount(owner, weights=1.0 + 0.5 * mesh.levels[0].work, minlength=16)
    halves = [costs[:8].sum(), costs[8:].sum()]
    assert max(halves) / np.mean(halves) > 1.2
    counts = consecutive(costs.tolist(), 2)
    dealt = [costs[: counts[0]].sum(), costs[counts[0] :].sum()]
    assert max(dealt) / np.mean(dealt) < 1.1


def test_cycles_converge() -> None:
    mesh = Mesh(16)
    level = mesh.levels[0]
    right = ((np.arange(level.count) * 37) % 101 - 50) / 64.0
    norms = []
    for cycles in (1, 4, 8):
        values = np.append(serial(mesh, cycles), 0.0)
        norms.append(
            np.linalg.norm(right - (6 * values[:-1] - values[level.neighbours].sum(axis=1)))
        )
    assert norms[0] > 3 * norms[1] > 9 * norms[2]
    assert sum(stage.exchange_array >= 0 for stage in CYCLE) >= 12


@pytest.mark.parametrize(
    "name",
    [n if INPUTS[n][0] < 64 else pytest.param(n, marks=pytest.mark.slow) for n in INPUTS],
)
def test_the_stored_residuals_are_those_of_a_serial_run(name: str) -> None:
    width, cycles, cut_work, _ = INPUTS[name]
    mesh = Mesh(width, cut_work)
    level = mesh.levels[0]
    values = np.append(serial(mesh, cycles), 0.0)
    right = ((np.arange(level.count) * 37) % 101 - 50) / 64.0
    before = float(np.linalg.norm(right))
    left = np.linalg.norm(right - (6 * values[:-1] - values[level.neighbours].sum(axis=1)))
    assert residual_is_wrong(width, cycles, float(left), before) == ""
    slower = RESIDUALS[width, cycles] * 1.05
    assert "expected" in residual_is_wrong(width, cycles, slower, before)
    assert residual_is_wrong(width, cycles + 1, 0.1 * before, before) == ""
    assert "after" in residual_is_wrong(width, cycles + 1, 0.6 * before, before)


@case_table(
    "words", [["--input", "x"], ["--balance", "shuffle"], ["--workers", "2"], ["--width", "0"],
              ["--cut-work", "0"], ["--steal", "node"],
              ["--variant", "mate", "--steal", "node", "--core", "python"],
              ["--variant", "mate", "--local-grid", "2x1x1"]],
)  # fmt: skip
def test_wrong_words(words: list[str]) -> None:
    with pytest.raises(AppUsageError):
        parse(words)


def test_its_space() -> None:
    space = load_space("mate-flowcart", None, {"ranks": 4, "cores": 4, "nodes": 1})
    found = list(space.enumerate())
    assert any(setting.get("balance") == "shuffle" for setting in found)
    stealing = [setting for setting in found if setting.get("steal") == "node"]
    assert stealing
    assert all(s["odf"] > 1 and s.get("workers", 1) < 4 for s in stealing)
    assert not any(s.get("core") == "python" or s.get("queue") == "fixed" for s in stealing)
    assert all(space.violations(setting) == [] for setting in found)
    assert [str(s) for s in space.starts] == [
        *(f"balance=shuffle,odf={factor},variant=mate" for factor in (4, 2)),
        "odf=4,steal=node,variant=mate",  # data
        "odf=4,variant=mate",
    ]


@pytest.mark.mpi
def test_an_idle_process_runs_stages_of_another_one(launch: Launch) -> None:
    words = ["--width", "32", "--cycles", "3", "--cut-work", "2000", "--verify", "full"]
    words += ["--variant", "mate", "--ranks-per-process", "8", "--steal", "node"]
    (result,) = results_of(launch, 2, "flowcart", [words])
    assert result["verified"] is True
    assert result["stolen"] > 0


@pytest.mark.mpi
def test_memory_that_cannot_be_shared_is_said_in_words(launch: Launch) -> None:
    code = (
        "import resource, runpy; resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30)); "
        "runpy.run_module('runner.programs.apps.flowcart', run_name='__main__')"
    )
    words = ["--input", "tiny", "--variant", "mate", "--ranks-per-process", "2", "--steal", "node"]
    done = launch(2, "-c", code, *words)
    assert done.code == 1
    assert done.err.count("flowcart: error:") == 1  # data
    assert "--steal process" in done.err  # data
    assert "Traceback" not in done.err


@pytest.mark.mpi
@pytest.mark.parametrize(
    "processes", [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 3))]
)
def test_all_variants_give_every_bit(launch: Launch, processes: int) -> None:
    common = ["--input", "tiny", "--verify", "full", "--variant"]
    over = [*common, "mate", "--ranks-per-process"]
    lines = [
        [*common, "mpi"],
        [*over, "4", "--repetitions", "2"],
        [*over, "5", "--balance", "consecutive"],
        [*over, "3", "--balance", "shuffle", "--core", "python"],
        [*over, "4", "--balance", "shuffle", "--workers", "2", "--affinity", "none"],
    ]
    steal = ["--steal", "node"]
    lines += [
        [*over, "4", *steal, "--repetitions", "2"],
        [*over, "5", *steal, "--balance", "shuffle", "--workers", "2", "--affinity", "none"],
    ]
    found = results_of(launch, processes, "flowcart", lines)
    assert all(result["verified"] is True for result in found)
    assert all(result["steal"] == "node" for result in found[-2:])
    assert all(result["stolen"] == 0 for result in found[1:-2])
    for result in found[2:]:
        assert sum(result["rank_counts"]) == result["ranks"]
