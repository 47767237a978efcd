"""The lines of a parameter file that say where its values come from."""

from __future__ import annotations

import re

from syrupy.assertion import SnapshotAssertion

from autotune.config.app import App
from autotune.config.cluster import Cluster
from autotune.publish.evidence_lines import Ends, file_evidence, gain_words
from autotune.space import Setting
from autotune.targets.target import Target
from runner.mpi.library import Library


def test_a_gain_with_its_interval(snapshot: SnapshotAssertion) -> None:
    each: list[Ends | None] = [(0.05, 0.11), (0.05, None), (None, 0.11), None]
    assert [gain_words(0.08, ends) for ends in each] == snapshot
    assert not any(re.search("[0-9]", gain_words(None, ends)) for ends in each)


def test_what_was_not_run_names_no_place(snapshot: SnapshotAssertion) -> None:
    target = Target(
        app=App(name="cg", command=("cg",)),
        input=None,
        ranks=4,
        cluster=Cluster(name="here"),
        library=Library("openmpi", "5.0", "", "mpirun"),
        cores=4,
    )
    setting = Setting({"btl_sm_eager_limit": 8192})
    lines = file_evidence(setting, ["said"], target, "abc")
    assert lines == snapshot
    assert file_evidence(setting, ["said"]) == [lines[0], "said"]
