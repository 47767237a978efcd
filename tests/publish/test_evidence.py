"""The lines of a parameter file that say where its values come from."""

from __future__ import annotations

import pytest

from autotune.publish.evidence import Ends, file_evidence, gain_words
from autotune.space import Setting
from autotune.study.target import Target


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
    assert gain_words(None, ends) == "none proven"


def test_what_was_not_run_names_no_place(target: Target) -> None:
    setting = Setting({"btl_sm_eager_limit": 8192})
    first, where, claim = file_evidence(setting, ["said"], target, "abc")
    assert (first, claim) == ("autotune: btl_sm_eager_limit=8192", "said")
    assert where.startswith(f"for {target.app.name} on {target.ranks} ranks, ")
    assert where.endswith(f"machine abc, cluster {target.cluster.name}")
    assert file_evidence(setting, ["said"]) == [first, "said"]
