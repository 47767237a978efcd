"""One guarded run of one setting, stored in the results database."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from pydantic import Field

from autotune.api.target import to_stderr
from autotune.document import Document, Omitted
from autotune.json_types import ValuesByName
from autotune.measurement.events import notes_to
from autotune.measurement.measured_study import WITHOUT_RESULT
from autotune.measurement.study_executables import current_key, store_executables
from autotune.measurement.study_key import study_key
from autotune.notes import Say
from autotune.space import Setting, Space
from autotune.store import Store, StudyKey
from autotune.targets.executables import executables_of
from autotune.targets.figures import FigureProposal
from autotune.targets.rows import MpiChoiceRow, ProposedFigure
from autotune.targets.setting_syntax import read_settings
from autotune.targets.target import Target
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


@dataclass(frozen=True)
class PreparedRun:
    """One run that is prepared: its setting, the space with all its names, and its study's key."""

    setting: Setting
    space: Space
    target: Target
    store: Store
    key: StudyKey
    guard: bool

    def measure(self, tell: Say) -> OneRun:
        """Run the program and store the run; an interrupted run stores nothing.

        ``tell`` gets notes on the machine lock and on other MPI jobs on the same CPUs.
        """
        target, store = self.target, self.store
        with target.locked_runner(self.guard, tell) as runner:
            spec = dataclasses.replace(target.spec(self.space, self.setting), watch_windows=True)
            with DeferredInterrupts():  # A run that has ended by itself is stored.
                record = runner.run(spec)
        study = store.study(self.key).id
        store_executables(store, study, executables_of(record, target.program))
        groups = self.space.launched(self.setting)
        store.add_run(study, None, RUN, 0, 0, record, setting_key=self.setting.key, launched=groups)
        store.set_result(study, WITHOUT_RESULT if record.valid else "failed", None)
        return OneRun(self.setting, self.space, record)


def one_run(
    setting: str,
    target: Target,
    space: Space,
    store: Store,
    *,
    guard: bool = True,
    tell: Say = to_stderr,
) -> PreparedRun:
    """Prepare one run of a program; ``setting`` in a form of the command line.

    Raises UsageError for a setting that cannot be used.
    """
    target.refuse_store_inside(store.url.database)
    whole_space, [run_setting] = read_settings([setting], space, target.library, store)
    key = study_key(target, whole_space, RUN, {}, 0, guard)
    current = current_key(store, key, notes_to(tell))
    return PreparedRun(run_setting, whole_space, target, store, current, guard)


class RunDocument(Document):
    """A run of one setting."""

    setting: ValuesByName
    """Values by parameter; {} is the default."""
    run: RunRecord = Field(json_schema_extra={"properties": {"printed": {"type": "null"}}})
    """The run, without the lines that the program printed."""
    mpi_choice: Omitted[MpiChoiceRow]
    """Why this MPI library was taken."""
    proposed_metric: ProposedFigure | None
    """The figure that the program prints, while the wall time counts; null if none is certain."""


def run_document(
    run: OneRun, proposal: FigureProposal | None, choice: MpiChoiceRow | None
) -> RunDocument:
    """The run as a document; ``proposal``: the figure that the program prints.

    ``choice`` says why the MPI library was taken.
    """
    figure = proposal if run.record.metric_s is None else None
    return RunDocument(
        setting=run.setting.to_json(),
        mpi_choice=choice,
        run=dataclasses.replace(run.record, printed=None),
        proposed_metric=None if figure is None else figure.to_json(),
    )
