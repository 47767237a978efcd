"""Counts and features that no run made."""

from __future__ import annotations

from runner.trace import Features
from runner.trace.compute import feature_values
from runner.trace.counts import RankCounts
from runner.trace.schema import SIZE_BINS


def rank_counts(
    rank: int, size: int, to: dict[int, tuple[int, int]] | None = None, wall_ns: int = 10**9
) -> RankCounts:
    """A rank that sent ``{receiver: (messages, bytes)}`` and did nothing else."""
    counts = RankCounts(rank, size, "node", wall_ns, to=to or {})
    for messages, sent in counts.to.values():
        counts.ops["send"].calls += messages
        counts.ops["send"].bytes += sent
        counts.p2p_sizes[min((sent // messages).bit_length(), SIZE_BINS - 1)] += messages
    return counts


def features(values: dict[str, float] | None = None) -> Features:
    """A valid features value with two ranks, some values replaced."""
    ranks = [rank_counts(0, 2, {1: (3, 24)}), rank_counts(1, 2)]
    return Features(
        values=feature_values(ranks, 2) | (values or {}),
        argv=("./program", "input"),
        cwd="/home/user",
        ranks=2,
        nodes=1,
        cores=2,
        mpi_name="openmpi",
        mpi_version="5.0.11",
        machine={"fingerprint": "0123", "cpu_model": "a processor", "hostname": "node"},
        wall_s=1.5,
    )
