"""The Gibbs sweeps of :mod:`autotune.strategies.models.sparse`, compiled
(:mod:`runner.runtimes.core.kernels`).

All random numbers are drawn beforehand and passed in.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import carray

KERNELS = {
    "sweep": (
        *("uint64",) * 4,
        *("float64",) * 10,
    )
}

ZERO = np.uint64(0)
ONE = np.uint64(1)
_NOTHING = 1e-8
"""Variance of the effect of an inactive group of levels."""


def sweep(
    shape: Any,
    runs: Any,
    starts: Any,
    owners: Any,
    logs: Any,
    columns: Any,
    prior: Any,
    normals: Any,
    logistics: Any,
    gammas: Any,
    totals: Any,
    samples: Any,
    effects: Any,
    work: Any,
) -> None:
    """Sweep repeatedly over all columns; fill ``samples`` (samples, columns) on the way.

    ``shape``: runs, columns, owners, sweeps before the first sample, sweeps per sample, samples.
    ``runs[starts[c]:starts[c + 1]]`` are the runs with column c. ``columns`` (columns, 3): the
    prior log odds that the column acts if no other of its owner does, 1 if it has its own cost
    (else 0), and the share of the mean cost that this cost has on the mean. ``prior``: variance of
    an acting effect, log odds beside an acting one, mean cost, its variance, variance of a cost,
    weight of that, variance of the noise, weight of that, degrees of freedom of the tail.
    ``normals`` (sweeps, columns + 1), ``logistics`` (sweeps, columns), ``gammas`` (sweeps, runs)
    and ``totals`` (sweeps, 2) are random. ``effects`` (columns, 2) and ``work`` (2 * runs + owners)
    need no values.
    """
    s = carray(shape, (6,))
    count, width, many = s[0], s[1], s[2]
    burn, thin = s[3], s[4]
    sweeps = burn + thin * s[5]
    first = carray(starts, width + ONE)
    rows = carray(runs, first[width])
    owner = carray(owners, width)
    column = carray(columns, (width, 3))
    y = carray(logs, count)
    p = carray(prior, (9,))
    normal = carray(normals, (sweeps, width + ONE))
    logistic = carray(logistics, (sweeps, width))
    gamma = carray(gammas, (sweeps, count))
    total = carray(totals, (sweeps, 2))
    sample = carray(samples, (s[5], width))
    effect = carray(effects, (width, 2))
    space = carray(work, count + count + many)
    rest, trust, acting = space[:count], space[count : count + count], space[count + count :]
    slab, sibling_odds, cost, cost_variance = p[0], p[1], p[2], p[3]
    spread, noise = p[4], p[6]
    for c in range(ZERO, width):
        effect[c, 0] = 0.0
        effect[c, 1] = 0.0
    for j in range(ZERO, many):
        acting[j] = 0.0
    for i in range(ZERO, count):
        rest[i] = y[i]
        trust[i] = 1.0
    sample_index = ZERO
    due = burn
    for turn in range(ZERO, sweeps):
        keep = turn == due
        weight = np.reciprocal(cost_variance)
        moment = p[2] * weight
        squares = 0.0
        per_noise = np.reciprocal(noise)
        for c in range(ZERO, width):
            begin, end = first[c], first[c + ONE]
            if begin == end and not keep:
                continue  # No run has it, so it changes nothing; it is only drawn for the samples.
            old = effect[c, 0]
            a, b = 0.0, 0.0
            for k in range(begin, end):
                i = rows[k]
                a += trust[i]
                b += trust[i] * (rest[i] + old)
            a *= per_noise
            b *= per_noise
            own = column[c, 1]
            idle = spread if own > 0.0 else _NOTHING
            mean = cost * column[c, 2]
            j = owner[c]
            odds = sibling_odds if acting[j] - effect[c, 1] > 0.5 else column[c, 0]
            wide, narrow = 1.0 + slab * a, 1.0 + idle * a
            t = b * idle + mean
            odds += 0.5 * math.log(np.divide(narrow, wide))
            odds += 0.5 * np.divide(b * b * slab, wide)
            odds += 0.5 * np.divide(mean * mean * narrow - t * t, idle * narrow)
            active = 1.0 if odds > logistic[turn, c] else 0.0
            if begin != end:
                acting[j] += active - effect[c, 1]
                effect[c, 1] = active
            variance = slab if active > 0.5 else idle
            centre = 0.0 if active > 0.5 else mean
            precision = np.reciprocal(variance) + a
            fresh = np.divide(np.divide(centre, variance) + b, precision)
            fresh += normal[turn, c] * math.sqrt(np.reciprocal(precision))
            for k in range(begin, end):
                rest[rows[k]] -= fresh - old
            effect[c, 0] = fresh
            if begin != end and own > 0.0 and column[c, 2] > 0.0:
                # An acting level says nothing about the costs: it counts as one at the prior's.
                distance = fresh - mean
                squares += p[4] if active > 0.5 else distance * distance
                if active < 0.5:
                    weight += np.reciprocal(spread)
                    moment += np.divide(fresh, spread)
        cost = np.divide(moment, weight) + normal[turn, width] * math.sqrt(np.reciprocal(weight))
        spread = np.divide(p[5] * p[4] + squares, 2.0 * total[turn, 0])
        squares = 0.0
        for i in range(ZERO, count):
            squares += trust[i] * rest[i] * rest[i]
        noise = np.divide(p[7] * p[6] + squares, 2.0 * total[turn, 1])
        for i in range(ZERO, count):
            trust[i] = 1.0
            if rest[i] > 0.0:
                # A launch that was slow by chance is slower than predicted, never faster.
                far = p[8] + np.divide(rest[i] * rest[i], noise)
                trust[i] = min(1.0, np.divide(2.0 * gamma[turn, i], far))
        if keep:
            for c in range(ZERO, width):
                sample[sample_index, c] = effect[c, 0]
            sample_index += ONE
            due += thin
