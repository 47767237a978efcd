"""miniGhost with faces that are copied in chunks: bits, heat, messages, steals, refusals."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.minighost.options import parse
from runner.runtimes.intranode import Config
from tests.apps.conftest import Launch, results_of, run_lines, successes
from tests.refusals import refusal

SWITCHES = (
    "",
    "--steal off",
    "--steal-threshold 0 --chunk-small 64",
    "--steal-threshold 0 --chunk-small 128 --bundle off --access lo-to-hi --waiting yield",
    "--steal-threshold 0 --chunk-small 64 --messages variable --stealers 1",
    "--steal-threshold 0 --chunk-small 64 --domains 2 --steal-strategy mixed --waiting spin",
)
CHUNKS = (4096, 65536, 1048576)
"""Bytes of a piece."""


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("ranks", "problems", "sizes"),
    [
        (2, ["--size 11x6x7 --grid 2x1x1"], CHUNKS[1:2]),
        pytest.param(4, ["--size 9x11x7 --grid 2x1x2"], CHUNKS, marks=pytest.mark.slow),
        pytest.param(1, ["--size 9x7x5"], CHUNKS, marks=pytest.mark.slow),
        pytest.param(
            *(2, ["--size 11x6x7 --grid 2x1x1", "--size 7x5x9 --grid 1x1x2", "--size 2x2x2"]),
            CHUNKS,
            marks=pytest.mark.slow,
        ),
        pytest.param(4, ["--size 5x13x3 --grid 1x4x1"], CHUNKS, marks=pytest.mark.slow),
    ],
)
def test_every_bit_as_in_a_serial_run(
    launch: Launch, ranks: int, problems: list[str], sizes: Sequence[int]
) -> None:
    common = "--variables 3 --steps 7 --verify full --repetitions 2 --variant"
    lines = [
        f"{problem} {common} {form}".split()
        for problem in problems
        for form in ("mpi", *(f"cab {words}" for words in SWITCHES))
    ]
    # Faces of 1.2 MiB, in pieces.
    large = f"--size 200x192x{ranks} --grid 1x1x{ranks} --variables 4 --steps 2 --variant cab"
    chunks = [f"{large} --chunk-large {chunk}".split() for chunk in sizes]
    found = results_of(launch, ranks, "minighost", lines + chunks)
    assert all(r["verified"] is True for r in found)
    assert all(r["configured"] == "switches" for r in found[len(lines) :])
    flat: dict[str, Any] = {}
    for result in found[: len(lines)]:
        if result["variant"] == "mpi":
            flat = result
            continue
        many = 3 if result["grouping"] == "variable" else 1
        assert result["bytes"] == flat["bytes"]
        assert result["messages"] == many * flat["messages"]
        # A message is one chunk at least.
        assert result["chunks_own"] + result["chunks_given"] >= result["messages"]


BROKEN = """
from runner.programs.apps.minighost import variant_cab

plain = variant_cab.Direct.run

def deaf(self, field, meter, more):
    plain(self, field, meter, more)
    self._requests[field][-1].arrays[0][..., 0] += 0.5 ** 20

CHANGES = {"ghost": [(variant_cab.Direct, "run", deaf)]}
"""


@pytest.mark.mpi
def test_small_cubes_of_thousands_of_variables_and_an_omitted_ghost(launch: Launch) -> None:
    common = "--size 4x4x8 --grid 1x1x2 --variables 5462 --steps 1 --verify full --variant"
    lines = [f"{common} {variant}" for variant in ("mpi", "cab")]
    lines.append("broken:ghost --input tiny --variant cab")
    words = [line.split() for line in lines]
    *whole, broken = run_lines(launch, 2, "minighost", words, broken=BROKEN)
    flat, found = successes(whole)
    assert flat["verified"] is found["verified"] is True
    assert flat["bytes"] == found["bytes"] == 2 * 16 * 5462 * 8
    assert broken.code == 1
    assert broken.result["verified"] is False
    assert broken.result["heat_error"] > broken.result["heat_bound"]


@pytest.mark.mpi
def test_a_killed_process_ends_the_run(launch: Launch) -> None:
    """Nobody waits for ever for a face."""
    code = textwrap.dedent(
        """
        import os, signal, sys
        from time import perf_counter
        from mpi4py import MPI
        from runner.programs.apps.common.mpi import run
        from runner.programs.apps.minighost import variant_cab
        from runner.programs.apps.minighost.application import main
        plain, steps = variant_cab.Direct.run, 0
        def mortal(self, field, meter, more):
            global steps
            steps += 1
            if steps == 5 and MPI.COMM_WORLD.rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            plain(self, field, meter, more)
        variant_cab.Direct.run = mortal
        words = ["--input", "tiny", "--steps", "1000", "--variant", "cab"]
        words += ["--steal-threshold", "0", "--chunk-small", "64"]
        run("minighost", "single", lambda comm: main(comm, words, perf_counter()))
        """
    )
    done = launch(2, "-c", code)
    assert done.code != 0
    assert "solver" not in done.out
    assert "Traceback" not in done.err


def test_the_switches_of_both_libraries(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    none = ("--steal-config", "none")
    found = parse(["--variant", "cab", "--steal", "off", "--chunk-large", "640", *none])
    assert found.intranode == Config(steal=False, chunk_large=640)
    assert (found.config_source, found.thread_level) == ("switches", "single")
    plain = parse(["--variant", "cab", *none])
    assert (plain.intranode, plain.config_source) == (Config(), "defaults")
    bad = tmp_path / "bad.json"
    bad.write_text("{")
    lines = [
        "--variant cab --steal node",
        "--variant cab --chunk-small 1",
        "--variant cab --order SIR",
        "--variant cab --prepost",
        "--variant cab --workers 2",
        "--variant mpi --steal on",
        "--chunk-small 64",
    ]
    assert {line: refusal(AppUsageError, parse, line.split()) for line in lines} == snapshot
    assert str(bad) in refusal(
        AppUsageError, parse, ["--variant", "cab", "--steal-config", str(bad)]
    )
