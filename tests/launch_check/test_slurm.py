"""Lines of srun under a real Slurm: ranks that are alone, and the line with which they are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.check.gather import Start, gather
from autotune.check.registry import examine
from tests.mpis import built, on_path
from tests.servers import missing_for_slurm, slurm

WHY = missing_for_slurm()


@pytest.mark.slow
@pytest.mark.skipif(WHY is not None, reason=str(WHY))
def test_the_right_line_of_srun_makes_one_world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = built(on_path("mpich-4"), tmp_path)
    with slurm() as environment:
        monkeypatch.setenv("SLURM_CONF", environment["SLURM_CONF"])
        facts = gather(["srun", "-n", "2", str(program)], start=Start.PROGRAM)
        findings = {finding.code: finding for finding in examine(facts)}
        assert "worlds.singletons" in findings
        right = findings["worlds.singletons"].corrected_line
        assert right is not None
        facts = gather(right, start=Start.PROGRAM)
        assert [rank.world_size for rank in facts.ranks] == [2, 2]
        assert "worlds.singletons" not in {finding.code for finding in examine(facts)}
