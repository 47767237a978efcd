"""The study's key, made of target, space and strategy; and keys of studies that began otherwise.

The first part makes the key.

The second part is for a study that was begun on another kind of machine than it is measured on,
such as a login node. A study's key holds the machine. So the first worker on a compute node begins
a study of that node's own, and the study that was begun before, without a trial, refers to it.

The third part is for studies of versions that identified programs in another way. Their keys hold
:func:`~autotune.study.program_identity.former_hash`, which does not cover imports from elsewhere.
Such a study is continued if that hash is the same and the sources that it does not cover are as
they were when the way changed (``former_sources.json``, which never changes).

The last part says which of several figures of one run counts, and warns of a figure that is no time
in seconds.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from functools import lru_cache
from importlib import resources
from typing import Any

from autotune.errors import UsageError
from autotune.notes import Note
from autotune.space import Space
from autotune.store import GUARD, AppInfo, MachineInfo, MpiInfo, Store, StudyKey, StudyRecord
from autotune.store.keys import BEFORE, EXECUTABLES, FRESH_DIR
from autotune.store.model import MOVED
from autotune.study.events import Watcher, silent
from autotune.study.executables import current_key
from autotune.study.result import follow_moved_study
from autotune.study.unchecked import WHOLE
from autotune.targets.metric import objective_name
from autotune.targets.program_identity import (
    file_hash,
    former_hash,
    program_hash,
    uncovered,
)
from autotune.targets.target import Target
from autotune.wording import seconds
from runner.machine import describe_machine
from runner.mpi.base import Adapter
from runner.types import MetricChoice, RunRecord


def study_key(
    target: Target,
    space: Space,
    adapter: Adapter,
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
    inherited = target.inherited(adapter)
    program = target.program
    # Fields at their defaults are left out, so that a field of a later version does not change the
    # keys of old studies.
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
    return target.app.figure if target.objective is None else objective_name(target.objective)


def _added_conditions(target: Target) -> dict[str, Any]:
    """Conditions that a key holds only where they say something."""
    added: dict[str, Any] = {}
    figure = target.app.figure
    if figure is not None:
        # Another reading of numbers makes another study, so that no figures of two readings mix.
        added["numbers"] = WHOLE
        if not figure.startswith("json:"):
            added["metric_choice"] = target.metric_choice
    if target.app.metric_rate is not None:
        added["metric_rate"] = True
    if target.app.verify_absent is not None:
        added["verify_absent"] = target.app.verify_absent
    if target.app.exit_codes != (0,):
        added["exit_codes"] = list(target.app.exit_codes)
    if target.room is not None and target.room.hosts is not None:
        # A hostfile may change while its name stays.
        added["hosts"] = dict(sorted(target.room.hosts.items()))
    if target.library_folders:
        added["library_folders"] = list(target.library_folders)
    if target.commutative_only:
        added["commutative_only"] = True
    if target.stdin is not None:
        added["stdin"] = file_hash(target.stdin)
    if target.before:
        added[BEFORE] = list(target.before)
    if target.fresh_copy:
        added[FRESH_DIR] = target.cwd
    return added


def _parameters_hash(target: Target) -> str:
    """Hash of the library's parameters: two builds of one version may differ in them."""
    names = sorted(target.library.params)
    return hashlib.sha256("\n".join(names).encode()).hexdigest()


_FOLLOWS_NODE = frozenset({"machine", "ranks", "cluster_hash", "space_hash", "conditions"})
"""Parts of a key that depend on the node: its kind and, by default, the number of ranks."""


def require_same_study(store: Store, begun: StudyRecord, own: StudyRecord) -> None:
    """Make sure that a worker whose key gives ``own`` works for ``begun``.

    Raises UsageError if the worker would measure another study.
    """
    measured = follow_moved_study(store, begun)
    if measured.hash == own.hash:
        return
    unlike = measured.key.guarded != own.key.guarded  # A node has no part in this.
    different = {n for n, part in _parts(begun.key).items() if part != _parts(own.key)[n]}
    if (
        unlike
        or measured.id != begun.id
        or store.trials(begun.id)
        or not different <= _FOLLOWS_NODE
    ):
        if own.key.conditions.get(EXECUTABLES) != measured.key.conditions.get(EXECUTABLES):
            raise UsageError(
                f"the program has changed since study {measured.hash[:12]} was begun, and its runs "
                "are not mixed with those of another program; begin a new study: give the command "
                "of the search again",
                code="study.program_changed",
            )
        raise UsageError(
            f"this worker would measure another study than {measured.hash[:12]}: it "
            f"differs in {', '.join(sorted(different))}; start workers on equal nodes, in "
            "the same environment",
            code="worker.other_study",
        )
    store.set_result(begun.id, MOVED, {"to": own.hash})


def _parts(key: StudyKey) -> dict[str, object]:
    """The parts of a key, as far as they count: names and paths only describe."""
    return {
        f.name: getattr(part, "hash", part)
        for f in dataclasses.fields(key)
        for part in (getattr(key, f.name),)
        if f.name != "space_name"
    }


_FILE = "former_sources.json"
_LISTED = 3
DIGITS = 16
"""Number of digits of each source's hash in the file."""
CONTINUED = (
    "this study was begun by an older version, which identified programs in "
    "another way; its program has not changed"
)


def begun_key(store: Store, key: StudyKey, target: Target, watch: Watcher = silent) -> StudyKey:
    """The key under which the study is in the store: ``key``, a former one, or that of a later
    state of its executables (:func:`autotune.study.executables.current_key`).

    ``watch`` is told of a former study and, if it is not continued, of the reason.
    """
    return current_key(store, _stored_key(store, key, target, watch), watch)


def _stored_key(store: Store, key: StudyKey, target: Target, watch: Watcher) -> StudyKey:
    """``key``, or the former one under which the study was begun."""
    if store.has_study(key):
        return key
    former = _with_program(key, former_hash(target.program))
    if former == key or not store.has_study(former):
        return key
    changed = _changed(target)
    if not changed:
        watch(Note("study.former_continued", CONTINUED, {"study": former.hash}))
        return former
    names = ", ".join(changed[:_LISTED])
    more = f" and {len(changed) - _LISTED} more" if len(changed) > _LISTED else ""
    watch(
        Note(
            "study.former_changed",
            f"study {former.hash[:12]} of the same command is not continued: it does not "
            f"identify {names}{more}, which may have changed since",
            {"study": former.hash, "changed": changed},
        )
    )
    return key


def _with_program(key: StudyKey, program_hash: str) -> StudyKey:
    return dataclasses.replace(key, app=dataclasses.replace(key.app, program_hash=program_hash))


def _changed(target: Target) -> list[str]:
    """Sources that the former hash did not cover and that may have changed since."""
    known = _sources()
    return [
        name
        for name, code in uncovered(target.program, target.cwd).items()
        if known.get(name) != code[:DIGITS]
    ]


@lru_cache(maxsize=1)
def _sources() -> dict[str, str]:
    text = (resources.files("autotune.study") / _FILE).read_text(encoding="utf-8")
    return dict(json.loads(text))


def several_note(count: int, rate: bool) -> Note:
    """The message for a run with several figures (``count`` of them) if nobody chose one."""
    option, choice = ("--metric-rate", "smallest") if rate else ("--metric", "largest")
    return Note(
        "metric.several",
        f"{option} matched {count} times in one run (every rank or every step prints "
        f"it); the {choice} value counts, that of the slowest; --metric-choice last, first, sum, "
        "mean, min or max selects another",
        {"matches": count, "choice": choice},
    )


def too_long_note(record: RunRecord, choice: MetricChoice | None) -> Note | None:
    """The message for a figure longer than its run, which is no time in seconds; None for others.

    A sum may be one over ranks.
    """
    figure, wall = record.metric_s, record.wall_s
    most = 1.5 * wall * ((record.world_size or 1) if choice == "sum" else 1)
    no_time = record.metric_rate or bool(record.metric_unit)
    if figure is None or no_time or figure <= most:
        return None
    return Note(
        "metric.no_seconds",
        f"--metric found {figure:g} in a run of {seconds(wall)}. It is read as "
        "seconds, and smaller is better. If it is in ms or us, gains are right and "
        "times are not; a rate (Gflop/s) needs --metric-rate",
        {"figure": figure, "wall_s": wall},
    )


SHORTEST_S = 1e-3
"""A figure below this time in seconds says more of clocks and wake-ups than of parameters."""


def too_short_note(record: RunRecord) -> Note | None:
    """The message for a figure that is a very short time; None for others."""
    figure = record.metric_s
    if figure is None or record.metric_rate or record.metric_unit or figure >= SHORTEST_S:
        return None
    return Note(
        "metric.very_short",
        f"the figure of this run is {seconds(figure)}: clocks and wake-ups of processes count as "
        "much as parameters in it. Let the program do more (steps, repetitions, a larger input)",
        {"figure_s": figure, "shortest_s": SHORTEST_S},
    )
