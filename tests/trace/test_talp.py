"""Efficiencies in TALP's form: the identities of POP hold, and idle ranks are seen."""

from __future__ import annotations

import pytest

from runner.trace.counts import OpCounts, RankCounts
from runner.trace.talp import talp_document


def ranks(*places: tuple[str, int]) -> list[RankCounts]:
    """Ranks on hosts with so many of 1000 ns inside MPI."""
    made = [RankCounts(n, len(places), host, 1000) for n, (host, _) in enumerate(places)]
    for rank, (_, inside) in zip(made, places, strict=True):
        rank.ops["send"] = OpCounts(calls=1, ns=inside)
    return made


def test_efficiencies_are_factors_of_each_other() -> None:
    document = talp_document(
        ranks(("a", 200), ("a", 400), ("b", 600), ("b", 600)), "2026-11-27T12:00:00+00:00"
    )
    metrics = document["Application"]["Global"]
    assert metrics["parallelEfficiency"] == pytest.approx(0.55)
    assert metrics["mpiLoadBalance"] == pytest.approx(0.55 / 0.8)
    for whole, *parts in (
        ("parallelEfficiency", "mpiLoadBalance", "mpiCommunicationEfficiency"),
        ("mpiLoadBalance", "mpiLoadBalanceIn", "mpiLoadBalanceOut"),
    ):
        product = metrics[parts[0]] * metrics[parts[1]]
        assert metrics[whole] == pytest.approx(product)
    assert metrics["usefulTime"] + metrics["mpiTime"] == 4 * metrics["elapsedTime"]
    assert document["resources"] == {"numCpus": 4, "numNodes": 2, "numMpiRanks": 4}


def test_a_run_that_only_communicates_has_no_efficiency() -> None:
    metrics = talp_document(ranks(("a", 1000)), "")["Application"]["Global"]
    assert metrics["parallelEfficiency"] == 0
