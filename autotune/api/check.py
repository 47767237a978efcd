"""What turns a prediction into more: the check against the default, and the parameter file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from autotune.api.predict import Prediction
from autotune.errors import UsageError
from autotune.files import write_text
from autotune.publish import NotObeyed, write_tune_file
from autotune.publish.evidence import file_evidence, gain_words
from autotune.publish.tune_file import tune_text
from autotune.space import DEFAULT, Setting, Space
from autotune.stats import Plan, known_gain
from autotune.store import Store
from autotune.study.compare import ComparisonOutcome, ComparisonRequest, compare_settings
from autotune.study.events import Watcher, silent
from autotune.study.target import Target
from autotune.words import UNGUARDED
from runner.launch import Runner
from runner.mpi.discover import adapter as adapter_for


@dataclass(frozen=True)
class Proof:
    """``why_not``: why no parameter file was written."""

    outcome: ComparisonOutcome
    written: Path | None
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
) -> Proof:
    """Interleaved pairs of the setting and the default; the file only where it is proven.

    ``min_gain`` is a fraction, ``budget_s`` machine seconds.  Raises UsageError for a prediction
    without a target or a setting.
    """
    place = prediction.place
    if place is None or place.target is None or not len(prediction.setting):
        raise UsageError(
            "nothing to check: expected a program, and a setting other than the default"
        )
    request = ComparisonRequest(
        target=place.target,
        space=place.space,
        first=DEFAULT,
        second=prediction.setting,
        plan=Plan(min_gain=min_gain),
        budget_s=budget_s,
        max_runs=max_runs,
        guard=guard,
        watch=watch,
    )
    outcome = compare_settings(request, store)
    if not outcome.guarded:
        return Proof(outcome, None, f"it was {UNGUARDED}, which proves nothing")
    if outcome.verdict != "better":
        return Proof(outcome, None, "it was not proven to be faster than the default")
    if params_file is None:
        return Proof(outcome, None, "")
    return _write_proven(place.target, place.space, prediction.setting, params_file, outcome)


def _write_proven(
    target: Target, space: Space, setting: Setting, path: Path, outcome: ComparisonOutcome
) -> Proof:
    seen = outcome.decision.comparison
    gain = gain_words(seen.gain, (known_gain(seen.lo), known_gain(seen.hi)))
    claims = [
        f"predicted, then checked: gain over the default: {gain}, {seen.n} pairs",
        f"study {outcome.study}",
    ]
    evidence = file_evidence(setting, claims, target)
    cpus = target.cluster.cpu_set
    with Runner(
        adapter_for(target.library), own_processes=target.cluster.own_processes, cpus=cpus
    ) as runner:
        try:
            written = write_tune_file(path, target, space, setting, evidence, runner)
        except NotObeyed as problem:
            return Proof(outcome, None, str(problem))
    return Proof(outcome, written, "" if written else "a parameter file cannot hold its parameters")


def refusal(prediction: Prediction, unproven: bool) -> str:
    """Why no parameter file is written without a check; empty where one may be.

    ``unproven``: the user insists although it may not hold here.
    """
    place, strange = prediction.place, prediction.strange
    if place is None:
        return "no MPI library was found here, so its parameters are unknown"
    if not adapter_for(place.library).tune_option:
        return f"{place.library.family} has no parameter files"
    if strange and not unproven:
        return (
            f"{'; '.join(strange)}.  Check the setting here (--check), or write the file "
            "all the same (--unproven)"
        )
    return ""


def write_params(prediction: Prediction, path: Path) -> Path:
    """The library's parameters of a predicted setting as a ``--tune`` file that says so.

    Raises UsageError where the setting has none.
    """
    place, setting = prediction.place, prediction.setting
    groups = {} if place is None else place.space.launched(setting)
    if not groups.get("mca"):
        raise UsageError(
            f"{path} not written: a parameter file cannot hold these parameters; give them "
            "to mpirun"
        )
    words = [f"{name}={value}" for name, value in sorted(groups.get("placement", {}).items())]
    claims = [
        "PREDICTED, NOT PROVEN: no run here has used this setting",
        f"model trained on data {prediction.model.about.data_hash[:16]}",
        *([f"to be given on the command line: {' '.join(words)}"] if words else []),
    ]
    write_text(path, tune_text(groups["mca"], file_evidence(setting, claims)))
    return path
