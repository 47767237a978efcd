"""``autotune search``: the command, its progress and result on a terminal, and its interruption."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from autotune.cli.options import JsonOut, NoCheck, Quiet, StoreUrl, opt
from autotune.cli.requests import takes_request
from autotune.files import check_writable
from autotune.study.study_request import Crew, SearchRequest
from autotune.terminal.command_line import command_line, option_words, this_command
from autotune.terminal.render import error_console, print_line, to_stderr, write_json
from runner.files.paths import is_file

if TYPE_CHECKING:
    from autotune.api.tried_layouts import TriedLayout
    from autotune.notes import Say
    from autotune.study.search_result import Result
    from autotune.study.search_study import SearchStudy
    from autotune.terminal.follow_up import FollowUp
    from autotune.terminal.progress import Progress


@takes_request
def search(
    request: SearchRequest,
    pareto: Annotated[
        bool,
        opt(
            "--pareto",
            "Show time and core-seconds of each layout that was tried (ranks x threads), from the "
            "stored runs; for a space that varies them, such as hybrid.",
        ),
    ] = False,
    join: Annotated[
        bool,
        opt(
            "--join",
            "Let other workers take part (autotune worker STUDY). Trials are shared; each "
            "worker compares settings on its own machine; one worker runs the proof.",
        ),
    ] = False,
    *,
    crew: Crew,
    no_check: NoCheck = False,
    quiet: Quiet = False,
    store: StoreUrl = None,
    json_out: JsonOut = None,
) -> None:
    """Search for a better setting of a program and prove it against the default.

    The same command continues an interrupted search, and prints the stored result of a finished
    one.
    """
    from autotune.api.search import begin_search
    from autotune.api.target import silent_say
    from autotune.api.tried_layouts import layouts_of, require_layouts
    from autotune.api.workers import work
    from autotune.store import Store
    from runner.mpi.srun import job_ahead

    for place in (None if json_out == "-" else json_out, request.params_file):
        if place is not None:
            check_writable(Path(place))
    with Store.open(store) as database:
        is_shared = join or crew.scheduler is not None
        progress = watch(request, json_out, quiet)
        say = silent_say if quiet else to_stderr
        with job_ahead(crew.scheduler not in (None, "local")):
            search_study = begin_search(request, database, join=is_shared, watch=progress, say=say)
        if pareto:
            require_layouts(search_study.space)
        if crew.scheduler is None:
            notes = None if no_check or quiet else to_stderr
            run_search(search_study, progress, json_out, pareto=pareto, say=notes)
            return
        answer = search_study.followed_answer()
        result = work(crew, search_study, store, say) if answer is None else answer
        result = _with_choice(search_study, result)
        rows = layouts_of(search_study, result) if pareto else None
        finish(result, json_out, next_commands=_next(search_study, result), layouts=rows)


def watch(request: SearchRequest, json_out: str | None, quiet: bool = False) -> Progress:
    """The progress display of a search."""
    from autotune.terminal.progress import Progress

    return Progress(request.plan.trials, request.budget_s, quiet or json_out == "-")


def run_search(
    search: SearchStudy,
    progress: Progress,
    json_out: str | None,
    command: bool = True,
    pareto: bool = False,
    say: Say | None = None,
) -> None:
    """Measure to the end and print the result; a stored result is printed without measuring.

    ``progress`` is the watcher of the search.  ``command``: this command is a search, which can be
    repeated with other options.  ``pareto``: show the layouts that were tried.  ``say`` gets
    what is wrong with the launch line; None: it is not checked.
    """
    from autotune.api.study_check import checked
    from autotune.api.tried_layouts import layouts_of
    from autotune.api.workers import ProofByOther
    from autotune.study.search_study import SearchInterrupted

    answer = search.answer()
    if answer is not None:
        answer = _with_choice(search, answer)
        headline = "This study is finished; its stored result:"
        following = _next(search, answer) if command else ()
        finish(
            answer, json_out, headline, following, layouts_of(search, answer) if pareto else None
        )
        return
    try:
        if say is not None:
            search.watch = checked(search.watch, search.target, search.space, say)
        result = search.run(progress)
    except SearchInterrupted as stop:
        _report_interruption(_with_choice(search, stop.result), json_out)
        raise
    if result is not None:
        result = _with_choice(search, result)
        following = _next(search, result) if command else ()
        finish(result, json_out, "", following, layouts_of(search, result) if pareto else None)
        return
    if json_out:
        write_json(ProofByOther(study=search.study.hash), json_out)
    error_console().print(
        "The search is over and another worker runs the proof now; follow it with: "
        f"autotune status {search.study.hash[:12]}",
        markup=False,
        soft_wrap=True,
    )


def _with_choice(search: SearchStudy, result: Result) -> Result:
    """The result with the reason for which this command takes its MPI library."""
    return replace(result, mpi_choice=search.target.choice_row)


def _next(search: SearchStudy, result: Result) -> list[FollowUp]:
    """The commands that come after this result."""
    from autotune.publish.plan import publish_options
    from autotune.terminal.follow_up import follow_up

    publish: list[str] | None = None
    if result.status == "recommended":
        target = search.target_of(result.recommended)
        files = [word for word in (search.request.space or "").split("+") if is_file(word)]
        place = (target.cluster, target.library, search.store)
        publish = publish_options(result.study, *place, files)
    return follow_up(result, publish)


def finish(
    result: Result,
    json_out: str | None,
    note: str = "",
    next_commands: Sequence[FollowUp] = (),
    layouts: list[TriedLayout] | None = None,
) -> None:
    """Print a result and the layouts, and write them as JSON if asked for."""
    from autotune.terminal.layouts import print_layouts
    from autotune.terminal.outcome import print_result

    if json_out:
        rows = None if layouts is None else [one.row for one in layouts]
        write_json(replace(result, layouts=rows).to_json(), json_out)
    if json_out != "-":
        if note:
            print_line(note)
        print_result(result, next_commands)
        if layouts is not None:
            print_layouts(layouts, result.metric)


def _report_interruption(result: Result, json_out: str | None) -> None:
    if json_out:
        write_json(result.to_json(), json_out)
    out = error_console()
    out.print(
        f"\nInterrupted. Every finished run is stored ({result.search_runs} search "
        f"runs, {result.confirmation_runs} confirmation runs). Continue with:\n  "
        f"{this_command()}\nSee what was measured:\n  "
        f"{command_line('show', result.study, *option_words(['--store']))}",
        markup=False,
    )
