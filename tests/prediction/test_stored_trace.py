"""Traced features in the results database, and the search that begins with them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from autotune.api.features import stored_features
from autotune.store import Store
from autotune.targets.executables import ExecutableFile
from runner.mpi.library import Library
from tests.cli.conftest import Cli
from tests.contract.store_samples import key
from tests.mpis import PING_PONG, built
from tests.prediction.family import traced


def test_the_last_trace_of_a_program_is_kept(tmp_path: Path) -> None:
    with Store.open(tmp_path / "r.db") as store:
        assert store.trace_features(key()) is None
        for size in (64, 4096):
            store.keep_trace(key(), traced(size).to_json())
        assert store.trace_features(key()) == traced(4096).to_json()
        # What is measured of the program, and how it is searched, does not matter; ranks do.
        assert store.trace_features(key(seed=9, strategy="ga")) == traced(4096).to_json()
        assert store.trace_features(key(ranks=64)) is None


def test_a_trace_of_other_executables_is_not_used(tmp_path: Path) -> None:
    program = tmp_path / "solver"
    program.write_bytes(b"one")
    digest = hashlib.sha256(b"one").hexdigest()
    with Store.open(tmp_path / "r.db") as store:
        rows = [ExecutableFile(str(program), digest).to_json()]
        store.keep_trace(key(), traced(64).to_json() | {"executables": rows})
        found = stored_features(store, key())
        assert found is not None
        assert found.to_json() == traced(64).to_json()
        program.write_bytes(b"two")
        assert stored_features(store, key()) is None


@pytest.mark.mpi
def test_a_search_begins_with_the_prediction_for_a_stored_trace(
    cli: Cli, open_mpi: Library, compiler: str, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(work / "data"))
    # Always the same figure: nothing is to be proven when the search has ended.
    figure = PING_PONG.replace('"time %g s\\n", MPI_Wtime() - start', '"seconds 0.5\\n"')
    built(open_mpi, work, figure)
    program = ("-n", "2", "--store", "r.db", "--no-guard", "--metric", "seconds ([0-9.]+)")
    program += ("--", "./program")
    search = ("search", "--strategy", "random", "--trials", "1")
    without = cli(*search, "--seed", "1", *program)
    assert without.code == 0, without.text
    assert "predicted" not in without.text
    found = cli("features", "-o", "f.json", *program)
    assert found.code == 0, found.text
    began = cli(*search, "--seed", "2", *program)
    assert began.code == 0, began.text
    assert "predicted" in began.err
    # It stays with what it began with; a study without it goes on without.
    for seed, trials in (("1", "2"), ("2", "1")):
        again = cli(*search[:-1], trials, "--seed", seed, *program)
        assert again.code == 0, again.text
        assert "predicted" not in again.text
    with Store.open("r.db") as store:
        studies = {one.seed: one.id for one in store.studies()}
        before, after = (store.stored_document(studies[seed], "warm-start") for seed in (1, 2))
        first = store.trials(studies[2])[0].setting
    assert before == {"settings": []}
    assert after is not None
    assert after["settings"][0] == first
