"""The model that is shipped: made from the datasets that are, and of use where they were."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.prediction import evaluate, find_model, training_set
from autotune.prediction.program_effects import COMPOSITION, ProgramEffects
from runner.machine import describe_machine
from tests.cli.conftest import Cli

DATASETS = Path(__file__).parents[2] / "datasets"
SHIPPED = tuple(sorted(place for place in DATASETS.iterdir() if place.is_dir()))
CALIBRATED = tuple(place for place in SHIPPED if (place / "calibration.json").is_file())
"""Those with a calibration."""
EXPERIMENTS = ("grid-thesis-testbed", "explore-thesis-testbed")
"""Not learned from; see docs/results/sources.md.  The model learns from all others."""
LEARNED = tuple(place for place in CALIBRATED if "report" not in place.name)
"""Those from which the effects of programs are learned; the others are for reporting only."""


def test_it_is_made_from_the_recorded_runs() -> None:
    """Whoever changes a dataset trains again: autotune train --from ... -o, see docs."""
    others = [p for p in SHIPPED if p not in CALIBRATED and p.name not in EXPERIMENTS]
    known = training_set(others)
    assert find_model().about.data_hash == known.hash


@pytest.mark.slow
def test_effects_of_programs_are_those_of_the_calibrated_recordings() -> None:
    """Whoever changes one of them learns again: autotune train --model composed -o, see docs.

    In short: ``test_calibrated_dataset.py``.
    """
    learned = training_set(LEARNED)
    assert {e.split for e in learned.examples} == {"design"}
    shipped, found = ProgramEffects.from_package(), ProgramEffects.fit(learned.examples)
    assert shipped.about["data"] == learned.hash
    assert set(shipped.situations) == set(found.situations)
    for situation, one in shipped.situations.items():
        assert one.slope == pytest.approx(found.situations[situation].slope, rel=1e-3)
        assert one.waiting == found.situations[situation].waiting


@pytest.mark.slow
def test_the_cells_for_reporting_are_not_learned_from() -> None:
    """As evaluated: nobody made slower, nothing named where the default is right.

    In short: ``test_calibrated_dataset.py``.
    """
    data = training_set(CALIBRATED)
    held = [e for e in data.examples if e.split == "report"]
    assert len(held) == 61
    found = evaluate(data, "report", (COMPOSITION,))
    assert (found.cells, found.null_cells) == (61, 40)
    rows = {one.method: one for one in found.rows}
    assert rows[COMPOSITION].slower <= 1
    assert rows[COMPOSITION].false <= 1
    assert rows[COMPOSITION].performance >= rows["default"].performance


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
    """Traced between nodes, the network's parameters come first although no testbed is up."""
    answer = cli("predict", str(DATASETS / traced), "--json", "-")
    assert answer.code == 0, answer.err
    told = json.loads(answer.out)
    if named is None:
        assert told["setting"] == {}
    else:
        assert named in told["best_scored"]


@pytest.mark.mpi
def test_nothing_is_named_on_a_machine_that_it_has_not_seen(
    cli: Cli, open_mpi: object, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = str(DATASETS / "explore-testbed/features/tb-mg-W-4.json")
    here = replace(describe_machine(), cpu_model="of a newcomer")
    assert here.fingerprint not in find_model().about.machines
    monkeypatch.setattr("autotune.api.predict.describe_machine", lambda: here)
    answer = cli("predict", place, "--json", "-")
    told = json.loads(answer.out)
    assert told["setting"] == {}
    assert "btl_tcp_eager_limit" in told["best_scored"]
    assert told["chance_of_harm"] is None
    assert " calibrate " in told["unsure"]
    # Whoever names a model wants its answer.
    shipped = Path(__file__).parents[2] / "autotune" / "prediction" / "shipped.json"
    named = json.loads(cli("predict", place, "--model", shipped, "--json", "-").out)
    assert "btl_tcp_eager_limit" in named["setting"]
    assert named["foreign"]


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
