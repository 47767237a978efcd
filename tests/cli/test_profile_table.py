"""The table of a profile: the longest rows, in words, within 80 columns."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from autotune.terminal.profile import LONGEST, profile_table
from autotune.terminal.render import PlainConsole
from runner.trace import Profile, ProfileRow


def lines(profile: Profile) -> list[str]:
    console = PlainConsole(width=80, soft_wrap=False, highlight=False)
    with console.capture() as captured:
        console.print(profile_table(profile))
    return [" ".join(line.split()) for line in captured.get().splitlines()]


def row(operation: str, seconds: float, **changes: object) -> ProfileRow:
    given: dict[str, object] = {
        "nonblocking": False,
        "size_bin": 0,
        "comm_size": 0,
        "far": False,
        "calls": 100.0,
        "bytes": 0.0,
        "least_seconds": seconds / 2,
        **changes,
    }
    return ProfileRow(operation=operation, seconds=seconds, **given)  # type: ignore[arg-type]


def test_rows_are_said_in_words_the_longest_first(snapshot: SnapshotAssertion) -> None:
    profile = Profile(
        (
            row("send", 0.1, size_bin=4),
            row("allreduce", 0.4, size_bin=13, comm_size=4, far=True),
            row("wait", 0.2, calls=2.5, least_seconds=0.0),
        ),
        0.3,
        {"send": 0.05, "allreduce": 0.1, "wait": 0.2},
    )
    assert lines(profile) == snapshot


@pytest.mark.parametrize(
    ("size_bin", "words"),
    [(0, "0"), (1, "1"), (2, "2-3"), (10, "512-1023"), (11, "1k-2k"), (25, "from 16M")],
)
def test_size_classes(size_bin: int, words: str, snapshot: SnapshotAssertion) -> None:
    found = lines(Profile((row("send", 1.0, size_bin=size_bin, far=True),), 1.0, {"send": 0.5}))
    assert found[2].startswith(f"send {words} ")
    assert found[2] == snapshot


def test_the_widest_rows_fit_into_80_columns() -> None:
    rows = tuple(
        row("reduce_scatter", 1.0, nonblocking=True, size_bin=size_bin, comm_size=16384, far=True)
        for size_bin in range(18, 18 + LONGEST + 1)
    )
    console = PlainConsole(width=80, soft_wrap=False, highlight=False)
    with console.capture() as captured:
        console.print(profile_table(Profile(rows, 0.0, {"reduce_scatter": 3.5})))
    shown = captured.get()
    assert max(map(len, shown.splitlines())) <= 80
    assert "reduce_scatter" in shown
    assert "16384 ranks" in shown
    assert shown.count("of it waiting") == 1  # data
    assert shown.count("50.0 %") == LONGEST + 1


def test_calls_that_took_no_time_have_no_share(snapshot: SnapshotAssertion) -> None:
    profile = Profile((row("send", 0.0),), 0.0, {"send": 0.0})
    assert lines(profile)[2] == snapshot
