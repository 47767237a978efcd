"""Features of a program, from one traced run or from a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from autotune.api.target import to_stderr
from autotune.errors import UsageError
from autotune.notes import Note, Say
from autotune.targets.executables import ExecutableFile, changes_of, executables_of
from autotune.targets.target import Target
from runner.machine import describe_machine
from runner.trace import (
    Features,
    FeaturesError,
    load_features,
)
from runner.trace.compute import feature_values, nodes
from runner.trace.document import features_from_json
from runner.trace.partners import partners_of
from runner.trace.profile import profile_of
from runner.trace.run import NotTraceable, TracedRun, trace
from runner.trace.steps import steps_of

if TYPE_CHECKING:
    from autotune.store import Store, StudyKey


_EXECUTABLES = "executables"


def read_features(path: Path) -> Features:
    """The content of a features file; raises UsageError if it is wrong."""
    try:
        return load_features(path)
    except FeaturesError as problem:
        raise UsageError(str(problem), code=problem.code) from None


def traced_features(
    target: Target,
    method: Literal["auto", "pmpi", "mpi4py"] = "auto",
    guard: bool = True,
    tell: Say = to_stderr,
) -> tuple[Features, TracedRun]:
    """Trace one run of a target; ``tell`` gets notes on the steps.

    Raises UsageError if the program cannot be traced.
    """
    spec = target.spec(None)

    def step(words: str) -> None:
        tell(Note("trace.step", words))

    with target.locked_runner(guard, tell) as runner:
        step(f"tracing one run of {target.app.name} on {target.ranks} ranks")
        try:
            traced_run = trace(runner, spec, method, step)
        except NotTraceable as problem:
            raise UsageError(str(problem), code=problem.code) from None
    return features_of(target, traced_run), traced_run


def features_of(target: Target, traced_run: TracedRun) -> Features:
    """The content of the features file for a traced run of a target."""
    machine = describe_machine()
    return Features(
        values=feature_values(traced_run.ranks, target.cores),
        argv=target.program,
        cwd=target.cwd,
        ranks=target.ranks,
        nodes=nodes(traced_run.ranks),
        cores=target.cores,
        mpi_name=target.library.family,
        mpi_version=target.library.version,
        machine={
            "fingerprint": machine.fingerprint,
            "cpu_model": machine.cpu_model,
            "hostname": machine.hostname,
        },
        wall_s=max(rank.wall_ns for rank in traced_run.ranks) / 1e9,
        method=traced_run.method,
        app=None if target.app.literal else target.app.name,
        input=target.input,
        cluster=target.cluster.name,
        profile=profile_of(traced_run.ranks),
        figure_s=traced_run.record.value_s,
        partners=partners_of(traced_run.ranks),
        steps=steps_of(traced_run.ranks),
    )


def keep_features(features: Features, traced_run: TracedRun, target: Target, store: Store) -> None:
    """Store the features of a traced run for later searches of the program."""
    from autotune.measurement.study_key import study_key

    space = target.space(None)
    key = study_key(target, space, "features", {}, 0)
    files = [file.to_json() for file in executables_of(traced_run.record, target.program)]
    store.keep_trace(key, features.to_json() | {_EXECUTABLES: files})


def traced_before(store: Store, target: Target) -> Features | None:
    """The features of the last traced run of a target, if the database has them."""
    from autotune.measurement.study_key import study_key

    return stored_features(store, study_key(target, target.space(None), "features", {}, 0))


def stored_features(store: Store, key: StudyKey) -> Features | None:
    """The features of the last traced run of a study's program, if the database has them; None also
    for those of another version, and of executables that have changed since."""
    rows = store.trace_features(key)
    if rows is None:
        return None
    files = rows.pop(_EXECUTABLES, None)
    if isinstance(files, list) and changes_of(map(ExecutableFile.from_json, files)):
        return None
    try:
        return features_from_json(rows)
    except FeaturesError:
        return None
