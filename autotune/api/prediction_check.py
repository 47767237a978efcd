"""The check of a prediction: it runs against the default, and its parameter file is written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from autotune.api.predict import Prediction
from autotune.api.target import find_target, neutral_surroundings, to_stderr
from autotune.comparison.comparison_outcome import ComparisonOutcome
from autotune.comparison.paired_comparison import ComparisonRequest, compare_settings
from autotune.config.app import app_from_command
from autotune.config.cluster import load_cluster
from autotune.errors import AutotuneError, UsageError
from autotune.files import write_text
from autotune.measurement.events import Watcher, silent
from autotune.measurement.result_checks import checks_words
from autotune.notes import Note, Say
from autotune.publish.evidence_lines import file_evidence, gain_words
from autotune.publish.tune_file import NotObeyed, tune_text, write_tune_file
from autotune.space import DEFAULT, Setting, Space
from autotune.stats import LookPlan, known_gain
from autotune.store import Store
from autotune.targets.library_binding import bound_to_library
from autotune.targets.mpi_choice import choose
from autotune.targets.request import TargetRequest
from autotune.targets.resolve import with_request
from autotune.targets.target import Surroundings, Target
from autotune.wording import UNGUARDED
from runner.files.paths import is_folder
from runner.mpi.discover import adapter as adapter_for
from runner.trace import Features

CHECK_RUNS = 24
"""Largest number of runs of a check, unless the user gives a budget."""
_CHECK_LOOKS = (8, 11)
"""A warm-up run and 11 pairs are 23 runs."""


def check_plan(min_gain: float, has_budget: bool) -> LookPlan:
    """The looks of a check: few, or the usual ones within a budget of the user (``has_budget``)."""
    if has_budget:
        return LookPlan(min_gain=min_gain)
    return LookPlan(min_gain=min_gain, looks=_CHECK_LOOKS, win_from=_CHECK_LOOKS[0])


@dataclass(frozen=True)
class PredictionCheck:
    """The outcome of a check.  ``why_not``: why no parameter file was written, or ""."""

    outcome: ComparisonOutcome
    params_path: Path | None
    why_not: str


def check_prediction(
    prediction: Prediction,
    store: Store,
    *,
    min_gain: float = 0.02,
    budget_s: float | None = None,
    max_runs: int | None = None,
    guard: bool = True,
    params_file: Path | None = None,
    watch: Watcher = silent,
) -> PredictionCheck:
    """Compare the predicted setting (:attr:`Prediction.to_check`) with the default by interleaved
    pairs; write the parameter file only if it is proven.

    ``min_gain`` is a fraction, ``budget_s`` machine seconds.  Without a budget it takes
    :data:`CHECK_RUNS` runs at most.  Raises UsageError for a prediction without a target or a
    setting, WorkError if the default does not run.
    """
    place = prediction.place
    if place is None or place.target is None or not len(prediction.to_check):
        raise UsageError(
            "nothing to check: expected a program, and a setting other than the default",
            code="prediction.nothing_to_check",
        )
    outcome = check_setting(
        place.target,
        place.space,
        prediction.to_check,
        store,
        min_gain=min_gain,
        budget_s=budget_s,
        max_runs=max_runs,
        guard=guard,
        watch=watch,
    )
    if not outcome.guarded:
        return PredictionCheck(outcome, None, f"it was {UNGUARDED}, which proves nothing")
    if outcome.contradictions:
        why = "; ".join(note.words for note in outcome.contradictions)
        return PredictionCheck(outcome, None, f"an objection speaks against it: {why}")
    if outcome.verdict != "better":
        return PredictionCheck(outcome, None, "it was not proven to be faster than the default")
    if params_file is None:
        return PredictionCheck(outcome, None, "")
    return _write_checked_file(place.target, place.space, prediction.to_check, params_file, outcome)


def check_setting(
    target: Target,
    space: Space,
    setting: Setting,
    store: Store,
    *,
    min_gain: float,
    budget_s: float | None,
    max_runs: int | None,
    guard: bool,
    watch: Watcher,
) -> ComparisonOutcome:
    """Compare a setting with the default by interleaved pairs; arguments as of
    :func:`check_prediction`.  Raises WorkError if the default does not run."""
    request = ComparisonRequest(
        target=target,
        space=space,
        first=DEFAULT,
        second=setting,
        plan=check_plan(min_gain, budget_s is not None or max_runs is not None),
        budget_s=budget_s,
        max_runs=CHECK_RUNS if budget_s is None and max_runs is None else max_runs,
        guard=guard,
        watch=watch,
    )
    return compare_settings(request, store)


def _write_checked_file(
    target: Target, space: Space, setting: Setting, path: Path, outcome: ComparisonOutcome
) -> PredictionCheck:
    comparison = outcome.decision.comparison
    gain = gain_words(comparison.gain, (known_gain(comparison.lo), known_gain(comparison.hi)))
    claims = [
        f"predicted, then checked: gain over the default: {gain}, {comparison.n} pairs",
        f"study {outcome.study}",
        *([] if outcome.checks is None else [f"checks: {checks_words(outcome.checks)}"]),
    ]
    evidence = file_evidence(setting, claims, target)
    with target.runner() as runner:
        try:
            params_path = write_tune_file(path, target, space, setting, evidence, runner)
        except NotObeyed as problem:
            return PredictionCheck(outcome, None, str(problem))
    return PredictionCheck(
        outcome, params_path, "" if params_path else "a parameter file cannot hold its parameters"
    )


def refusal(prediction: Prediction, unproven: bool) -> str:
    """Why no parameter file is written without a check; empty if it may be written.

    ``unproven``: the user wants it although the prediction may not hold here.
    """
    place, strange = prediction.place, prediction.strange
    if place is None:
        return "no MPI library was found here, so its parameters are unknown"
    if not adapter_for(place.library).tune_option:
        return f"{place.library.family} has no parameter files"
    if strange and not unproven:
        doubts = "; ".join(note.words for note in strange)
        return f"{doubts}.  Check the setting here (--check), or write the file anyway (--unproven)"
    return ""


def write_params(prediction: Prediction, path: Path) -> Path:
    """Write the library parameters of a predicted setting as a ``--tune`` file that says so.

    Raises UsageError if the setting has no such parameters.
    """
    place, setting = prediction.place, prediction.setting
    groups = {} if place is None else place.space.launched(setting)
    if not groups.get("mca"):
        raise UsageError(
            f"{path} not written: a parameter file cannot hold these parameters; give them "
            "to mpirun",
            code="prediction.not_writable_as_file",
        )
    words = [f"{name}={value}" for name, value in sorted(groups.get("placement", {}).items())]
    claims = [
        "PREDICTED, NOT PROVEN: no run here has used this setting",
        f"model trained on data {prediction.model.about.data_hash[:16]}",
        *([f"to be given on the command line: {' '.join(words)}"] if words else []),
    ]
    write_text(path, tune_text(groups["mca"], file_evidence(setting, claims)))
    return path


def checked_target(
    features: Features,
    request: TargetRequest,
    *,
    run_recorded: bool,
    is_traced: bool,
    say: Say = to_stderr,
) -> Target:
    """What a check runs: the program of ``request``, or the launch as it was traced.

    ``is_traced``: the library of ``request`` is that of the traced run, which the user did not
    name. ``say`` gets notes, the library first. Raises UsageError for everything that is wrong.
    """
    notes: list[Note] = []
    find = partial(_recorded_target, features) if run_recorded else find_target
    try:
        target = find(request, notes.append)
    except AutotuneError:
        for note in notes:
            say(note)
        raise
    if is_traced and target.choice is not None:
        target = replace(target, choice=target.choice.as_traced())
    if target.choice is not None:
        say(target.choice.note)
    for note in notes:
        if note.code != "mpi.chosen":
            say(note)
    return target


def _recorded_target(features: Features, request: TargetRequest, say: Say) -> Target:
    """The launch as it was traced; all other options are those of ``request``.

    Raises UsageError if its directory does not exist here.
    """
    if not is_folder(features.cwd):
        raise UsageError(
            f"--run-recorded: the program ran in {features.cwd}, which does not exist "
            "here; give the command instead: --check -- PROGRAM ARGS",
            code="program.directory_missing",
        )
    app = with_request(
        app_from_command(features.argv, request.metric, request.verify, request.metric_rate),
        request,
    )
    choice = choose(request.mpi, (), features.argv)
    clean = request.clean_env
    around = Surroundings() if clean else neutral_surroundings(choice.library, say)
    target = Target.of(
        app,
        None,
        features.ranks,
        load_cluster(request.cluster),
        choice.library,
        timeout_s=request.timeout_s,
        clean_env=clean,
        surroundings=around,
        commutative_only=request.commutative_only,
        cwd=features.cwd,
        choice=choice,
    )
    return bound_to_library(target, "--mpi", say)
