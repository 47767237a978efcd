"""Turns the counts of all ranks into feature values (Pellegrini 1.9.3 and 1.16).

The definitions are in schema.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from runner.trace.counts import OpCounts, RankCounts
from runner.trace.schema import COLLECTIVES, FEATURE_NAMES

PATTERNS = {
    "one_to_n": ("bcast", "scatter"),
    "n_to_one": ("reduce", "gather"),
    "n_to_n": ("allgather", "allreduce", "alltoall", "reduce_scatter", "scan"),
}
_LARGEST_RATIO = 1000.0


def feature_values(ranks: Sequence[RankCounts], cores: int) -> dict[str, float]:
    """Every feature in schema order; ``cores`` is the number that the launch may use."""
    values = {
        **_p2p(ranks),
        **_patterns(ranks),
        **_times(ranks),
        **_places(ranks, cores),
        **_collectives(ranks),
        **_rates(ranks),
        **_sizes("p2p", [r.p2p_sizes for r in ranks]),
        **_sizes("coll", [r.coll_sizes for r in ranks]),
    }
    return {name: float(values[name]) for name in FEATURE_NAMES}


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _total(ranks: Iterable[RankCounts], figure: Callable[[RankCounts], int]) -> int:
    return sum(figure(rank) for rank in ranks)


def _op(ranks: Iterable[RankCounts], *names: str) -> OpCounts:
    """The sum of some operations over all ranks."""
    total = OpCounts()
    for rank in ranks:
        for name in names:
            op = rank.ops[name]
            total.calls += op.calls
            total.nonblocking += op.nonblocking
            total.bytes += op.bytes
            total.comm_sizes += op.comm_sizes
            total.ns += op.ns
    return total


def _p2p(ranks: Sequence[RankCounts]) -> dict[str, float]:
    messages = _total(ranks, lambda r: r.messages)
    inside = messages - _total(ranks, lambda r: r.outside)
    receivers = sum(sum(n for n, _ in r.to.values()) * len(r.to) for r in ranks)
    distance = sum(n * abs(r.rank - partner) for r in ranks for partner, (n, _) in r.to.items())
    send = _op(ranks, "send")
    return {
        "p2p_receivers": _ratio(receivers, inside),
        "p2p_distance": _ratio(distance, inside),
        "p2p_bytes": _ratio(send.bytes, messages),
        "p2p_messages": messages / len(ranks),
        "p2p_neighbours": sum(len(r.to) for r in ranks) / len(ranks),
        "p2p_volume": send.bytes / len(ranks),
        "nonblocking_p2p": _ratio(send.nonblocking, messages),
        "rma_calls": _op(ranks, "rma").calls / len(ranks),
    }


def _patterns(ranks: Sequence[RankCounts]) -> dict[str, float]:
    values = {}
    for pattern, names in PATTERNS.items():
        op = _op(ranks, *names)
        values[f"{pattern}_comm_size"] = _ratio(op.comm_sizes, op.calls)
        values[f"{pattern}_bytes"] = _ratio(op.bytes, op.calls)
    return values


def _collectives(ranks: Sequence[RankCounts]) -> dict[str, float]:
    every, barrier = _op(ranks, *COLLECTIVES), _op(ranks, "barrier")
    values = {
        "coll_calls": every.calls / len(ranks),
        "coll_bytes": _ratio(every.bytes, every.calls),
        "barriers": barrier.calls / len(ranks),
        "nonblocking_coll": _ratio(
            every.nonblocking + barrier.nonblocking, every.calls + barrier.calls
        ),
    }
    for name in COLLECTIVES:
        op = _op(ranks, name)
        values[f"{name}_calls"] = op.calls / len(ranks)
        values[f"{name}_bytes"] = _ratio(op.bytes, op.calls)
    return values


def communication_ns(rank: RankCounts) -> int:
    """Nanoseconds in MPI calls, at most the wall time.

    With several threads inside MPI at once the sum could exceed the process's wall time.
    """
    return min(sum(op.ns for op in rank.ops.values()), rank.wall_ns)


def _times(ranks: Sequence[RankCounts]) -> dict[str, float]:
    times_ns = [communication_ns(r) for r in ranks]
    inside, wall = sum(times_ns), _total(ranks, lambda r: r.wall_ns)
    of_calls = sum(op.ns for r in ranks for op in r.ops.values())

    def share(*names: str) -> float:
        return _ratio(_op(ranks, *names).ns, of_calls)

    return {
        "comm_to_comp": min(_ratio(inside, max(wall - inside, 1)), _LARGEST_RATIO),
        "comm_fraction": _ratio(inside, wall),
        "comm_imbalance": max(times_ns) * len(ranks) / inside if inside else 1.0,
        "wait_share": share("wait"),
        "sync_share": share("barrier"),
        "p2p_share": share("send", "recv"),
        "coll_share": share(*COLLECTIVES),
        "other_share": share("rma", "other"),
        **{f"{pattern}_share": share(*names) for pattern, names in PATTERNS.items()},
    }


def _places(ranks: Sequence[RankCounts], cores: int) -> dict[str, float]:
    return {
        "ranks": len(ranks),
        "ranks_per_core": len(ranks) / cores,
        "ranks_per_node": len(ranks) / nodes(ranks),
    }


def nodes(ranks: Sequence[RankCounts]) -> int:
    """The number of nodes that the ranks ran on: distinct host names."""
    return len({rank.host for rank in ranks})


def _rates(ranks: Sequence[RankCounts]) -> dict[str, float]:
    seconds = _total(ranks, lambda r: r.wall_ns) / 1e9
    every = _op(ranks, *ranks[0].ops)
    return {
        "calls_per_s": _ratio(every.calls, seconds),
        "messages_per_s": _ratio(_total(ranks, lambda r: r.messages), seconds),
        "bytes_per_s": _ratio(every.bytes, seconds),
    }


def _sizes(prefix: str, histograms: Sequence[list[int]]) -> dict[str, float]:
    sums = [sum(column) for column in zip(*histograms, strict=True)]
    names = [name for name in FEATURE_NAMES if name.startswith(f"{prefix}_size_")]
    return {name: _ratio(n, sum(sums)) for name, n in zip(names, sums, strict=True)}
