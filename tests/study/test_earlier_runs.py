"""What a study that goes on knows of its earlier runs, and of those of other workers."""

from __future__ import annotations

from pathlib import Path

from autotune.measurement.idle_parameters import CALLS, TransportFacts, unused_parameters
from autotune.measurement.measured_study import MeasuredStudy
from autotune.measurement.reduction_operations import first_kind
from autotune.measurement.run_history import DEFAULT_PHASE, WARMUP
from autotune.space import DEFAULT, Parameter, Space
from autotune.store import Store
from autotune.store.keys import OPERATIONS
from benchmarks.classwide_simulation import program
from runner.types import TRANSPORT, ReadBack
from tests.contract.store_samples import key, ok

BARRIER = "coll_tuned_barrier_algorithm"
SPACE = Space(
    "s",
    (
        Parameter("pml", ("ob1", "ucx"), "mca"),
        Parameter("coll_tuned_allreduce_algorithm", (3, 4), "mca"),
        Parameter(BARRIER, (1, 2), "mca"),
    ),
)


def test_what_earlier_runs_showed_is_known(tmp_path: Path) -> None:
    """Read-back and counted calls: the next proposals depend on them."""
    with Store.open(tmp_path / "r.db") as store:
        target = program("simulated", held_out=False).target
        study = MeasuredStudy(store, key(), target, SPACE)
        warm_up = ok(
            1.0, mpi_name="openmpi", extra={OPERATIONS: "commute", CALLS: {"allreduce": 2}}
        )
        default = ok(1.0, mpi_name="openmpi", place=study.runner.place)
        default.read_back = {TRANSPORT: ReadBack("in force", "", "ob1: sm", "")}
        worker = study.evaluator_of(study.study, target)
        worker.shared = True
        for order, (phase, record) in enumerate([(WARMUP, warm_up), (DEFAULT_PHASE, default)]):
            store.add_run(study.study.id, None, phase, 0, order, record, setting_key=DEFAULT.key)
        worker.pull()
        later = study.evaluator_of(study.study, target)
        for history in (worker.history, later.history):
            assert first_kind(history) == "commute"
            assert unused_parameters(SPACE, history) == {BARRIER}
            assert TransportFacts.of(SPACE, history.default_records()).defaults == {"pml": "ob1"}
