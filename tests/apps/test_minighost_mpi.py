"""miniGhost under the real mpirun: bits, orders, the account of heat, messages, exit codes."""

from __future__ import annotations

import re
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from runner.runtimes.tpod.config import CALLS, POSTING
from tests.apps.conftest import Launch, refusal_of, results_of, run_lines

pytestmark = pytest.mark.mpi

KEYS = {
    "app", "variant", "input", "size", "steps", "variables", "grouping", "order", "prepost",
    "grid", "ranks", "processes", "threads", "workers", "local_grid", "solver_s", "grind_ns",
    "verified", "heat_error", "heat_bound", "phases", "startup_s",
    "compute_s", "mpi_s", "buffering_s", "waiting_s",
    "other_s", "end_s", "compute_cpu_s", "messages", "bytes", "rank_imbalance", "odf",
}  # fmt: skip
THREADS = "--variant threads --workers 2 --affinity none"


def exchanges() -> list[str]:
    """Every way to exchange boundary data."""
    return [
        f"--order {order} --messages {messages}{posted}"
        for order in CALLS
        for messages in ("aggregated", "variable")
        for posted in (["", " --prepost"] if order in POSTING else [""])
    ]


PROBLEMS = {
    1: ["--size 9x7x5"],
    2: ["--size 11x6x7 --grid 2x1x1", "--size 7x5x9 --grid 1x1x2"],
    4: ["--size 9x11x7 --grid 2x1x2", "--size 5x13x3 --grid 1x4x1"],
}


def problems(ranks: int, every: bool) -> list[str]:
    """Each exchange with every problem of so many ranks, or with one of them."""
    some = PROBLEMS[ranks]
    return [
        f"{problem} {exchange}"
        for number, exchange in enumerate(exchanges())
        for problem in (some if every else [some[number % len(some)]])
    ]


@pytest.mark.parametrize(
    ("ranks", "every"),
    [(2, False), *(pytest.param(ranks, True, marks=pytest.mark.slow) for ranks in PROBLEMS)],
)
def test_every_bit_as_in_a_serial_run(launch: Launch, ranks: int, every: bool) -> None:
    """In faces of 100 to 400 kB, in a chain, a blocking send returns after it is received."""
    common = "--variables 3 --steps 7 --verify full"
    lines = [
        f"{problem} {common} {variant}".split()
        for problem in problems(ranks, every)
        for variant in ("", THREADS)
    ]
    large = f"--size 128x96x{ranks} --grid 1x1x{ranks} --variables 4 --steps 2"
    chains = [f"{large} {exchange}".split() for exchange in exchanges() if ranks > 1]
    results = results_of(launch, ranks, "minighost", lines + chains)
    assert all(r["verified"] is True and r["ranks"] == ranks for r in results)
    found = results[: len(lines)]
    assert [r["variant"] for r in found][:4] == ["mpi", "threads"] * 2
    for result in found:
        check_breakdown(result)
        cuts = ranks - 1 if max(result["grid"]) == ranks else ranks
        many = result["variables"] if result["grouping"] == "variable" else 1
        assert result["messages"] == 2 * cuts * many * result["steps"]
    for plain, threaded in zip(found[0::2], found[1::2], strict=True):
        assert plain["bytes"] == threaded["bytes"]


def check_breakdown(result: dict[str, Any]) -> None:
    """The parts are those of the threads' time and add up to the solver's."""
    parts = [result[key] for key in ("compute_s", "mpi_s", "buffering_s", "waiting_s")]
    assert all(part >= 0 for part in parts)
    total = sum(parts) + result["other_s"] + result["end_s"]
    assert total == pytest.approx(result["solver_s"], rel=1e-9)
    assert result["other_s"] > -1e-4 - 0.02 * result["solver_s"]
    assert 0 <= result["heat_error"] <= result["heat_bound"] < 1e-13


BROKEN = """
import numpy as np
from runner.programs.apps.minighost.exchange import Exchange
from runner.programs.apps.minighost.variant_mpi import Bulk

run, solve = Exchange.run, Bulk.solve

def received(spoil):
    def wrong(self, field, meter, more):
        unpack = self._faces.unpack
        def spoilt():
            spoil(self._faces.receives[0][0])
            unpack[field]()
        self._faces.unpack = {field: spoilt}
        run(self, field, meter, more)
        self._faces.unpack = unpack
    return wrong

def more_in_one_cell(buffer):
    buffer[3] += 0.5 ** 20

def turned(buffer):
    buffer[:] = buffer[::-1].copy()

def one_bit(self, steps):
    done = solve(self, steps)
    if self._comm.rank == 1:
        cells = self.domain.interior
        cells[1, 3, 2, 1] = np.nextafter(cells[1, 3, 2, 1], 0.0)
    return done

CHANGES = {
    "cell": [(Exchange, "run", received(more_in_one_cell))],
    "ghosts": [(Exchange, "run", lambda self, field, meter, more: None)],
    "order": [(Exchange, "run", received(turned))],
    "bit": [(Bulk, "solve", one_bit)],
}
"""
"""One cell of a face is wrong, ghosts are never exchanged, the cells of a face have another order,
one bit of one cell is wrong."""


def test_what_is_wrong_is_noticed(launch: Launch) -> None:
    tiny, variable = "--input tiny --grid 1x1x2", "--messages variable"
    heat = [
        f"broken:{change} {tiny} {options}"
        for change in ("cell", "ghosts")
        for options in (f"{variable} --order SR", THREADS)
    ]
    bits = [f"broken:{change} {tiny} {variable}" for change in ("order", "bit")]
    lines = [*heat, *bits, *(f"{line} --verify full" for line in bits)]
    found = run_lines(launch, 2, "minighost", [line.split() for line in lines], broken=BROKEN)
    for done in found[:4]:
        assert done.code == 1
        assert done.result["verified"] is False
        assert done.result["heat_error"] > done.result["heat_bound"]
        assert " variable 0: " in done.out
    # What keeps the heat fails the comparison of bits.
    for unseen, done in zip(found[4:6], found[6:], strict=True):
        assert (unseen.code, unseen.result["verified"]) == (0, True)
        assert (done.code, done.result["verified"]) == (1, False)
    # 2 ranks cut z: rank 1 begins at z = 4.
    differing = found[-1].out.splitlines()[-2]
    assert re.findall(r"(?<= )[0-9]+(?= )", differing)[:3] == ["1", "1", "1"], (
        "cells, rank, variable"
    )
    assert " x=1 y=2 z=7: " in differing


REFUSED = [
    "--grid 2x2x1",
    "--variant threads --workers 200",
    "--order SR --prepost",
    "--input tiny --variant threads --workers 999",
    "--size 8 --steps 100000",
]


def test_results_and_refusals(launch: Launch, snapshot: SnapshotAssertion) -> None:
    lines = [f"--input tiny --repetitions 3 {THREADS}", "--input tiny --verify none"]
    lines += REFUSED
    done, unchecked, *others = run_lines(launch, 2, "minighost", [line.split() for line in lines])
    assert done.code == 0, done.err
    result = done.result
    assert set(result) == KEYS | {"repetitions_s"}
    assert result["verified"] is True
    assert (result["threads"], result["local_grid"]) == (2, [1, 2, 1])
    assert sorted(result["repetitions_s"])[1] == result["solver_s"] > 0
    assert result["grind_ns"] == pytest.approx(1e9 * result["solver_s"] / (480 * 5 * 2))
    assert f" {result['heat_bound']:.2g} " in done.out.splitlines()[-2]
    assert unchecked.result["verified"] is None
    assert set(unchecked.result) == KEYS
    ended = zip(REFUSED, others, strict=True)
    assert {options: refusal_of(done, "minighost") for options, done in ended} == snapshot
