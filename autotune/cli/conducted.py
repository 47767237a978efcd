"""A search in a terminal: watched, printed, and what is said when it is stopped."""

from __future__ import annotations

from autotune.api.search import Search, SearchInterrupted
from autotune.api.worker import ended_elsewhere
from autotune.study.result import Result
from autotune.study.search_request import SearchRequest
from autotune.terminal.given import this_command
from autotune.terminal.outcome import print_result
from autotune.terminal.progress import Progress
from autotune.terminal.render import console, error_console, write_json


def watch(asked: SearchRequest, json_out: str | None) -> Progress:
    """What shows the progress of a search."""
    return Progress(asked.plan.trials, asked.budget_s, json_out == "-")


def conduct(search: Search, progress: Progress, json_out: str | None, command: bool = True) -> None:
    """Measure to the end and print the answer; a stored one is printed as it is.

    ``progress`` is what the search was begun with.  ``command``: it is that of a search, which can
    be said again with other options.
    """
    stored = search.answer()
    if stored is not None:
        finish(stored, json_out, "This study is finished; its stored result:", command)
        return
    try:
        result = search.run(progress)
    except SearchInterrupted as stop:
        _interrupted(stop.result, json_out)
        raise
    if result is not None:
        finish(result, json_out, "", command)
        return
    if json_out:
        write_json(ended_elsewhere(search.study.hash), json_out)
    error_console().print(
        "The search is over and another worker runs the proof now; follow it with: "
        f"autotune status {search.study.hash[:12]}",
        markup=False,
        soft_wrap=True,
    )


def finish(result: Result, json_out: str | None, note: str = "", command: bool = True) -> None:
    """Print an answer, and write it as JSON where that is wanted."""
    if json_out:
        write_json(result.to_json(), json_out)
    if json_out != "-":
        if note:
            console().print(note, markup=False)
        print_result(result, command)


def _interrupted(result: Result, json_out: str | None) -> None:
    if json_out:
        write_json(result.to_json(), json_out)
    error_console().print(
        f"\nInterrupted. Every finished run is stored ({result.search_runs} search "
        f"runs, {result.confirmation_runs} confirmation runs). Continue with:\n  "
        f"{this_command()}",
        markup=False,
    )
