"""Follow-up: the three things that a user does after a search, each as a command to copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from autotune.space.library_choice import MPI
from autotune.study.search_result import MORE_TRIALS, NOTHING_LEFT, Result
from autotune.terminal.command_line import (
    command_line,
    on_this_target,
    option_values,
    option_words,
    this_command,
)
from autotune.terminal.render import print_line


@dataclass(frozen=True)
class FollowUp:
    """``what`` the user gets, in a few words, and the ``command`` for it."""

    what: str
    command: str


def follow_up(result: Result, publish: Sequence[str] | None = None) -> list[FollowUp]:
    """The next commands after the search of this command line, by the status of its result.

    ``publish``: options of ``autotune publish`` with which this result can be published; None if
    it cannot.
    """
    store = option_words(["--store"])
    report = FollowUp("See the evidence", _report(result, store))
    first, own = _libraries(result)
    noise = FollowUp("See which gain can be detected here", on_this_target("noise", mpi=first))
    if result.status == "recommended":
        steps = [FollowUp("Use it", result.start_line or result.mpirun_with_file or result.mpirun)]
        steps.append(report)
        if publish is not None:
            words = ["publish", "--from", f"study:{result.study}", *publish]
            words += option_words(["--cluster"])
            words += option_words(["--mpi"]) if own is None else ["--mpi", *own]
            words += option_words(["--store"])
            steps.append(FollowUp("Make it the default of this user", command_line(*words)))
        else:
            both = None if first is None else [*first, *(own or ())]
            # Only the space of the search knows parameters of the program.
            words = ["default", f"study:{result.study}", *_space_words()]
            repetition = on_this_target("compare", *words, mpi=both)
            steps.append(FollowUp("Compare it again", repetition))
        return steps
    if result.status == "unguarded":
        with_guard = this_command(without=["--no-guard"])
        return [FollowUp("Prove it, with the guard", with_guard), report, noise]
    if result.next_step is not None and result.next_step["options"]:
        decide = FollowUp("Decide it", this_command(result.next_step["options"]))
        return [decide, noise, report]
    return [report, noise, _look_further(result)]


def _space_words() -> list[str]:
    return [word for name in option_values("--space")[-1:] for word in ("--space", name)]


def _report(result: Result, store: list[str]) -> str:
    return command_line("report", result.study, "-o", f"autotune-{result.study[:8]}.html", *store)


def _libraries(result: Result) -> tuple[list[str] | None, list[str] | None]:
    """The library of the default, and that of the recommended setting if it is another one.

    They are as this command line names them. None in a search under one library.
    """
    names = option_values("--mpi")
    if len(names) < 2 or len(names) != len(result.libraries):
        return None, None
    places = {row["setting"]: name for row, name in zip(result.libraries, names, strict=True)}
    value = result.recommended.get(MPI)
    recommendation = None if value is None else str(value)
    return [names[0]], None if recommendation is None else [places[recommendation]]


def _look_further(result: Result) -> FollowUp:
    """What may still find something: more trials, or other parameters if none is left."""
    if result.ended_by == NOTHING_LEFT:
        return FollowUp("Choose other parameters (--space)", command_line("space", "list"))
    more = {"--trials": f"{result.trials + MORE_TRIALS}"}
    if result.max_runs is not None:
        more = {"--runs": f"{2 * result.max_runs}"}
    elif result.budget_s is not None:
        more = {"--budget": f"{2 * round(result.budget_s)}s"}
    return FollowUp("Search further", this_command(more))


def print_follow_up(rows: Sequence[FollowUp]) -> None:
    """Print the commands, each on a line of its own that is not wrapped, because it is copied."""
    print_line("What next:", bold=True)
    for row in rows:
        print_line(f"  {row.what}:")
        print_line(f"    {row.command}", whole=True)
