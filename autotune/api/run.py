"""One guarded run of one setting, stored in the results database."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from autotune.api.target import to_stderr
from autotune.notes import Say
from autotune.space import Setting, Space
from autotune.store import Store
from autotune.study.events import notes_to
from autotune.study.executables import store_executables
from autotune.study.session import MEASURED
from autotune.study.setting_syntax import read_settings
from autotune.study.study_key import begun_key, study_key
from autotune.targets.executables import executables_of
from autotune.targets.target import Target
from runner.mpi.discover import adapter as adapter_for
from runner.supervise import DeferredInterrupts
from runner.types import RunRecord

RUN = "run"
"""The strategy in the key of such a study."""


@dataclass(frozen=True)
class OneRun:
    """One run.  ``space`` has every parameter that the setting names; ``record``: the run."""

    setting: Setting
    space: Space
    record: RunRecord


def run_once(
    setting: str,
    target: Target,
    space: Space,
    store: Store,
    *,
    guard: bool = True,
    tell: Say = to_stderr,
) -> OneRun:
    """Run a program once; ``setting`` in a form of the command line.

    ``tell`` gets notes on the machine lock and on other MPI jobs on the same CPUs. An interrupted
    run ends the program and stores nothing. Raises UsageError for a setting that cannot be used.
    """
    target.require_apart(store.url.database)
    adapter = adapter_for(target.library)
    known, [chosen] = read_settings([setting], space, target.library, store)
    with target.measured(guard, tell) as runner:
        spec = dataclasses.replace(target.spec(known, chosen), watch_windows=True)
        with DeferredInterrupts():  # A run that has ended by itself is stored.
            record = runner.run(spec)
    key = study_key(target, known, adapter, RUN, {}, 0, guard)
    study = store.study(begun_key(store, key, target, notes_to(tell)))
    store_executables(store, study.id, executables_of(record, target.program))
    launched = known.launched(chosen)
    store.add_run(study.id, None, RUN, 0, 0, record, setting_key=chosen.key, launched=launched)
    store.set_result(study.id, MEASURED if record.valid else "failed", None)
    return OneRun(chosen, known, record)
