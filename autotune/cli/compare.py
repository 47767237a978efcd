"""``autotune compare``: two settings of a program, or one program under two MPI libraries."""

from __future__ import annotations

from collections.abc import Sequence

from autotune.cli.options import JsonOut, NoCheck, Quiet, StoreUrl
from autotune.cli.requests import takes_request
from autotune.errors import UsageError, WorkError
from autotune.study.study_request import CompareRequest
from autotune.terminal.command_line import program_words
from autotune.terminal.render import INTERRUPTION_NOTE, interruption, to_stderr, write_json


@takes_request
def compare(
    request: CompareRequest,
    no_check: NoCheck = False,
    quiet: Quiet = False,
    store: StoreUrl = None,
    json_out: JsonOut = None,
) -> None:
    """Compare two settings of a program, or two MPI libraries, by interleaved pairs of runs.

    The comparison ends when the sequential test decides or the budget is spent.
    """
    from autotune.api.compare import comparison_request
    from autotune.api.figures import with_figure
    from autotune.api.library_targets import compared_targets
    from autotune.api.study_check import checked
    from autotune.api.target import find_target, silent_say
    from autotune.comparison.comparison_document import comparison_document
    from autotune.comparison.comparison_outcome import library_titles
    from autotune.comparison.paired_comparison import compare_settings
    from autotune.measurement.other_library import OtherLibrary
    from autotune.store import Store
    from autotune.targets.request import AUTO
    from autotune.terminal.outcome import print_comparison
    from autotune.terminal.progress import Progress

    settings, program = _words(request.first, request.second, request.target.program)
    target_request = request.target.model_copy(update={"program": program})
    say = silent_say if quiet else to_stderr
    if target_request.metric == AUTO:
        with Store.open(store) as database:
            target_request = with_figure(target_request, database, say, guard=request.guard)
    other = None
    if len(request.libraries) > 1:
        target, second = compared_targets(
            target_request, request.libraries, request.second_program, say
        )
        other = OtherLibrary(second, second.space(request.space))
        a, b = settings or ("default", "default")
    else:
        a, b = _require_settings(settings, request.second_program)
        target = find_target(target_request, say)
    is_quiet = quiet or json_out == "-"
    with Store.open(store) as database, Progress(None, request.budget_s, is_quiet) as progress:
        comparison = comparison_request(
            a,
            b,
            target,
            target.space(request.space),
            database,
            other=other,
            pairs=request.pairs,
            min_gain=request.min_gain,
            budget_s=request.budget_s,
            max_runs=request.max_runs,
            seed=request.seed,
            guard=request.guard,
            remeasure=request.remeasure,
            watch=progress,
        )
        if not (no_check or quiet):
            side = (target, comparison.space, to_stderr, comparison.first)
            comparison.watch = checked(progress, *side)
        with interruption(f"\n{INTERRUPTION_NOTE}"):
            outcome = compare_settings(comparison, database)
    figures = outcome.figures
    if json_out:
        settings_and_figures = (comparison.first, comparison.second, figures)
        write_json(comparison_document(*settings_and_figures, target.choice_row), json_out)
    if outcome.failed:
        setting_text = f"B is {comparison.second.key}"
        if outcome.libraries is not None:
            setting_text += f" under {library_titles(outcome.libraries)['b']}"
        raise WorkError(
            f"{outcome.failed}.\n{setting_text}. Nothing was compared", code="compare.fails"
        )
    if json_out != "-":
        print_comparison(comparison.first.key, comparison.second.key, figures, command=True)


def _words(
    first: str | None, second: str | None, program: Sequence[str] | None
) -> tuple[tuple[str, str] | None, tuple[str, ...]]:
    """Settings (None: none) and program; words after ``--`` belong to the program in any case.

    Raises UsageError for one setting alone.
    """
    words = (*(word for word in (first, second) if word is not None), *(program or ()))
    before = len(words) - program_words()
    if before == 1:
        raise UsageError(
            f"compare was given one setting ({words[0]}); expected two, A and B, or none if two "
            "libraries are compared",
            code="compare.settings",
        )
    if before == 0:
        return None, words
    return (words[0], words[1]), words[2:]


def _require_settings(
    settings: tuple[str, str] | None, second_program: str | None
) -> tuple[str, str]:
    """The settings of a comparison under one library; raises UsageError if there are none."""
    if second_program is not None:
        raise UsageError(
            "--program-b is the program's build for a second library; expected --mpi twice",
            code="compare.settings",
        )
    if settings is None:
        raise UsageError(
            "compare needs two settings or two libraries; expected one of\n"
            "  autotune compare A B ...\n"
            "  autotune compare --mpi P --mpi P ...",
            code="compare.settings",
        )
    return settings
