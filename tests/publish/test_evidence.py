"""The lines of a parameter file that say where its values come from."""

from __future__ import annotations

import re

import pytest
from syrupy.assertion import SnapshotAssertion

from autotune.config.app import App
from autotune.config.cluster import Cluster
from autotune.publish.tune_file import Ends, file_evidence, gain_words
from autotune.space import Setting
from autotune.targets.target import Target
from runner.mpi.library import Library


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ((0.05, 0.11), "+8.0 % (95 % interval +5.0 to +11.0 %)"),
        ((0.05, None), "+8.0 % (95 % interval +5.0 % to open)"),
        ((None, 0.11), "+8.0 % (95 % interval open to +11.0 %)"),
        (None, "+8.0 %"),
    ],
)
def test_a_gain_with_its_interval(ends: Ends | None, words: str) -> None:
    assert gain_words(0.08, ends) == words
    assert not re.search("[0-9]", gain_words(None, ends))


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
