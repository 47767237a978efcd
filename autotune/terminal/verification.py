"""Terminal output of the check of published files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from autotune.measurement.result_checks import MARK
from autotune.terminal.render import print_hanging, print_line
from autotune.wording import count

if TYPE_CHECKING:
    from autotune.api.verify import VerifyResult
    from autotune.publish.recheck import Recheck, Renewal
    from autotune.publish.verify import FileState


def _verdict(state: FileState) -> str:
    words = {True: "in force", False: "NOT in force", None: "unknown"}
    if state.expiry is not None:
        return "expired"
    return "not checked" if state.refused else words[state.in_force]


def print_states(states: Sequence[FileState]) -> None:
    """Print whether each published file is in force."""
    for state in states:
        print_line(f"{_verdict(state)}: {state.path}", whole=True)
        print_hanging("  ", state.why)
        for note in state.unchecked:
            print_hanging("  ", f"{MARK}: {note.words}")
        if state.unsafe is not None:
            print_hanging("  ", f"UNSAFE: {state.unsafe.words}")


def print_checks(checks: Sequence[Recheck], most: int) -> None:
    """Print the comparisons; ``most`` is the largest number of pairs that was allowed."""
    for check in checks:
        words = check.words
        if check.status == "cannot be told":
            pairs = check.data.get("pairs", 0)
            more = "a larger --budget" if pairs < most else "--pairs N"
            words = f"with {count(pairs, 'pair')} ({words}); {more} allows more pairs"
        line = f"{check.status}: {check.source} on {check.program}: {words}"
        # Commands and paths are not wrapped, because they are made to be copied.
        print_line(line, whole=check.status in ("not compared", "cannot be run"))


def _print_renewals(renewals: Sequence[Renewal]) -> None:
    for one in renewals:
        verdict = "renewed" if one.renewed else "NOT renewed"
        print_line(f"{verdict}: {one.path}", whole=True)
        print_hanging("  ", one.words)


def _print_expired(states: Sequence[FileState]) -> None:
    """Print the commands for expired files; they are made to be copied, so not wrapped."""
    for state in states:
        if state.expiry is None:
            continue
        for what, line in state.expiry.commands.items():
            print_line(f"to {what}: {line}", whole=True)


def print_verification(result: VerifyResult, most: int) -> None:
    """Print the comparisons, renewals and what to do; ``most``: the largest number of pairs."""
    print_checks(result.checks, most)
    _print_renewals(result.renewals)
    _print_expired(result.lost)
    has_loss = any(not (state.refused or state.expiry) for state in result.lost)
    if has_loss or any(check.status in ("gone", "contradicted") for check in result.checks):
        print_line("remove the file with autotune unpublish FILE, or search and publish again")


def print_problems(result: VerifyResult) -> None:
    """Print one line for each file and each comparison that makes the exit code 1."""
    for state in result.lost:
        unsafe = "" if state.unsafe is None else f"; UNSAFE: {state.unsafe.words}"
        line = f"{_verdict(state)}: {state.path}: {state.why}{unsafe}"
        print_line(" ".join(line.split()), whole=True)
    for check in result.checks:
        if check.failed:
            line = f"{check.status}: {check.source} on {check.program}: {check.words}"
            print_line(" ".join(line.split()), whole=True)


def print_nothing_published() -> None:
    """Say that this user has no published files."""
    print_line("nothing to check: this user has published no file")
