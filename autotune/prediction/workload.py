"""The communication of a traced program as work: its operations, their number, sizes and times.

It comes from the profile in the features. The time of messages is known only in total: it is
divided in proportion to the cost of their calls under the default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from autotune.calibration.wire import NODE
from runner.trace import Features, Profile
from runner.trace.profile import ProfileRow
from runner.trace.schema import COLLECTIVES

Cost = Callable[[str, float], float | None]
"""Microseconds of a calibrated operation at a message size; None if it was not calibrated."""

_SINGLE, _AROUND, _MANY = "pingpong", "exchange", "bw"
_WINDOW = 64.0
"""Messages of one call of the calibrated window (``bw``)."""
_MANY_REQUESTS = 16.0
"""With at least this many requests in one wait, messages go as in a window."""
_PER_RANK = ("alltoall", "reduce_scatter")
"""Collectives whose traced bytes are those for all ranks, while the micro-benchmark's size is for
one."""
_CALIBRATION_OPERATIONS = (
    "barrier",
    *(name for name in COLLECTIVES if name not in ("scan", "neighbor")),
)
_WAITS = ("send", "recv", "wait")
"""Operations of a trace that contain the time of messages."""


@dataclass(frozen=True)
class Work:
    """One operation at one size.

    ``operation`` is one of a calibration and ``size`` its message size in bytes. ``calls`` is the
    number of its calls by a rank, a mean over the ranks; it need not be whole. ``seconds`` is the
    time in them, including waiting, and ``least`` the same without the time by which other ranks
    were quicker: both means over the ranks. ``far``: between nodes; None if the trace does not show
    it.

    Perhaps only some ranks do it, as in a pipeline across nodes: ``ranks_share`` is their share,
    and ``sending`` the seconds in blocking sends of such a rank.
    """

    operation: str
    size: float
    calls: float
    seconds: float
    far: bool | None = None
    least: float = 0.0
    ranks_share: float = 1.0
    sending: float = 0.0


def timed_s(features: Features) -> float:
    """The seconds of which the work is a part: the program's figure, if its communication fits into
    it, else the time from Init to Finalize."""
    figure, profile = features.figure_s, features.profile
    if figure is None or profile is None:
        return features.wall_s
    spent_s = sum(row.seconds for row in profile.rows)
    return figure if spent_s <= figure else max(features.wall_s, spent_s)


def workload(profile: Profile, neighbours: float, cost: Cost) -> list[Work]:
    """The work of a program whose ranks have this number of ``neighbours``.

    Every collective's row has its own time; the time of messages is that of all sends, receives and
    waits.
    """
    work_list: list[Work] = []
    for row in profile.rows:
        if row.operation in _CALIBRATION_OPERATIONS and row.calls and not row.nonblocking:
            least = row.seconds - row.waiting_s
            size = _own_size(row)
            work_list.append(Work(row.operation, size, row.calls, row.seconds, row.far, least))
    waits = [row for row in profile.rows if row.operation == "wait" and row.calls]
    requests = sum(row.bytes for row in waits) / (sum(row.calls for row in waits) or 1.0)
    sends = [row for row in profile.rows if row.operation == "send" and row.calls]
    messages: list[tuple[str, float, float, bool | None]] = []
    blocking: dict[tuple[str, float, bool | None], tuple[float, float]] = {}
    for row in sends:
        size = row.bytes / row.calls
        if not row.nonblocking:
            messages.append((_SINGLE, size, row.calls / 2, row.far))
            part = row.rank_share or 1.0
            blocking[_SINGLE, size, row.far] = part, row.seconds / part
        elif requests >= _MANY_REQUESTS:
            messages.append((_MANY, size, row.calls / _WINDOW, row.far))
        else:
            around = max(1.0, min(neighbours, 2.0))
            messages.append((_AROUND, size, row.calls / around, row.far))
    spent_s = sum(row.seconds for row in profile.rows if row.operation in _WAITS)
    waiting = sum(profile.waiting.get(name, 0.0) for name in _WAITS)
    across = any(far for *_, far in messages)
    parts = _divide_seconds(messages, spent_s, cost, near if across else None)
    active_share = max(1 - waiting / spent_s, 0.0) if spent_s else 0.0
    for work in parts:
        part, sending = blocking.get((work.operation, work.size, work.far), (1.0, 0.0))
        least = work.seconds * active_share
        work_list.append(replace(work, least=least, ranks_share=part, sending=sending))
    return work_list


def near(operation: str, size: float) -> float:
    """Microseconds of messages within a node, roughly: they must not take the time of messages
    between nodes."""
    count = {_MANY: _WINDOW, _SINGLE: 2.0}.get(operation, 1.0)
    return count * 1e6 * (NODE.latency_s + size / NODE.bytes_per_s)


def _own_size(row: ProfileRow) -> float:
    """The message size of a collective by the definition of the micro-benchmarks."""
    if row.operation == "barrier":
        return 0.0
    bytes_each = row.bytes / row.calls
    return bytes_each / max(row.comm_size, 1) if row.operation in _PER_RANK else bytes_each


def _divide_seconds(
    calls: Iterable[tuple[str, float, float, bool | None]],
    seconds: float,
    cost: Cost,
    inside: Cost | None = None,
) -> list[Work]:
    """Work with the seconds divided in proportion to the cost of the calls; ``inside`` is the cost
    within a node, if it differs."""
    priced_calls = [
        (*one, (inside if inside and one[3] is False else cost)(one[0], one[1]))
        for one in calls
        if one[2] > 0
    ]
    costs = [n * us / 1e6 if us is not None else 0.0 for _, _, n, _, us in priced_calls]
    whole = sum(costs)
    if not whole or not seconds:
        return []
    return [
        Work(name, size, n, seconds * own / whole, far)
        for (name, size, n, far, _), own in zip(priced_calls, costs, strict=True)
        if own
    ]
