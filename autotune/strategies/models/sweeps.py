"""The Gibbs sweeps of :mod:`autotune.strategies.models.sparse`.

They are compiled from C on first use (:mod:`runner.c_library`). Where no C compiler is found, the
same arithmetic runs here and gives the same bits: it takes about twenty times as long.

All random numbers are drawn before and passed in.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autotune.strategies.levels import Floats
from runner import files
from runner.c_library import code_folder, compile_if_missing, compiler, digest, sources_of
from runner.errors import RunnerError

_NOTHING = 1e-8
"""Variance of the effect of a group of levels that does not act."""
_FLAGS = ("-ffp-contract=off", "-Wl,--no-as-needed", "-lm")
"""No fused operations: they would give other bits."""


@dataclass(frozen=True)
class Sweeps:
    """What the sweeps need.

    ``runs[starts[c]:starts[c + 1]]`` are the runs that column c is in, ``owners[c]`` is its owner.
    ``logs`` (runs,). ``columns`` (columns, 3): the prior's log odds that the column acts if no
    other of its owner does, whether it has its own cost (1 or 0), and the share of the mean cost
    that this cost has on the mean. ``prior`` (9,): variance of an acting effect, log odds beside an
    acting one, mean cost, its variance, variance of a cost, weight of that, variance of the noise,
    weight of that, degrees of freedom of the tail. ``burn`` and ``thin``: sweeps before the first
    sample, and per sample. ``normals`` (sweeps, columns + 1), ``logistics`` (sweeps, columns),
    ``gammas`` (sweeps, runs) and ``totals`` (sweeps, 2) are random.
    """

    runs: NDArray[np.int64]
    starts: NDArray[np.int64]
    owners: NDArray[np.int64]
    logs: Floats
    columns: Floats
    prior: Floats
    burn: int
    thin: int
    normals: Floats
    logistics: Floats
    gammas: Floats
    totals: Floats

    def samples(self) -> Floats:
        """Sweep over all columns again and again; the samples on the way (samples, columns)."""
        sweep = compiled()
        return interpreted(self) if sweep is None else sweep(self)


@functools.cache
def compiled() -> Callable[[Sweeps], Floats] | None:
    """The sweeps in C; None where they cannot be compiled, kept or loaded."""
    found = compiler()
    if found is None:
        return None
    command = [found, *_FLAGS]
    sources = sources_of("autotune.strategies.models")
    name = f"libautotune-sweeps-{digest(sources, command)}.so"
    try:
        place = code_folder(files.cache("sweeps")) / name
        library = ctypes.CDLL(str(compile_if_missing(place, command, sources)))
    except (OSError, RunnerError):
        return None
    sweep = library.sweep
    sweep.argtypes, sweep.restype = [ctypes.c_void_p] * 13, None

    def call(given: Sweeps) -> Floats:
        count, width = len(given.logs), len(given.owners)
        many = int(given.owners.max(initial=-1)) + 1
        number = (len(given.totals) - given.burn) // given.thin
        shape = [count, width, many, given.burn, given.thin, number]
        samples = np.empty((number, width))
        whole = [
            np.ascontiguousarray(numbers, dtype=np.int64)
            for numbers in (shape, given.runs, given.starts, given.owners)
        ]
        real = [
            *(given.logs, given.columns, given.prior, given.normals, given.logistics),
            *(given.gammas, given.totals, samples, np.empty(2 * count + many + 2 * width)),
        ]
        real = [np.ascontiguousarray(numbers, dtype=np.float64) for numbers in real]
        sweep(*(array.ctypes.data for array in (*whole, *real)))
        return samples

    return call


def interpreted(given: Sweeps) -> Floats:
    """The sweeps in Python, step by step as in ``native/sweeps.c``."""
    starts = given.starts.tolist()
    runs = [given.runs[a:b].tolist() for a, b in itertools.pairwise(starts)]
    every = list(zip(range(len(runs)), given.owners.tolist(), given.columns.tolist(), strict=True))
    used = [column for column in every if runs[column[0]]]
    slab, sibling_odds, mean_cost, cost_variance, first_spread = given.prior[:5].tolist()
    spread_weight, first_noise, noise_weight, tail = given.prior[5:].tolist()
    cost, spread, noise = mean_cost, first_spread, first_noise
    rest = given.logs.tolist()
    trust = [1.0] * len(rest)
    acting = [0.0] * (int(given.owners.max(initial=-1)) + 1)
    effects, active = [0.0] * len(runs), [0.0] * len(runs)
    samples = []
    log, sqrt = math.log, math.sqrt
    for turn in range(len(given.totals)):
        keep = turn >= given.burn and (turn - given.burn) % given.thin == 0
        normal, logistic = given.normals[turn].tolist(), given.logistics[turn].tolist()
        per_noise = 1.0 / noise
        weight = 1.0 / cost_variance
        moment = mean_cost * weight
        squares = 0.0
        # A column that no run has changes nothing; it is drawn for samples only.
        for c, owner, (single_odds, own, share) in every if keep else used:
            old = effects[c]
            a, b = 0.0, 0.0
            for i in runs[c]:
                a += trust[i]
                b += trust[i] * (rest[i] + old)
            a *= per_noise
            b *= per_noise
            idle = spread if own > 0.0 else _NOTHING
            mean = cost * share
            wide, narrow = 1.0 + slab * a, 1.0 + idle * a
            t = b * idle + mean
            odds = sibling_odds if acting[owner] - active[c] > 0.5 else single_odds
            odds += 0.5 * log(narrow / wide)
            odds += 0.5 * (b * b * slab / wide)
            odds += 0.5 * ((mean * mean * narrow - t * t) / (idle * narrow))
            acts = 1.0 if odds > logistic[c] else 0.0
            if runs[c]:
                acting[owner] += acts - active[c]
                active[c] = acts
            variance = slab if acts > 0.5 else idle
            centre = 0.0 if acts > 0.5 else mean
            precision = 1.0 / variance + a
            fresh = (centre / variance + b) / precision
            fresh += normal[c] * sqrt(1.0 / precision)
            for i in runs[c]:
                rest[i] -= fresh - old
            effects[c] = fresh
            if runs[c] and own > 0.0 and share > 0.0:
                # An acting level says nothing about the costs: it counts as one at the prior's.
                distance = fresh - mean
                squares += first_spread if acts > 0.5 else distance * distance
                if acts < 0.5:
                    weight += 1.0 / spread
                    moment += fresh / spread
        cost = moment / weight + normal[-1] * sqrt(1.0 / weight)
        spread_draw, noise_draw = given.totals[turn].tolist()
        spread = (spread_weight * first_spread + squares) / (2.0 * spread_draw)
        squares = 0.0
        for own_trust, off in zip(trust, rest, strict=True):
            squares += own_trust * off * off
        noise = (noise_weight * first_noise + squares) / (2.0 * noise_draw)
        # A launch that was slow by chance is slower than predicted, never faster.
        trust = [
            min(1.0, 2.0 * draw / (tail + off * off / noise)) if off > 0.0 else 1.0
            for draw, off in zip(given.gammas[turn].tolist(), rest, strict=False)
        ]
        if keep:
            samples.append(effects.copy())
    return np.array(samples)
