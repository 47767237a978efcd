"""The features of a program: names, units and definitions.

A change of a name, a definition or the order needs a new schema version, because models are trained
on them. Source: Pellegrini, section 4.6. The thesis gives 14 of its 19 features; the other five of
:data:`THESIS_NAMES` are our own additions in the same spirit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SCHEMA = "autotune-features-1"

SIZE_BINS = 26
"""Bins of a message-size histogram: 0 bytes; 2^k to 2^(k+1)-1 bytes for k = 0 to 23; the rest."""

COLLECTIVES = (
    "bcast",
    "scatter",
    "reduce",
    "gather",
    "allgather",
    "allreduce",
    "alltoall",
    "reduce_scatter",
    "scan",
    "neighbor",
)
"""Collective operations that are counted separately, with their v, w and non-blocking forms."""


@dataclass(frozen=True)
class FeatureSpec:
    """One feature.

    ``kind``: ``count`` features are equal in every run with the same communication; ``time``
    features are measured. ``scale`` is ``log2`` if distances use log2(1 + x), because values span
    orders of magnitude.
    """

    name: str
    unit: str
    definition: str
    kind: Literal["count", "time"]
    scale: Literal["linear", "log2"]
    group: Literal["thesis", "extra", "collective", "histogram"]
    largest: float | None = None
    """The greatest possible value (1 for shares)."""

    @property
    def is_count(self) -> bool:
        return self.kind == "count"


def _size(name: str, unit: str, words: str, group: Literal["thesis", "extra"]) -> FeatureSpec:
    return FeatureSpec(name, unit, words, "count", "log2", group)


def _share(
    name: str, words: str, group: Literal["thesis", "extra"], kind: Literal["count", "time"]
) -> FeatureSpec:
    return FeatureSpec(name, "1", words, kind, "linear", group, 1.0)


def _pattern(name: str, words: str) -> tuple[FeatureSpec, FeatureSpec]:
    return (
        _size(
            f"{name}_comm_size",
            "ranks",
            f"mean size of the communicator over all calls of {words}",
            "thesis",
        ),
        _size(
            f"{name}_bytes",
            "bytes",
            f"mean over the same calls of the bytes that the calling rank hands in: {words}",
            "thesis",
        ),
    )


_ONE_TO_N = "Bcast, Scatter, Scatterv"
_N_TO_ONE = "Reduce, Gather, Gatherv"
_N_TO_N = "Alltoall, Allreduce, Allgather, Reduce_scatter, Scan and their variants"
_OF_COMM = "of the communication time (sum over ranks)"

_THESIS = (
    _size(
        "p2p_receivers",
        "ranks",
        "distinct receivers of a rank, mean over ranks weighted by the messages they send "
        "(Pellegrini F1)",
        "thesis",
    ),
    _size(
        "p2p_distance",
        "ranks",
        "absolute difference of the ranks in MPI_COMM_WORLD of sender and receiver, mean over "
        "messages (Pellegrini F2)",
        "thesis",
    ),
    _size("p2p_bytes", "bytes", "mean size of a point-to-point message (Pellegrini F3)", "thesis"),
    *_pattern("one_to_n", _ONE_TO_N),
    *_pattern("n_to_one", _N_TO_ONE),
    *_pattern("n_to_n", _N_TO_N),
    FeatureSpec(
        "comm_to_comp",
        "1",
        "communication time / computation time (sums over ranks); computation is the time between "
        "Init and Finalize outside MPI calls; 1000 at most (Pellegrini F10)",
        "time",
        "log2",
        "thesis",
        1000.0,
    ),
    _share(
        "wait_share", f"share of Wait*, Test*, Probe* {_OF_COMM} (Pellegrini F11)", "thesis", "time"
    ),
    _share(
        "sync_share", f"share of Barrier, Ibarrier {_OF_COMM} (Pellegrini F12)", "thesis", "time"
    ),
    _share(
        "p2p_share",
        f"share of point-to-point calls except those of wait_share {_OF_COMM} (Pellegrini F13)",
        "thesis",
        "time",
    ),
    _share(
        "coll_share",
        f"share of collectives other than Barrier {_OF_COMM} (Pellegrini F14)",
        "thesis",
        "time",
    ),
    _share("one_to_n_share", f"share of {_ONE_TO_N} {_OF_COMM}", "thesis", "time"),
    _share("n_to_one_share", f"share of {_N_TO_ONE} {_OF_COMM}", "thesis", "time"),
    _share("n_to_n_share", f"share of {_N_TO_N} {_OF_COMM}", "thesis", "time"),
    _size("p2p_messages", "messages/rank", "point-to-point messages sent, mean of ranks", "thesis"),
    _size("ranks", "ranks", "size of MPI_COMM_WORLD", "thesis"),
)

_EXTRA = (
    FeatureSpec(
        "ranks_per_core",
        "ranks/core",
        "ranks / cores that the launch may use",
        "count",
        "log2",
        "extra",
    ),
    _size("ranks_per_node", "ranks/node", "ranks / nodes (host names) they ran on", "extra"),
    _size("p2p_neighbours", "ranks", "distinct receivers of a rank, plain mean of ranks", "extra"),
    _size("p2p_volume", "bytes/rank", "bytes of point-to-point messages, mean of ranks", "extra"),
    _size("coll_calls", "calls/rank", "collectives except Barrier, mean of ranks", "extra"),
    _size("coll_bytes", "bytes", "mean bytes that a rank hands to one of these calls", "extra"),
    _size("barriers", "calls/rank", "Barrier and Ibarrier, mean of ranks", "extra"),
    _size("rma_calls", "calls/rank", "Put, Get, Accumulate and their variants", "extra"),
    _share(
        "nonblocking_p2p",
        "share of messages sent by Isend and its kin or by a persistent request",
        "extra",
        "count",
    ),
    _share(
        "nonblocking_coll", "share of non-blocking calls among the collectives", "extra", "count"
    ),
    _share("comm_fraction", "communication time / time from Init to Finalize", "extra", "time"),
    _share(
        "other_share",
        f"share of communicator management and one-sided calls {_OF_COMM}",
        "extra",
        "time",
    ),
    FeatureSpec(
        "comm_imbalance",
        "1",
        "largest communication time of a rank / mean of ranks; 1 where there is none",
        "time",
        "linear",
        "extra",
    ),
    FeatureSpec(
        "calls_per_s", "calls/s", "traced MPI calls of a rank per second", "time", "log2", "extra"
    ),
    FeatureSpec(
        "messages_per_s",
        "messages/s",
        "point-to-point messages of a rank per second",
        "time",
        "log2",
        "extra",
    ),
    FeatureSpec(
        "bytes_per_s",
        "bytes/s",
        "bytes that a rank sends or hands to collectives per second",
        "time",
        "log2",
        "extra",
    ),
)


def _collective(name: str) -> tuple[FeatureSpec, FeatureSpec]:
    words = "neighbourhood collectives" if name == "neighbor" else name.capitalize()
    return (
        FeatureSpec(
            f"{name}_calls",
            "calls/rank",
            f"calls of {words} (all variants), mean of ranks",
            "count",
            "log2",
            "collective",
        ),
        FeatureSpec(
            f"{name}_bytes",
            "bytes",
            f"mean bytes that a rank hands to one call of {words}",
            "count",
            "log2",
            "collective",
        ),
    )


def bin_words(index: int) -> str:
    """The message sizes of a histogram bin, for readers."""
    if index == 0:
        return "of 0 bytes"
    if index == SIZE_BINS - 1:
        return f"of 2^{SIZE_BINS - 2} bytes or more"
    return f"of 2^{index - 1} to 2^{index}-1 bytes"


def _bin(prefix: str, words: str, index: int) -> FeatureSpec:
    name = f"{prefix}_size_zero" if index == 0 else f"{prefix}_size_2e{index - 1:02d}"
    return FeatureSpec(
        name, "1", f"share of {words} {bin_words(index)}", "count", "linear", "histogram", 1.0
    )


FEATURES: tuple[FeatureSpec, ...] = (
    *_THESIS,
    *_EXTRA,
    *(spec for name in COLLECTIVES for spec in _collective(name)),
    *(_bin("p2p", "point-to-point messages", k) for k in range(SIZE_BINS)),
    *(_bin("coll", "collective calls", k) for k in range(SIZE_BINS)),
)
FEATURE_NAMES: tuple[str, ...] = tuple(spec.name for spec in FEATURES)
THESIS_NAMES: tuple[str, ...] = tuple(spec.name for spec in _THESIS)
"""The 19 features of the thesis (Pellegrini, figure 4.6), as far as known."""
COUNT_NAMES: tuple[str, ...] = tuple(spec.name for spec in FEATURES if spec.is_count)
SPECS: dict[str, FeatureSpec] = {spec.name: spec for spec in FEATURES}
