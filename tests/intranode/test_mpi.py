"""Several ranks under real mpirun: data under any schedule, kills, refusals, the programs."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.intranode.programs import Commands, Start, refusal_of, refusals_of, verified

pytestmark = pytest.mark.mpi
APP = "runner.programs.apps.cab"


@pytest.mark.parametrize(
    ("ranks", "seeds"), [(4, 15), *(pytest.param(n, 40, marks=pytest.mark.slow) for n in (1, 2, 4))]
)
def test_data_are_right_under_any_schedule(start: Start, ranks: int, seeds: int) -> None:
    done = start(ranks, "-m", "tests.intranode.schedules", str(seeds))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "how", ["barrier", pytest.param("message", marks=pytest.mark.slow), "lock", "mpi"]
)
def test_a_killed_rank_is_noticed(start: Start, how: str, tmp_path: Path) -> None:
    # Without recovery the launcher would kill the others first.
    start(
        3, "-m", "tests.intranode.killed", how, "0.05", str(tmp_path), more=("--enable-recovery",)
    )
    said = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert set(said) == {"0", "2"}
    assert all(text.startswith("intranode.rank_lost: ") for text in said.values())
    assert all(" rank 1 (process " in text for text in said.values())


PROGRAMS = {
    "pingpong": "--size 65536 --helpers 0,2 --chunks 4096,16384 --read",
    "pack": "--size 65536 --rows 64 --spread 3",
    "strided": "--size 131072 --rows 16384 --spread 2 --bundle off",
    "accumulate": "--size 80000 --steal-threshold 1000 --chunk-small 1024",
    "product": "--width 24 --blocks 5 --helpers 0,2 --steal-threshold 0 --chunk-small 512",
    "saturation": "--size 100000 --share",
}


def test_programs_verify_their_data(lines: Commands) -> None:
    common = [APP, "--rounds", "2", "--times", "5", "--program"]
    found = lines(3, [[*common, name, *words.split()] for name, words in PROGRAMS.items()])
    for program, done in zip(PROGRAMS, found, strict=True):
        result = verified(done)
        assert (result["app"], result["program"], result["ranks"]) == ("cab", program, 3)
        assert all(len(cell["runs_us"]) == 2 and cell["us"] > 0 for cell in result["cells"])
        count = {"pingpong": 3, "saturation": 3, "product": 2}.get(program, 1)
        assert len(result["cells"]) == count


def test_one_rank_works_alone_on_a_core_of_its_own(start: Start) -> None:
    done = start(1, "-m", APP, "--program", "accumulate", "--times", "5", "--pin")
    assert verified(done)["cells"][0]["stolen"] == 0


REFUSED = [
    "--program none",
    "--helpers 3",
    "--size 12",
    "--share",
    "--width 8",
    "--program product --size 8",
    "--program product --absent 100",
    "--program product --blocks 1 --absent 99",
    "--chunks 100",
]


def test_what_cannot_be_is_refused(lines: Commands, snapshot: SnapshotAssertion) -> None:
    calls, *found = lines(
        2, [["tests.intranode.refusals"], *([APP, *words.split()] for words in REFUSED)]
    )
    assert refusals_of(calls) == snapshot(name="calls")
    ended = zip(REFUSED, found, strict=True)
    assert {words: refusal_of(done, "cab") for words, done in ended} == snapshot(name="options")
