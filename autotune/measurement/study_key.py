"""The study's key: what makes two searches one study, made of target, space and strategy.

A study may be begun on another kind of machine than it is measured on, such as a login node. A
study's key holds the machine. So the first worker on a compute node begins a study for that kind of
node, and the study that was begun before, without a trial, refers to it.
"""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

from autotune.errors import UsageError
from autotune.space import Space
from autotune.store import GUARD, AppInfo, MachineInfo, MpiInfo, Store, StudyKey, StudyRecord
from autotune.store.keys import BEFORE, CLEAN_ENV, EXECUTABLES, FRESH_DIR, LAUNCHER, digest
from autotune.store.model import MOVED
from autotune.targets.metric import objective_name
from autotune.targets.program_identity import file_hash, program_hash
from autotune.targets.target import Target
from runner.machine import describe_machine
from runner.mpi.discover import adapter
from runner.mpi.srun import NAME as SRUN
from runner.mpi.srun import is_srun


def study_key(
    target: Target,
    space: Space,
    strategy: str,
    options: dict[str, Any],
    seed: int,
    guard: bool = True,
) -> StudyKey:
    """The key of a search; equal keys are one study, whatever their budgets
    (docs/explanation/design.md).

    Runs without the guard (``guard`` False) are a separate study, because they prove nothing.
    """
    machine = describe_machine()
    inherited_settings = target.inherited_settings(adapter(target.library))
    program = target.program
    return StudyKey(
        app=AppInfo(
            name=target.app.name,
            program=program[0],
            program_hash=program_hash(program, target.cwd),
            argv=program[1:],
            input=target.input,
            metric=_figure(target),
            verify=target.app.verify,
        ),
        machine=MachineInfo(
            cores=machine.cores,
            cpu_model=machine.cpu_model,
            memory_bytes=machine.memory_bytes,
            kernel=machine.kernel,
            hostname=machine.hostname,
        ),
        mpi=MpiInfo(
            family=target.library.family,
            version=target.library.version,
            path=target.library.bin,
            library_hash=_parameters_hash(target),
        ),
        ranks=target.ranks,
        cluster=target.cluster.name,
        cluster_hash=hashlib.sha256(target.cluster.definition.encode()).hexdigest(),
        space_name=space.name,
        space_hash=space.hash,
        strategy=strategy,
        strategy_options=options,
        seed=seed,
        inherited=inherited_settings,
        conditions={
            CLEAN_ENV: target.clean_env,
            "launch_options": list(target.options),
            "placement": dict(target.placement),
            "timeout_s": target.timeout_s,
            "oversubscribed": target.is_oversubscribed,
            **_added_conditions(target),
            **({} if guard else {GUARD: False}),
        },
        stdin=target.stdin or "",
    )


def _figure(target: Target) -> str | None:
    return target.app.figure if target.objective is None else objective_name(target.objective)


def _added_conditions(target: Target) -> dict[str, Any]:
    """Conditions that a key holds only where they say something."""
    conditions: dict[str, Any] = {}
    figure = target.app.figure
    if figure is not None and not figure.startswith("json:"):
        conditions["metric_choice"] = target.metric_choice
    if target.app.metric_rate is not None:
        conditions["metric_rate"] = True
    if target.app.verify_absent is not None:
        conditions["verify_absent"] = target.app.verify_absent
    if target.app.exit_codes != (0,):
        conditions["exit_codes"] = list(target.app.exit_codes)
    if target.room is not None and target.room.hosts is not None:
        # A hostfile may change while its name stays.
        conditions["hosts"] = dict(sorted(target.room.hosts.items()))
    if target.library_folders:
        conditions["library_folders"] = list(target.library_folders)
    if target.commutative_only:
        conditions["commutative_only"] = True
    if target.stdin is not None:
        conditions["stdin"] = file_hash(target.stdin)
    if is_srun(target.library.launcher):
        conditions[LAUNCHER] = SRUN
    if texts := target.app.texts(target.input):
        conditions["input_files"] = digest(texts)
    if target.before:
        conditions[BEFORE] = list(target.before)
    if target.fresh_copy:
        conditions[FRESH_DIR] = target.cwd
    return conditions


def _parameters_hash(target: Target) -> str:
    """Hash of the library's parameters: two builds of one version may differ in them."""
    names = sorted(target.library.params)
    return hashlib.sha256("\n".join(names).encode()).hexdigest()


_FOLLOWS_NODE = frozenset({"machine", "ranks", "cluster_hash", "space_hash", "conditions"})
"""Parts of a key that depend on the node: its kind and, by default, the number of ranks."""


def require_same_study(store: Store, first_study: StudyRecord, own: StudyRecord) -> None:
    """Make sure that a worker whose key gives ``own`` works for ``first_study``.

    Raises UsageError if the worker would measure another study.
    """
    current = store.follow_moved(first_study)
    if current.hash == own.hash:
        return
    unlike = current.key.has_guard != own.key.has_guard  # A node has no part in this.
    different = {n for n, part in _parts(first_study.key).items() if part != _parts(own.key)[n]}
    if (
        unlike
        or current.id != first_study.id
        or store.trials(first_study.id)
        or not different <= _FOLLOWS_NODE
    ):
        if own.key.conditions.get(EXECUTABLES) != current.key.conditions.get(EXECUTABLES):
            raise UsageError(
                f"the program has changed since study {current.hash[:12]} was begun, and its runs "
                "are not mixed with those of another program; begin a new study: give the command "
                "of the search again",
                code="study.program_changed",
            )
        raise UsageError(
            f"this worker would measure another study than {current.hash[:12]}: it "
            f"differs in {', '.join(sorted(different))}; start workers on equal nodes, in "
            "the same environment",
            code="worker.other_study",
        )
    store.set_result(first_study.id, MOVED, {"to": own.hash})


def _parts(key: StudyKey) -> dict[str, object]:
    """The parts of a key, as far as they count: names and paths only describe."""
    return {
        f.name: getattr(part, "hash", part)
        for f in dataclasses.fields(key)
        for part in (getattr(key, f.name),)
        if f.name != "space_name"
    }
