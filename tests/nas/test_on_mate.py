"""The kernels on MATE: verified in every layout, and their steps one by one."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.programs.apps.common.errors import AppUsageError
from runner.programs.nas.common.on_mate import step
from runner.programs.nas.common.options import ON_MATE, parse
from runner.programs.nas.common.steps import LEAST_PIECE, Message, Steps
from tests.apps.conftest import Launch, run_commands, successes
from tests.refusals import refused

NAS = "runner.programs.nas"
LAYOUTS = {
    "cg": "--ranks-per-process 4 --workers 2",
    "mg": "--ranks-per-process 8 --in-process",
    "lu": "--ranks-per-process 3 --planes 4",
    "ft": "--ranks-per-process 2 --split 2",
    "is": "--ranks-per-process 4 --split 3 --core python",
}
"""One of each kernel for the plain suite."""


def line(kernel: str, words: str) -> list[str]:
    return [NAS, kernel, "--class", "S", "--variant", "mate", *words.split()]


@pytest.mark.mpi
def test_every_kernel_verifies_on_two_processes(launch: Launch) -> None:
    lines = [line(kernel, words) for kernel, words in LAYOUTS.items()]
    refusals = [line("ft", "--ranks-per-process 3"), line("lu", "--ranks-per-process 32")]
    *done, ft, lu = run_commands(launch, 2, [*lines, *refusals])
    for kernel, result in zip(LAYOUTS, successes(done), strict=True):
        words = LAYOUTS[kernel].split()
        local = int(words[words.index("--ranks-per-process") + 1])
        workers = int(words[words.index("--workers") + 1]) if "--workers" in words else 1
        assert result["verified"] is True
        assert result["app"] == f"nas-{kernel}"
        assert (result["variant"], result["processes"]) == ("mate", 2)
        assert (result["ranks"], result["odf"]) == (2 * local, local / workers)
        assert result["messages"] > 0
        assert 0 < result["compute_s"] <= result["solver_s"]
    for refusal in (ft, lu):
        assert refusal.code == 2
        assert refusal.err.count("nas: error:") == 1  # data


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("kernel", ON_MATE)
def test_every_layout_verifies(launch: Launch, kernel: str) -> None:
    """Up to 8 ranks a process, and 64 for MG: there some have no points on coarse levels."""
    counts = (1, 2, 4, 8, 32) if kernel == "mg" else (1, 2, 4, 8)
    more = ("", "--in-process", "--core python", "--queue shared --repetitions 2")
    words = [f"--ranks-per-process {n} {one}" for n, one in itertools.product(counts, more)]
    words += [f"--ranks-per-process {n} --workers 2 --in-process" for n in counts[1:]]
    if kernel == "lu":
        words += [f"--ranks-per-process {n} --planes 3" for n in (1, 3, 6, 8)]
    else:
        words += [f"--ranks-per-process {n} --split 4" for n in counts]
    results = successes(run_commands(launch, 2, [line(kernel, one) for one in words]))
    assert all(result["verified"] for result in results)


@pytest.mark.mpi
@pytest.mark.slow
def test_cg_and_mg_have_the_bits_of_the_flat_form(launch: Launch) -> None:
    flat = [[NAS, kernel, "--class", "S"] for kernel in ("cg", "mg")]
    cut = [line(kernel, "--ranks-per-process 2") for kernel in ("cg", "mg")]
    four = successes(run_commands(launch, 4, flat))
    two = successes(run_commands(launch, 2, cut))
    assert [one["checks"][0]["value"] for one in two[:1]] == [
        one["checks"][0]["value"] for one in four[:1]
    ]
    assert two[1]["checks"][0]["value"] == pytest.approx(four[1]["checks"][0]["value"], rel=1e-12)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("ep --variant mate", "app_option.not_applicable"),
        ("cg --variant mate --openmp", "app_option.conflict"),
        ("cg --variant mate --local-grid 1x1x2 --ranks-per-process 2", "app_option.not_applicable"),
        ("cg --variant mate --planes 2", "app_option.not_applicable"),
        ("lu --planes 2", "app_option.not_applicable"),
        ("lu --variant mpi --ranks-per-process 2", "app_option.ranks"),
    ],
)
def test_what_does_not_apply_is_refused(words: str, code: str) -> None:
    with refused(AppUsageError, code):
        parse(words.split())


class Noted:
    """A context that notes messages."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, int, bytes, int]] = []

    def isend(self, array: Any, rank: int, tag: int) -> None:
        self.messages.append(("send", rank, array.tobytes(), tag))

    def irecv(self, array: Any, rank: int, tag: int) -> None:
        self.messages.append(("receive", rank, b"", len(array)))

    def seconds(self) -> float:
        return 0.0

    cpu_seconds = seconds


def performed(steps: Steps) -> list[list[tuple[str, int, bytes, int]]]:
    """The messages of every step of the timed part, which runs in Python."""
    program = steps.finish()
    every = []
    for i in program.timed:
        noted = Noted()
        program.ctx = noted  # type: ignore[assignment]
        step(program, i)
        every.append(noted.messages)
    return every


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=3),
    st.permutations(range(3)),
    st.sampled_from([np.float64, np.complex128]),
)
def test_copies_are_those_of_numpy(shape: list[int], order: list[int], kind: Any) -> None:
    axes = [n for n in order if n < len(shape)]
    whole = np.arange(np.prod(shape) * 2 ** len(shape), dtype=float).astype(kind)
    inside = tuple(slice(1, 1 + n) for n in shape)
    source = whole.reshape([2 * n for n in shape])[inside].transpose(axes)
    target = np.zeros([n + 1 for n in source.shape], kind)[tuple(map(slice, source.shape))]
    steps = Steps()
    steps.copy(source, target)
    performed(steps)
    assert np.array_equal(source, target)


def test_a_cycle_is_repeated_between_head_and_tail() -> None:
    steps, total, one = Steps(), np.zeros(1), np.ones(1)
    steps.add(total, one)
    steps.start_clock()
    steps.exchange([Message(7, one, tag=3)], [])
    with steps.repeated(3):
        steps.add(total, one)
        steps.exchange([], [Message(1, total)])
        steps.add(total, total)
    steps.exchange([Message(8, one)], [])
    messages = performed(steps)
    assert total[0] == 14  # (((0 + 1) 2 + 1) 2 + 1) 2: what is not timed did not run
    assert [[(kind, rank) for kind, rank, *_ in some] for some in messages] == [
        [("send", 7)],
        *[[("receive", 1)], []] * 3,
        [("send", 8)],
    ]
    assert messages[0][0][2:] == (one.tobytes(), 3)


def test_messages_are_cut_into_pieces_that_are_long_enough() -> None:
    field = np.arange(4 * LEAST_PIECE // 8, dtype=float)
    steps = Steps(split=3)
    steps.exchange([Message(1, field[8:]), Message(1, field[:8])], [])
    ((*pieces, short),) = performed(steps)
    assert len(pieces) == 3
    assert b"".join(data for _, _, data, _ in pieces) == field[8:].tobytes()
    assert short[2] == field[:8].tobytes()


def test_calls_of_a_step_may_say_how_long_its_messages_are() -> None:
    keys, extents = np.arange(100, dtype=np.uint32), np.zeros((2, 2), np.int64)
    known = np.array([[8, 12], [0, 4]])
    steps = Steps()
    steps.copy(known.view(np.float64), extents.view(np.float64))
    steps.exchange([Message(5, keys, extents=extents)], [])
    ((first, second),) = performed(steps)
    assert first[2] == keys[2:5].tobytes()
    assert second[2] == keys[:1].tobytes()
