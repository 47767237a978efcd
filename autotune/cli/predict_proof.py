"""What turns a prediction into more: the check against the default, and the parameter file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from autotune.cli import options as o
from autotune.cli.outcome import print_comparison
from autotune.cli.progress import Progress
from autotune.cli.render import write_text
from autotune.config.app import app_from_command
from autotune.config.cluster import load_cluster, read_cluster
from autotune.errors import UsageError
from autotune.publish import NotObeyed, write_tune_file
from autotune.publish.tune_file import tune_text
from autotune.space import DEFAULT, Setting, Space, load_space
from autotune.stats import Plan
from autotune.store import Store
from autotune.study.compare import ComparisonOutcome, ComparisonRequest, compare_settings
from autotune.study.target import Target
from autotune.words import UNGUARDED, percent
from runner.errors import RunnerError
from runner.launch import Runner
from runner.mpi.discover import adapter as adapter_for
from runner.mpi.discover import find
from runner.mpi.library import Library

if TYPE_CHECKING:
    from runner.trace import Features


@dataclass(frozen=True)
class Wanted:
    """What the options of ``autotune predict`` said about running anything."""

    words: o.TargetWords
    space: str | None
    features: Features
    recorded: bool
    budget_s: float | None
    max_runs: int | None
    min_gain: float
    guard: bool
    quiet: bool
    store: str | None


@dataclass(frozen=True)
class Place:
    """The MPI and the parameters there are; ``target`` only where something is to be run."""

    library: Library
    space: Space
    target: Target | None = None


@dataclass(frozen=True)
class Proof:
    """``why_not``: why no parameter file was written."""

    outcome: ComparisonOutcome
    written: Path | None
    why_not: str


def target_of(wanted: Wanted, check: bool) -> Place | None:
    """The MPI, its space, and with ``check`` what is run; None where there is no MPI to ask."""
    if check:
        target = _recorded(wanted) if wanted.recorded else wanted.words.resolve()
        return Place(target.library, o.space_for(target, wanted.space), target)
    try:
        library = find(wanted.words.mpi)
    except RunnerError:
        # Predicting needs no MPI; only one that was asked for by name has to be there.
        if wanted.words.mpi is not None:
            raise
        return None
    cluster = read_cluster(wanted.words.cluster)  # Nothing is run: a testbed may be down.
    features = wanted.features
    facts = {
        "ranks": features.ranks,
        "cores": features.cores if cluster.testbed else o.total_cores(cluster),
        "nodes": features.nodes if cluster.testbed else cluster.nodes,
    }
    space = load_space(wanted.space or cluster.space(library), library=library, facts=facts)
    return Place(library, space.without(cluster.fixed))


def _recorded(wanted: Wanted) -> Target:
    """The launch that was traced, as the features file has it."""
    features = wanted.features
    if not Path(features.cwd).is_dir():
        raise UsageError(
            f"--run-recorded: the program ran in {features.cwd}, which does not exist here; give "
            "the command: --check -- PROGRAM ARGS"
        )
    words = wanted.words
    app = words.as_said(app_from_command(features.argv, words.metric, words.verify))
    cluster = load_cluster(words.cluster)
    return Target(
        app=app,
        input=None,
        ranks=features.ranks,
        cluster=cluster,
        library=find(words.mpi),
        cores=o.total_cores(cluster),
        timeout_s=words.timeout_s or app.timeout_s,
        clean_env=words.clean_env,
        cwd=features.cwd,
    )


def check_prediction(
    place: Place, wanted: Wanted, setting: Setting, params_file: Path | None
) -> Proof:
    """Interleaved pairs of the setting and the default; the file only where it is proven."""
    assert place.target is not None
    request = ComparisonRequest(
        target=place.target,
        space=place.space,
        first=DEFAULT,
        second=setting,
        plan=Plan(min_gain=wanted.min_gain),
        budget_s=wanted.budget_s,
        max_runs=wanted.max_runs,
        guard=wanted.guard,
    )
    with (
        Store.open(wanted.store) as opened,
        Progress(None, request.budget_s, wanted.quiet) as progress,
    ):
        request.watch = progress
        outcome = compare_settings(request, opened)
    if not wanted.quiet:
        print_comparison(request.first.key, request.second.key, outcome.to_json())
    if not outcome.guarded:
        return Proof(outcome, None, f"it was {UNGUARDED}: that proves nothing")
    if outcome.verdict != "better":
        return Proof(outcome, None, "it was not proven to be faster than the default")
    if params_file is None:
        return Proof(outcome, None, "")
    return _write_proven(place.target, place.space, setting, params_file, outcome)


def _write_proven(
    target: Target, space: Space, setting: Setting, path: Path, outcome: ComparisonOutcome
) -> Proof:
    seen = outcome.decision.comparison
    where = (
        f"for {target.app.name} on {target.ranks} ranks, {target.library.family} "
        f"{target.library.version}, cluster {target.cluster.name}"
    )
    evidence = [
        f"autotune: {setting.key}",
        where,
        f"predicted, then checked: {percent(seen.gain)} over the default in {seen.n} pairs",
        f"study {outcome.study}",
    ]
    cpus = target.cluster.cpu_set
    with Runner(
        adapter_for(target.library), own_processes=target.cluster.own_processes, cpus=cpus
    ) as runner:
        try:
            written = write_tune_file(path, target, space, setting, evidence, runner)
        except NotObeyed as problem:
            return Proof(outcome, None, str(problem))
    return Proof(outcome, written, "" if written else "such a file cannot hold its parameters")


def refusal(strange: list[str], unproven: bool, place: Place | None) -> str:
    """Why no parameter file is written without a check; empty where one may be."""
    if place is None:
        return "there is no MPI here whose parameters could be named"
    if place.library.family != "openmpi":
        return f"{place.library.family} has no such files"
    if strange and not unproven:
        return f"{'; '.join(strange)}.  Check it here (--check), or insist (--unproven)"
    return ""


def write_params(path: Path, place: Place, setting: Setting, data_hash: str) -> Path | None:
    """The library's parameters of a predicted setting as a ``--tune`` file that says so.

    Raises UsageError where the setting has none.
    """
    groups = place.space.launched(setting)
    if not groups.get("mca"):
        raise UsageError(
            f"{path} not written: such a file cannot hold its parameters; give them to mpirun"
        )
    words = [f"{name}={value}" for name, value in sorted(groups.get("placement", {}).items())]
    evidence = [
        f"autotune: {setting.key}",
        "PREDICTED, NOT PROVEN: nothing was run with this setting here",
        f"model trained on data {data_hash[:16]}",
        *([f"to be said on the command line: {' '.join(words)}"] if words else []),
    ]
    write_text(path, tune_text(groups["mca"], evidence))
    return path
