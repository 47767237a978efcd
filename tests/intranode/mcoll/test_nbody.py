"""Barnes-Hut: right forces, the same bits on any number of ranks and with any collective."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion

from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.nbody import application
from runner.programs.apps.nbody.bodies import plummer
from runner.programs.apps.nbody.options import parse
from tests.intranode.programs import Commands, verified
from tests.refusals import refusal, refused

APP = "runner.programs.apps.nbody"


class Alone:
    """The communicator of a program with one rank."""

    rank, size = 0, 1

    def allgather(self, value: Any) -> list[Any]:
        return [value]


def system(*words: str) -> application.System:
    made = application.System(Alone(), parse(list(words)))
    made.gather_buffer[:] = made.own
    return made


def test_forces_are_those_of_a_direct_sum_as_theta_goes_to_zero() -> None:
    errors = []
    for theta in ("0.57", "0.3", "0.0001"):
        made = system("--bodies", "400", "--theta", theta)
        made.accelerate()
        errors.append(made.error())
    assert 0.05 > errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-12


def test_direct_forces_are_the_gradient_of_the_potential() -> None:
    made = system("--bodies", "50", "--theta", "0.0001")
    made.accelerate()
    moved = system("--bodies", "50")
    step = 1e-5
    before = made.energy()
    moved.everyone[7, 1] += step
    moved.own[7, 1] += step
    force = -(moved.energy() - before) / step
    assert force == pytest.approx(made.own[7, 3] * made.forces[7, 1], rel=1e-3)


def test_bodies_at_one_place_share_a_leaf() -> None:
    made = system("--bodies", "20")
    made.gather_buffer[3:6] = made.gather_buffer[2]
    made.accelerate()
    assert np.isfinite(made.forces).all()
    assert made.error() < 0.05
    assert made.forces[3].tobytes() == made.forces[4].tobytes()


def test_a_tree_without_room_is_refused() -> None:
    made = system("--bodies", "40")
    made.gather_buffer[:20, :3] = 1e-9 * np.arange(60).reshape(20, 3)
    made._numbers[1] = 10
    with refused(application.AppError, "app_option.size"):
        made.accelerate()


def test_plummer_is_at_rest_and_bound() -> None:
    bodies, velocities = plummer(5000, 3)
    assert np.allclose(bodies[:, :3].mean(axis=0), 0, atol=1e-12)
    assert np.allclose(velocities.mean(axis=0), 0, atol=1e-12)
    assert bodies[:, 3].sum() == pytest.approx(1)
    # The virial theorem: twice the kinetic energy is 3 pi / 32 of these units.
    assert (velocities**2).sum() / 5000 == pytest.approx(3 * np.pi / 32, rel=0.1)
    assert np.median(np.linalg.norm(bodies[:, :3], axis=1)) == pytest.approx(1.3, rel=0.1)


def test_stack_of_the_kernel_is_as_large_as_the_program_says() -> None:
    from runner.programs.apps.nbody import kernels

    assert application._STACK == kernels.STACK


def test_wrong_options_are_refused(snapshot: SnapshotAssertion) -> None:
    lines = [
        *("--variant none", "--theta 0.8", "--objects 2"),
        *("--variant mcoll --radix 1", "--variant mcoll --nodes -1"),
    ]
    assert {line: refusal(AppUsageError, parse, line.split()) for line in lines} == snapshot


@pytest.mark.mpi
def test_bits_depend_on_the_bodies_alone(lines: Commands) -> None:
    found = []
    for ranks, words in (
        (1, ["--variant mpi"]),
        (3, ["--variant mcoll", "--variant mcoll --nodes 3 --allgather ring --objects 1"]),
        (4, ["--variant mpi", "--variant mcoll --nodes 2 --allgather rd", "--seed 2"]),
    ):
        runs = [[APP, "--bodies", "301", "--steps", "4", *more.split()] for more in words]
        few = [APP, "--bodies", "3", "--variant", "mcoll"]
        *whole, few_bodies = lines(ranks, [*runs, few])
        # There may be more ranks than bodies.
        result = json.loads(few_bodies.stdout.splitlines()[-1])
        assert (few_bodies.returncode, result["ranks"], result["bodies"]) == (0, ranks, 3)
        for done in whole:
            result = verified(done)
            assert (result["app"], result["ranks"]) == ("nbody", ranks)
            assert 0 <= result["allgather_s"] <= result["seconds"]
            found.append(result["digest"])
    *same, other = found
    assert len(set(same)) == 1
    assert other not in same
