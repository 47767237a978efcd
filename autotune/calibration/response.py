"""Response tables: the responses of a machine's primitives to settings, and their calibration.

A table belongs to one place: a number of ranks on a number of nodes. It has the time of each
operation at each message size under the default, and for each measured setting the log ratio of its
time to that, both with their noise.
"""

from __future__ import annotations

import bisect
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, PlainSerializer, PlainValidator, computed_field
from typing_extensions import TypedDict

from autotune.artifacts import ArtifactStore, content_id
from autotune.calibration.points import Point
from autotune.document import Omitted, from_json, to_json
from autotune.json_types import Number, ValuesByName
from autotune.space import Setting
from autotune.targets.rows import MpiChoiceRow

SCHEMA = "autotune-calibration-1"
LEAST_NOISE = 0.01
"""Smallest standard deviation of a log ratio, because a few runs can agree by chance."""


class Response(NamedTuple):
    """Log ratio to the default's time, its standard deviation, and the number of runs behind it."""

    log: float
    sd: float
    runs: int

    @property
    def shrunk(self) -> float:
        """The log ratio shrunk towards 0 by its noise: the largest of many small ratios is luck."""
        return self.log * max(0.0, 1.0 - (self.sd / self.log) ** 2) if self.log else 0.0


class Level(NamedTuple):
    """The default's time in microseconds a call, and the standard deviation of its logarithm."""

    us: float
    sd: float


@dataclass(frozen=True, eq=False)
class ResponseTable:
    """One place.  ``default``: the time of each point; ``responses``: those of each setting."""

    ranks: int
    nodes: int
    cores: int
    default: Mapping[Point, Level]
    responses: Mapping[Setting, Mapping[Point, Response]]

    @cached_property
    def _sizes(self) -> dict[str, list[int]]:
        sizes: dict[str, list[int]] = {}
        for operation, size in sorted(self.default):
            sizes.setdefault(operation, []).append(size)
        return sizes

    def us(self, operation: str, size: float) -> float | None:
        """Microseconds of a call under the default: log-linear between the measured sizes, in
        proportion to the size above them, constant below. None for an operation that was not
        measured."""
        around = self._around(operation, size)
        if around is None:
            return None
        low, high, share = around
        first, last = self.default[low].us, self.default[high].us
        if low == high and size > low.size > 0:
            return first * size / low.size
        return math.exp(math.log(first) * (1 - share) + math.log(last) * share)

    def response(self, setting: Setting, operation: str, size: float) -> Response | None:
        """The response of a measured setting; None if it was not measured at both sizes around
        ``size``, or if ``size`` is far outside of all of them."""
        points = self.responses.get(setting, {})
        own = sorted(p.size for p in points if p.operation == operation)
        around = _between(own, size)
        if around is None:
            return None
        low, high, share = around
        first, last = points[Point(operation, low)], points[Point(operation, high)]
        if share in (0.0, 1.0) or low == high:
            return first if share < 0.5 else last
        # Between two sizes a limit may lie anywhere: half of their difference is noise.
        log = first.log * (1 - share) + last.log * share
        sd = math.hypot(max(first.sd, last.sd), (first.log - last.log) / 2 * min(share, 1 - share))
        return Response(log, sd, min(first.runs, last.runs))

    def _around(self, operation: str, size: float) -> tuple[Point, Point, float] | None:
        sizes = self._sizes.get(operation)
        if not sizes:
            return None
        place = min(max(size, sizes[0]), sizes[-1])
        low, high, share = _between(sizes, place) or (sizes[0], sizes[0], 0.0)
        return Point(operation, low), Point(operation, high), share


def _between(sizes: list[int], size: float) -> tuple[int, int, float] | None:
    """The sizes around a size and its place between them, 0 to 1, on the logarithmic scale.

    A size up to twice the largest or below the smallest counts as that; None beyond.
    """
    if not sizes or size > 2 * sizes[-1]:
        return None
    if size <= sizes[0]:
        return sizes[0], sizes[0], 0.0
    if size >= sizes[-1]:
        return sizes[-1], sizes[-1], 0.0
    at = bisect.bisect_right(sizes, size)
    low, high = sizes[at - 1], sizes[at]
    return low, high, math.log(size / max(low, 1)) / math.log(high / max(low, 1))


@dataclass(frozen=True)
class Calibration:
    """The response tables of a cluster under one MPI library."""

    schema_: Annotated[Literal["autotune-calibration-1"], Field(alias="schema")] = field(
        default="autotune-calibration-1", kw_only=True
    )
    cluster: str
    machine: str
    mpi: Mapping[str, str]
    date: str
    guarded: bool = field(default=True, kw_only=True)
    launches: int
    seconds: Number
    """Seconds inside launches."""
    points: int
    """Measurements of a setting at a point."""
    grid: int
    """Those of a full grid: every setting of every table at all points that it can act on, three
    times each."""
    tables: tuple[
        Annotated[
            ResponseTable,
            PlainValidator(lambda table: _table(table)),
            PlainSerializer(lambda table: _row(table), return_type=TableRow),
        ],
        ...,
    ]

    mpi_choice: Omitted[MpiChoiceRow] = None
    """Why this MPI library was taken."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def id(self) -> str:
        """12 hexadecimal digits over the whole content but ``mpi_choice``: a repeated command gives
        the same calibration, whatever stands first on PATH."""
        return content_id(to_json(self, "id", "mpi_choice"))

    def table(self, ranks: float, nodes: int) -> ResponseTable | None:
        """The table for a program on this number of ranks and nodes: of its kind (one node or
        several), with the nearest number of ranks; None if there is none of its kind."""
        own = [t for t in self.tables if (t.nodes > 1) == (nodes > 1)]
        return min(own, key=lambda t: (abs(math.log(t.ranks / ranks)), t.ranks), default=None)

    @cached_property
    def settings(self) -> tuple[Setting, ...]:
        """Every measured setting, each once."""
        return tuple(dict.fromkeys(s for table in self.tables for s in table.responses))

    def to_json(self) -> dict[str, Any]:
        """JSON types only, with the ``id``."""
        return to_json(self)


class ResponseRow(TypedDict):
    """How the operations answer to a setting."""

    setting: ValuesByName
    points: list[tuple[str, int, Number, Number, int]]
    """Operation, bytes, log ratio to the default's time, its standard deviation, runs."""


class TableRow(TypedDict):
    """One place: the time of each operation, and how it answers to settings."""

    ranks: int
    nodes: int
    cores: int
    default: list[tuple[str, int, Number, Number]]
    """Operation, bytes, microseconds a call, standard deviation of their logarithm."""
    responses: list[ResponseRow]


def _row(table: ResponseTable) -> TableRow:
    return TableRow(
        ranks=table.ranks,
        nodes=table.nodes,
        cores=table.cores,
        default=[(*point, _short(us), _short(sd)) for point, (us, sd) in table.default.items()],
        responses=[
            ResponseRow(
                setting=setting.to_json(),
                points=[
                    (*point, _short(log), _short(sd), runs)
                    for point, (log, sd, runs) in points.items()
                ],
            )
            for setting, points in table.responses.items()
        ],
    )


def _short(number: float) -> float:
    return float(f"{number:.5g}")


def _finite(*numbers: float) -> None:
    if not all(math.isfinite(n) for n in numbers):
        raise ValueError("expected finite numbers")


def _table(data: Mapping[str, Any]) -> ResponseTable:
    default = {
        Point(str(operation), int(size)): Level(float(us), float(sd))
        for operation, size, us, sd in data["default"]
    }
    _finite(*(n for level in default.values() for n in level))
    if not default or any(level.us <= 0 or level.sd < 0 for level in default.values()):
        raise ValueError("default: expected times above 0")
    responses = {}
    for row in data["responses"]:
        points = {
            Point(str(o), int(s)): Response(float(log), float(sd), int(runs))
            for o, s, log, sd, runs in row["points"]
        }
        _finite(*(n for response in points.values() for n in response))
        responses[Setting(row["setting"])] = points
    ranks, nodes, cores = (int(data[key]) for key in ("ranks", "nodes", "cores"))
    if min(ranks, nodes, cores) < 1:
        raise ValueError("ranks, nodes and cores: expected 1 or more")
    return ResponseTable(ranks, nodes, cores, default, responses)


def _parse(data: dict[str, Any]) -> Calibration:
    if datetime.fromisoformat(data["date"]).tzinfo is not None:
        raise ValueError("date: expected a time without a zone")
    return from_json(Calibration, data)


CALIBRATIONS = ArtifactStore("calibrate", "calibration", SCHEMA, _parse)
"""The artifact store of all calibrations."""


def pool_logs(logs: Sequence[float], scatter: float, spread: float) -> Response:
    """The response of a setting from the log ratios of its runs.

    ``scatter`` is the standard deviation of one run's log ratio, from the default, and ``spread``
    that of the default's own level. Larger differences of the runs are states of the machine: they
    count in full, because a program meets one state.
    """
    n = len(logs)
    noise = max(scatter, LEAST_NOISE)
    state = max(statistics.variance(logs) - noise**2, 0.0) if n > 1 else 0.0
    sd = math.sqrt(noise**2 / n + state * (1 + 1 / n) + spread**2)
    return Response(statistics.fmean(logs), sd, n)


def merge_calibrations(calibrations: Sequence[Calibration]) -> Calibration:
    """Calibrations of one cluster at several times, merged: the newest of each table, with the
    responses of all.

    Differences between times count in full, as in :func:`pool_logs`: a program meets one time.
    Measurements at only one time count as one run. Raises ValueError without calibrations.
    """
    if not calibrations:
        raise ValueError("expected one calibration or more")
    if len(calibrations) == 1:
        return calibrations[0]
    tables = []
    order = sorted(calibrations, key=lambda one: (one.date, one.id), reverse=True)
    places = dict.fromkeys((t.ranks, t.nodes) for c in order for t in c.tables)
    for place in places:
        own = [t for c in order for t in c.tables if (t.ranks, t.nodes) == place]
        table = own[0]
        responses: dict[Setting, dict[Point, Response]] = {}
        for setting in dict.fromkeys(s for t in own for s in t.responses):
            response_maps = [t.responses[setting] for t in own if setting in t.responses]
            points = dict.fromkeys(p for one in response_maps for p in one)
            responses[setting] = {
                p: _over([one[p] for one in response_maps if p in one]) for p in points
            }
        tables.append(replace(table, responses=responses))
    return replace(order[0], tables=tuple(tables))


def _over(times: Sequence[Response]) -> Response:
    if len(times) == 1:
        return times[0]._replace(runs=1)
    n = len(times)
    mean = sum(one.log for one in times) / n
    within = sum(one.sd**2 for one in times) / n
    between = sum((one.log - mean) ** 2 for one in times) / (n - 1)
    sd = math.sqrt(within + between * (1 + 1 / n))
    return Response(mean, max(sd, LEAST_NOISE), sum(one.runs for one in times))


def hours_between(calibrations: Sequence[Calibration]) -> float:
    """Hours between the first and the last of the calibrations."""
    dates = [datetime.fromisoformat(one.date) for one in calibrations]
    return (max(dates) - min(dates)).total_seconds() / 3600
