"""Efficiencies of a traced run in the JSON of TALP (DLB), which talp-pages reads.

TALP calls the time outside of MPI useful.  Its efficiencies are those of POP: load balance and
communication efficiency, whose product is the parallel efficiency
(https://pop-coe.eu/node/69; the keys are those of DLB 3.6).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runner.trace.compute import communication_ns
from runner.trace.counts import RankCounts

_ABSENT = ("cycles", "instructions", "ompLoadImbalanceTime", "ompSchedulingTime")
"""Figures of hardware counters and of OpenMP, which the trace does not count."""


def talp_document(ranks: Sequence[RankCounts], started_at: str) -> dict[str, Any]:
    """The document of a run with at least one rank; ``started_at`` is ISO 8601.

    Times are in nanoseconds, added over the ranks, except ``elapsedTime``.
    """
    elapsed = max(rank.wall_ns for rank in ranks)
    useful = [max(rank.wall_ns - communication_ns(rank), 0) for rank in ranks]
    by_host: dict[str, list[int]] = {}
    for rank, own in zip(ranks, useful, strict=True):
        by_host.setdefault(rank.host, []).append(own)
    mean = sum(useful) / len(useful)
    fullest = max(sum(own) / len(own) for own in by_host.values())
    balance, communication = _part(mean, max(useful)), _part(max(useful), elapsed)
    efficiency = _part(mean, elapsed)
    metrics = {
        **dict.fromkeys(_ABSENT, 0),
        "numCpus": len(ranks),
        "numNodes": len(by_host),
        "avgCpus": float(len(ranks)),
        "numMpiRanks": len(ranks),
        "numGpus": 0,
        "elapsedTime": elapsed,
        "usefulTime": sum(useful),
        "mpiTime": sum(communication_ns(rank) for rank in ranks),
        "parallelEfficiency": efficiency,
        "mpiParallelEfficiency": efficiency,
        "mpiCommunicationEfficiency": communication,
        "mpiLoadBalance": balance,
        "mpiLoadBalanceIn": _part(fullest, max(useful)),
        "mpiLoadBalanceOut": _part(mean, fullest),
        "ompParallelEfficiency": 1.0,
        "ompLoadBalance": 1.0,
        "ompSchedulingEfficiency": 1.0,
        "ompSerializationEfficiency": 1.0,
    }
    return {
        "dlbVersion": "3.6",
        "timestamp": started_at,
        "resources": {"numCpus": len(ranks), "numNodes": len(by_host), "numMpiRanks": len(ranks)},
        "Application": {"Global": metrics},
    }


def _part(small: float, great: float) -> float:
    return small / great if great else 0.0
