"""miniGhost under the real mpirun: bits, orders, the account of heat, messages, exit codes."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from runner.tpod.config import CALLS, POSTING
from tests.apps.conftest import Launch, check_refusals, results_of

pytestmark = pytest.mark.mpi

APP = ("-m", "runner.apps.minighost")
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


@pytest.mark.parametrize(
    ("ranks", "problems"),
    [
        pytest.param(1, ["--size 9x7x5"], marks=pytest.mark.slow),
        (2, ["--size 11x6x7 --grid 2x1x1", "--size 7x5x9 --grid 1x1x2"]),
        (4, ["--size 9x11x7 --grid 2x1x2", "--size 5x13x3 --grid 1x4x1"]),
    ],
)
def test_every_bit_as_in_a_serial_run(launch: Launch, ranks: int, problems: list[str]) -> None:
    common = "--variables 3 --steps 7 --verify full"
    lines = [
        f"{problem} {common} {exchange} {variant}".split()
        for problem in problems
        for exchange in exchanges()
        for variant in ("", THREADS)
    ]
    found = results_of(launch, ranks, "minighost", lines)
    assert all(r["verified"] is True and r["ranks"] == ranks for r in found)
    assert [r["variant"] for r in found][:4] == ["mpi", "threads"] * 2
    for result in found:
        check_breakdown(result)
        cuts = ranks - 1 if max(result["grid"]) == ranks else ranks
        many = result["variables"] if result["grouping"] == "variable" else 1
        assert result["messages"] == 2 * cuts * many * result["steps"]
    for plain, threaded in zip(found[0::2], found[1::2], strict=False):
        assert plain["bytes"] == threaded["bytes"]


def check_breakdown(result: dict[str, Any]) -> None:
    """The parts are those of the threads' time and add up to the solver's."""
    parts = [result[key] for key in ("compute_s", "mpi_s", "buffering_s", "waiting_s")]
    assert all(part >= 0 for part in parts)
    total = sum(parts) + result["other_s"] + result["end_s"]
    assert total == pytest.approx(result["solver_s"], rel=1e-9)
    assert result["other_s"] > -1e-4 - 0.02 * result["solver_s"]
    assert 0 <= result["heat_error"] <= result["heat_bound"] < 1e-13


@pytest.mark.parametrize("ranks", [2, 4])
def test_messages_beyond_every_eager_limit_do_not_deadlock(launch: Launch, ranks: int) -> None:
    """Faces of 1.2 MiB in a chain: a blocking send does not return before it is received."""
    lines = [
        f"--size 200x192x{ranks} --grid 1x1x{ranks} --variables 4 --steps 3 {exchange}".split()
        for exchange in exchanges()
    ]
    found = results_of(launch, ranks, "minighost", lines)
    assert all(r["verified"] is True for r in found)


def test_result_of_a_run(launch: Launch) -> None:
    done = launch(2, *APP, "--input", "tiny", "--repetitions", "3", *THREADS.split())
    assert done.code == 0, done.err
    result = done.result
    assert set(result) == KEYS | {"repetitions_s"}
    assert result["verified"] is True
    assert (result["threads"], result["local_grid"]) == (2, [1, 2, 1])
    assert sorted(result["repetitions_s"])[1] == result["solver_s"] > 0
    assert result["grind_ns"] == pytest.approx(1e9 * result["solver_s"] / (480 * 5 * 2))
    assert "out of balance" in done.out
    unchecked = launch(2, *APP, "--input", "tiny", "--verify", "none").result
    assert unchecked["verified"] is None
    assert set(unchecked) == KEYS


BROKEN = {
    "one cell of one face": """
        from runner.apps.minighost.exchange import Exchange
        plain = Exchange.run
        def wrong(self, field, meter, more):
            unpack = self._faces.unpack
            def spoilt():
                self._faces.receives[0][0][3] += 0.5 ** 20
                unpack[field]()
            self._faces.unpack = {field: spoilt}
            plain(self, field, meter, more)
            self._faces.unpack = unpack
        Exchange.run = wrong
    """,
    "ghosts never exchanged": """
        from runner.apps.minighost.exchange import Exchange
        Exchange.run = lambda self, field, meter, more: None
    """,
    "cells of a face in another order": """
        from runner.apps.minighost.exchange import Exchange
        plain = Exchange.run
        def wrong(self, field, meter, more):
            unpack = self._faces.unpack
            def turned():
                buffer = self._faces.receives[0][0]
                buffer[:] = buffer[::-1].copy()
                unpack[field]()
            self._faces.unpack = {field: turned}
            plain(self, field, meter, more)
            self._faces.unpack = unpack
        Exchange.run = wrong
    """,
    "one bit of one cell": """
        import numpy as np
        from runner.apps.minighost.variant_mpi import Bulk
        solve = Bulk.solve
        def wrong(self, steps):
            done = solve(self, steps)
            if self._comm.rank == 1:
                cells = self.domain.interior
                cells[1, 3, 2, 1] = np.nextafter(cells[1, 3, 2, 1], 0.0)
            return done
        Bulk.solve = wrong
    """,
}


def start_broken(launch: Launch, what: str, *options: str) -> Any:
    code = textwrap.dedent(BROKEN[what]) + textwrap.dedent(
        """
        import sys
        from runner.apps.common_mpi import run
        from runner.apps.minighost.application import main
        run("minighost", "funneled", lambda comm: main(comm, sys.argv[1:], 0.0))
        """
    )
    return launch(2, "-c", code, "--input", "tiny", "--grid", "1x1x2", *options)


@pytest.mark.parametrize("what", ["one cell of one face", "ghosts never exchanged"])
@pytest.mark.parametrize("options", ["--messages variable --order SR", THREADS])
def test_a_wrong_face_breaks_the_account_of_heat(launch: Launch, what: str, options: str) -> None:
    done = start_broken(launch, what, *options.split())
    assert done.code == 1
    assert done.result["verified"] is False
    assert done.result["heat_error"] > done.result["heat_bound"]
    assert "verification failed: heat of variable 0: put in" in done.out


@pytest.mark.parametrize("what", ["cells of a face in another order", "one bit of one cell"])
def test_what_keeps_the_heat_fails_the_comparison_of_bits(launch: Launch, what: str) -> None:
    assert start_broken(launch, what, "--messages", "variable").result["verified"] is True
    done = start_broken(launch, what, "--messages", "variable", "--verify", "full")
    assert done.code == 1
    assert done.result["verified"] is False
    if what == "one bit of one cell":
        # 2 ranks cut z: rank 1 begins at z = 4.
        words = "1 cells of rank 1 differ from the serial run, first at variable 1 x=1 y=2 z=7: "
        assert words in done.out


@pytest.mark.parametrize(
    ("ranks", "refusals"),
    [
        (3, [("--grid 2x2x1", "has 4 parts, but the program runs on 3 ranks")]),
        (1, [("--variant threads --workers 200", "--workers 200, but this process may use only")]),
        (
            2,
            [
                ("--order SR --prepost", "--prepost needs receives that do not block"),
                ("--input tiny --variant threads --workers 999", "--workers 999 are too many for"),
                ("--size 8 --steps 100000", "--steps 100000 are too many for 8x8x8 cells"),
            ],
        ),
    ],
)
def test_wrong_use_is_one_message_and_exit_code_2(
    launch: Launch, ranks: int, refusals: list[tuple[str, str]]
) -> None:
    check_refusals(launch, ranks, "minighost", refusals)
