"""The model that is shipped: made from the datasets that are, and of use where they were."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autotune.prediction import find_model, training_set
from autotune.prediction.program_effects import ProgramEffects
from tests.cli.conftest import Cli

DATASETS = Path(__file__).parents[2] / "datasets"
SHIPPED = tuple(sorted(place for place in DATASETS.iterdir() if place.is_dir()))
CALIBRATED = tuple(place for place in SHIPPED if (place / "calibration.json").is_file())
"""Those from which the effects of programs are learned; the model learns from all others."""


def test_it_is_made_from_the_recorded_runs() -> None:
    """Whoever changes a dataset trains again: autotune train --from ... -o, see docs."""
    known = training_set([place for place in SHIPPED if place not in CALIBRATED])
    assert find_model().about.data_hash == known.hash


def test_effects_of_programs_are_those_of_the_calibrated_recordings() -> None:
    """Whoever changes one of them learns again: autotune train --model composed -o, see docs."""
    known = training_set(CALIBRATED)
    shipped, found = ProgramEffects.shipped(), ProgramEffects.fit(known.examples)
    assert shipped.about["data"] == known.hash
    assert set(shipped.situations) == set(found.situations)
    for situation, one in shipped.situations.items():
        assert one.slope == pytest.approx(found.situations[situation].slope, rel=1e-3)
        assert one.waiting == found.situations[situation].waiting


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("traced", "named"),
    [
        ("explore-testbed/features/tb-mg-W-4.json", "btl_tcp_eager_limit"),
        ("explore-testbed/features/tb-jacobi3d-2.json", "btl_tcp_eager_limit"),
        ("grid-node/features/ep-S.json", None),
    ],
)
def test_programs_it_knows(
    cli: Cli, open_mpi: object, work: Path, traced: str, named: str | None
) -> None:
    """Traced between nodes, the network's parameters are named although no testbed is up."""
    answer = cli("predict", str(DATASETS / traced), "--json", "-")
    assert answer.code == 0, answer.err
    setting = json.loads(answer.out)["setting"]
    assert (named in setting) if named else setting == {}


@pytest.mark.mpi
def test_a_cluster_that_is_not_known_here_is_this_machine(
    cli: Cli, open_mpi: object, work: Path
) -> None:
    features = json.loads((DATASETS / "explore-testbed/features/tb-mg-W-4.json").read_text())
    for name in ("elsewhere", "./mine.toml", "../../etc/passwd"):
        Path("f.json").write_text(json.dumps(features | {"cluster": name}))
        answer = cli("predict", "f.json", "--json", "-")
        assert answer.code == 0, answer.err
        assert not any("tcp" in p for p in json.loads(answer.out)["setting"])
