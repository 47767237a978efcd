"""The parts of a program's time under a layout, composed from one traced flat run.

The trace says how long a rank computes in its steps, how often it waits for others, and what it
sends. The wire says how long a message takes. The words of a layout say how long messages are, how
many there are, and how much work there is to hide them behind. What the runtimes cost is learned
(:mod:`autotune.prediction.layout_composition`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from autotune.calibration.wire import Wire
from autotune.prediction.measured_cell import Floats
from autotune.space import DEFAULT, Setting, Value
from autotune.space.eager import eager_limit
from autotune.space.layout import LayoutMap
from runner.trace import Features

RUNTIMES = ("mate", "tarragon", "tpod")
"""Runtimes with costs of their own, as the names in a space's ``requires`` begin."""
PARTS = (
    "known",
    "compute",
    "exposed",
    "hidden_split",
    "hidden_tasks",
    "threads",
    "tasks",
    "messages",
    *(f"{part}_{runtime}" for runtime in RUNTIMES for part in ("tasks", "messages")),
)
"""Columns of the parts of a layout.

``known``: 1 if the program was traced, else all are 0. ``compute`` and ``exposed``: time of
computation and of communication, as shares of the flat run; ``hidden_*`` is what of the
communication could be hidden at most, in split phase or behind other tasks. ``threads``: steps that
threads begin and end together; ``tasks`` and ``messages``: those of a worker, for all runtimes and
for each; all three per microsecond of the flat run.
"""
_LEAST_COMPUTE, _MOST_COMPUTE = 0.02, 0.98
ELSEWHERE = 1.2
"""A traced run that is this many times slower or faster than the recorded default was made on
another machine, or beside other load."""


@dataclass(frozen=True)
class FlatRun:
    """What a traced flat run says of its steps.

    ``seconds`` is the time that the program reports; ``compute`` the share of it that a rank
    computes, None where that is what the wire leaves. ``steps``, ``rounds`` and ``messages`` are
    numbers of a rank, ``bytes`` what it sends.
    """

    seconds: float
    compute: float | None
    steps: float
    rounds: float
    messages: float
    bytes: float

    @classmethod
    def of(cls, features: Features, recorded_s: float | None = None) -> FlatRun | None:
        """None if the trace has no steps.

        ``recorded_s``: the time of the default where it was recorded. If the traced run took
        another one, it ran elsewhere, or beside other load, and only its counts hold.
        """
        steps, values = features.steps, features.values
        if steps is None:
            return None
        compute_s = sum(steps.compute_s) / len(steps.compute_s)
        figure_s = features.figure_s or 0.0
        # Some programs print a figure that is not the time of their steps.
        seconds = figure_s if figure_s > compute_s else max(features.wall_s, compute_s)
        compute: float | None = compute_s / seconds
        if recorded_s is not None and abs(math.log(seconds / recorded_s)) > math.log(ELSEWHERE):
            seconds, compute = recorded_s, None
        return cls(
            seconds=seconds,
            compute=compute,
            steps=steps.steps,
            rounds=float(steps.rounds),
            messages=values["p2p_messages"],
            bytes=values["p2p_volume"],
        )

    def computing(self, wire_s: float) -> float:
        """The share of its time that a rank computes; ``wire_s``: seconds of its messages."""
        share = 1 - wire_s / self.seconds if self.compute is None else self.compute
        return min(max(share, _LEAST_COMPUTE), _MOST_COMPUTE)


def layout_parts(
    run: FlatRun | None,
    wire: Wire | None,
    layouts: LayoutMap,
    settings: Sequence[Setting],
    family: str,
) -> Floats:
    """One row for each setting, shape (settings, parts); zeros without a trace or a wire."""
    if run is None or wire is None:
        return np.zeros((len(settings), len(PARTS)))
    nodes = layouts.space.facts.get("nodes", 1)
    count = int(nodes) if isinstance(nodes, int) else 1
    words = [layouts.layout(setting).words for setting in settings]
    limits = [eager_limit(family, count, setting) for setting in settings]
    flat = _Messages.of(run, wire, layouts.layout(DEFAULT).words, {}, limits[0])
    runtime = _runtime(layouts)
    rows = [
        _row(run, wire, flat, one, _Messages.of(run, wire, one, words[0], limit), runtime, count)
        for one, limit in zip(words, limits, strict=True)
    ]
    return np.array(rows, dtype=np.float64).reshape(-1, len(PARTS))


@dataclass(frozen=True)
class _Messages:
    """The messages of a worker, and the seconds that they take if nothing hides them."""

    number: float
    seconds: float

    @classmethod
    def of(
        cls,
        run: FlatRun,
        wire: Wire,
        words: Mapping[str, Value],
        default: Mapping[str, Value],
        limit: int,
    ) -> _Messages:
        mean = run.bytes / run.messages if run.messages else 0.0
        chunk = float(words.get("chunk", 0)) or float(default.get("chunk", 0)) or mean
        number = max(run.messages, run.bytes / chunk) if chunk else run.messages
        waiting = run.rounds * wire.waiting_s(chunk, limit)
        return cls(number, waiting + run.bytes / wire.bytes_per_s)


def _row(
    run: FlatRun,
    wire: Wire,
    flat: _Messages,
    words: Mapping[str, Value],
    messages: _Messages,
    runtime: str,
    nodes: int,
) -> list[float]:
    values = dict.fromkeys(PARTS, 0.0)
    model = words.get("model", "flat")
    processes = float(words.get("processes", 2)) * nodes
    compute = run.computing(flat.seconds)
    exposed = 1.0 - compute
    # Where the wire alone would take longer than the trace saw, both are scaled.
    scale = min(1.0, exposed * run.seconds / flat.seconds) if flat.seconds else 0.0
    exposed += scale * (messages.seconds - flat.seconds) / run.seconds
    if processes <= 1:
        exposed, messages = 0.0, _Messages(0.0, 0.0)
    if words.get("barrier") == "global":
        exposed += run.steps * 2 * wire.latency_s * math.ceil(math.log2(processes)) / run.seconds
    factor = float(words.get("factor", 2))
    values["known"] = 1.0
    values["compute"] = compute
    values["exposed"] = exposed
    us = run.seconds * 1e6
    if model == "split":
        values["hidden_split"] = min(compute, exposed)
    elif model == "threads":
        values["threads"] = run.steps / us
    elif model in ("tasks", "chunks"):
        values["hidden_tasks"] = min(compute * (1 - 1 / max(factor, 1.0)), exposed)
        values["tasks"] = run.steps * max(factor, 1.0) / us
        values["messages"] = messages.number / us
        if runtime:
            values[f"tasks_{runtime}"] = values["tasks"]
            values[f"messages_{runtime}"] = values["messages"]
    return list(values.values())


def _runtime(layouts: LayoutMap) -> str:
    """The runtime of a space; "" if it is none with costs of its own."""
    names = sorted(layouts.space.requires)
    return next((r for r in RUNTIMES for name in names if name.startswith(r)), "")
