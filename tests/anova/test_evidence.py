"""Issue 24, point 23: what a proof showed is certain; what no run used is not important."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from autotune.anova.importance import ParameterEvidence, study_evidence
from autotune.prediction.exposure import acting, unused_parameters
from autotune.space import Setting
from autotune.store import Store
from runner.types import ReadBack, RunRecord
from tests.cli.conftest import Cli, cli
from tests.contract.store_samples import key

__all__ = ["cli"]
PING_PONG = """
import os, pathlib, random
from mpi4py import MPI
comm = MPI.COMM_WORLD
tuned = os.environ.get("OMPI_MCA_btl_sm_eager_limit") == "8192"
for _ in range(20):
    if comm.rank == 0:
        comm.send(b"x" * 100, 1)
        comm.recv(source=1)
    else:
        comm.send(comm.recv(source=0), 0)
if comm.rank == 0:
    here = pathlib.Path(__file__).parent / "runs"
    runs = int(here.read_text()) if here.exists() else 0
    here.write_text(str(runs + 1))
    noise = random.Random(runs).uniform(-0.02, 0.02)
    print(f"time {(0.026 if tuned else 0.1) * (1 + noise):.9f}")
"""
SPACE = """
[parameters.btl_sm_eager_limit]
levels = [8192, 16384]
[parameters.btl_sm_max_send_size]
levels = [20000, 30000, 40000, 50000, 60000, 70000, 80000]
[parameters.coll_tuned_barrier_algorithm]
levels = [0, 1, 2, 3, 4, 5, 6]
"""


@pytest.mark.mpi
@pytest.mark.slow
def test_the_proof_of_a_ping_pong_is_certain_and_its_barrier_is_not_there(
    cli: Cli,
    open_mpi: object,
    work: Path,
    quiet: None,
) -> None:
    (work / "program.py").write_text(PING_PONG)
    (work / "space.toml").write_text(SPACE)
    program = ("--ranks", "2", "--", sys.executable, "program.py")
    given = ("--space", "./space.toml", "--metric", "time ([0-9.]+)", "--store", "r.db")
    searched = cli(
        *("search", "--strategy", "exhaustive", "--trials", "20", "--json", "r.json"),
        *given, *program,
    )  # fmt: skip
    assert searched.code == 0, searched.text
    result = json.loads(Path("r.json").read_text())
    assert result["status"] == "recommended"
    assert result["recommended"]["setting"] == {"btl_sm_eager_limit": 8192}

    told = cli("importance", result["study"], "--store", "r.db", "--json", "i.json")
    assert told.code == 0, told.text
    rows = {row["name"]: row for row in json.loads(Path("i.json").read_text())["parameters"]}
    assert rows["btl_sm_eager_limit"]["proven"]
    assert rows["btl_sm_eager_limit"]["certain"]
    assert "coll_tuned_barrier_algorithm" not in rows  # The program has no barrier.
    assert "btl_sm_eager_limit!" in told.out
    assert "! " in told.out, "the mark has a legend"
    assert f"{100 * result['gain']:+.1f} % " in told.out
    # What is not certain has no share beside its interval.
    [shown] = [line for line in told.out.splitlines() if line.startswith("btl_sm_max_send_size ")]
    assert shown.split()[1] == "-"
    assert not any(row.startswith("coll_tuned_barrier_alg") for row in told.out.splitlines())

    traced = cli("features", "-o", "f.json", *program)
    assert traced.code == 0, traced.text
    told = cli("importance", result["study"], "--store", "r.db", "--features", "f.json")
    assert told.code == 0, told.text


RESULT = {
    "unchecked": [],
    "contradictions": [],
    "warnings": [],
    "status": "recommended", "study": "s", "mpi": {"name": "openmpi", "version": "5"},
    "machine": "", "cluster": "", "app": "",
    "ranks": 2, "strategy": "ga", "seed": 0, "finalists": [], "overhead_s": 0.0, "gain": 2.86,
    "metric": {"kind": "wall", "unit": "s"}, "gain_ci95": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("setting", "pruning", "expected"),
    [
        ({"eager": 4}, {"state": "slim", "whole": None}, (("eager",), ())),
        ({"eager": 4, "links": 2}, {"state": "slim", "whole": None}, (("eager", "links"), ())),
        (
            {"eager": 4},
            {"state": "pruned", "whole": {"eager": 4, "idle": 1}, "non_inferior": True},
            (("eager",), ("idle",)),
        ),
        ({"eager": 4, "links": 2}, {"state": "not pruned", "whole": None}, ((), ())),
        ({"eager": 4}, {"state": "not pruned", "whole": None}, (("eager",), ())),
    ],
)
def test_what_a_proof_shows_of_its_parameters(
    tmp_path: Path,
    setting: dict[str, int],
    pruning: dict[str, object],
    expected: tuple[tuple[str, ...], tuple[str, ...]],
) -> None:
    with Store.open(tmp_path / "r.db") as store:
        study = store.study(key())
        rest = {
            "why": "",
            "margin": 0.02,
            "slower_at_most": None,
            "non_inferior": None,
            "blocks": 0,
        }
        result = RESULT | {"recommended": {"setting": setting}, "pruning": rest | pruning}
        store.set_result(study.id, "recommended", result)
        for name, state in (("idle", "inactive"), ("eager", "in force"), ("never", "inactive")):
            back = {name: ReadBack(state, "1")}  # type: ignore[arg-type]
            store.add_run(
                study.id, None, "search", 0, 0, RunRecord("ok", wall_s=1.0, read_back=back)
            )
        seen = study_evidence(store, store.get_study(study.id))
        assert (seen.proven, seen.taken_out) == expected
        assert seen.unused == ("idle", "never")
        assert seen.gain == 2.86
        store.set_result(study.id, "keep_default", result | {"status": "keep_default"})
        assert study_evidence(store, store.get_study(study.id)) == ParameterEvidence(
            unused=seen.unused
        )


def test_a_barrier_is_unused_where_there_was_none() -> None:
    names = ("coll_tuned_barrier_algorithm", "coll_tuned_bcast_algorithm", "btl_sm_eager_limit")
    from runner.trace.schema import COLLECTIVES

    values = dict.fromkeys(
        ("comm_fraction", "p2p_share", "wait_share", "nodes", "ranks", "p2p_distance"), 1.0
    )
    values |= dict.fromkeys(("coll_share", "sync_share", "one_to_n_share"), 0.0)
    values |= dict.fromkeys(("n_to_one_share", "n_to_n_share"), 0.0)
    values |= {f"{name}_{what}": 0.0 for name in COLLECTIVES for what in ("calls", "bytes")}
    assert unused_parameters(names, [values]) == names[:2]
    # What acts on less than 0.5 % is neither proposed nor counted, by one rule.
    rare = values | {"sync_share": 0.004}
    assert unused_parameters(names, [rare]) == names[:2]
    assert acting(Setting({names[0]: 1, names[2]: 512}), rare) == Setting({names[2]: 512})
    with_barrier = values | {"sync_share": 0.3}
    assert unused_parameters(names, [values, with_barrier]) == names[1:2]
