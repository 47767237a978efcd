"""What makes a study this study: its key, from the target, the space and the strategy."""

from __future__ import annotations

import hashlib
from typing import Any

from autotune.space import Space
from autotune.store import GUARD, AppInfo, MachineInfo, MpiInfo, StudyKey
from autotune.study.objective import objective_name
from autotune.study.programs import file_hash, program_hash
from autotune.study.target import Target
from runner.machine import describe
from runner.mpi.base import Adapter


def study_key(
    target: Target,
    space: Space,
    adapter: Adapter,
    strategy: str,
    options: dict[str, Any],
    seed: int,
    guard: bool = True,
) -> StudyKey:
    """The key of a search; equal keys are one study, whatever their budgets (docs/design.md).

    Runs without the guard (``guard`` False) are a study of their own: no proof rests on them.
    """
    machine = describe()
    inherited = target.inherited(adapter)
    program = target.program
    # Without what is at its default: a field that a later version adds leaves old studies known.
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
        inherited=inherited,
        conditions={
            "clean_env": target.clean_env,
            "launch_options": list(target.options),
            "placement": dict(target.placement),
            "timeout_s": target.timeout_s,
            "oversubscribed": target.oversubscribed,
            **_added_conditions(target),
            **({} if guard else {GUARD: False}),
        },
        stdin=target.stdin or "",
    )


def _figure(target: Target) -> str | None:
    return target.app.metric if target.objective is None else objective_name(target.objective)


def _added_conditions(target: Target) -> dict[str, Any]:
    """What a key holds only where it says something: studies of before know nothing of it.

    Until there was a choice, the last figure of a run counted.
    """
    added: dict[str, Any] = {}
    chosen = target.app.metric is not None and not target.app.metric.startswith("json:")
    if chosen and target.metric_choice != "last":
        added["metric_choice"] = target.metric_choice
    if target.stdin is not None:
        added["stdin"] = file_hash(target.stdin)
    return added


def _parameters_hash(target: Target) -> str:
    """Two builds of one version that differ in what can be set are two libraries."""
    names = sorted(target.library.params)
    return hashlib.sha256("\n".join(names).encode()).hexdigest()
