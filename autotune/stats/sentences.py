"""Sentences for a comparison or an estimate, for people who read no statistics."""

from __future__ import annotations

import math

from autotune.stats.comparison import Comparison
from autotune.stats.estimate import Estimate


def comparison_words(c: Comparison) -> str:
    """A comparison as text, such as "8.3 % faster, 95 % interval 6.1 to 10.4 %, 12 blocks".

    "Slower" is the extra time T / T_default - 1; "gain" is T_default / T - 1.
    """
    blocks = "1 block" if c.n == 1 else f"{c.n} blocks"
    if not c.interval:
        extent = f"range {_span(c.lo, c.hi)}"
        return f"not decided: {_gain(c)}, {blocks} ({extent}), too few for an interval"
    if c.hi < 0:
        top = f"to {_extra(c.lo)}" if c.lo > -1 else "or more"
        size = f"at least {_extra(c.gain)}" if c.bound == "at most" else _extra(c.gain)
        return f"{size}, {_level(c)} {_extra(c.hi)} {top}, {blocks}"
    span = f"{_level(c)} {_span(c.lo, c.hi)}, {blocks}"
    if c.lo > 0:
        least = "at least " if c.bound == "at least" else ""
        small = "" if c.verdict == "better" else f", not clearly at least {_percent(c.min_gain)}"
        return f"{least}{_percent(c.gain)} faster, {span}{small}"
    head = "not decided"
    if c.verdict == "equivalent":
        head = "no relevant difference"
    elif c.hi < c.min_gain:
        head = f"no gain of {_percent(c.min_gain)} or more"
    return f"{head}: {_gain(c)}, {span}"


def estimate_words(e: Estimate) -> str:
    """An estimate as text, such as "1.64 s, 97 % interval 1.62 to 1.66 s, 6 runs"."""
    least = "at least " if e.bound == "at least" else ""
    runs = "1 run" if e.n == 1 else f"{e.n} runs"
    high = f"to {e.hi:.4g} s" if math.isfinite(e.hi) else "s or more"
    span = f"{e.lo:.4g} {high}"
    if not e.interval:
        return f"{least}{e.median:.4g} s, {runs} (range {span}), too few for an interval"
    return f"{least}{e.median:.4g} s, {_whole(e.level)} % interval {span}, {runs}"


def _extra(gain: float) -> str:
    """A loss as extra time; from a factor of two on, as a factor."""
    times = 1 / (1 + gain)
    return f"{(times - 1) * 100:.1f} % slower" if times < 2 else f"{times:.1f}x the time"


def _percent(gain: float) -> str:
    return f"{gain * 100:.1f} %"


def _gain(c: Comparison) -> str:
    if c.bound == "unknown":
        return "gain unknown"
    bound = "" if c.bound == "exact" else f"{c.bound} "
    return f"gain {bound}{_percent(c.gain)}"


def _span(lo: float, hi: float) -> str:
    sign = "+" if lo < 0 < hi else ""
    low = f"{lo * 100:.1f}" if lo > -1 else "open"
    high = f"{sign}{hi * 100:.1f} %" if math.isfinite(hi) else "open"
    return f"{low} to {high}"


def _level(c: Comparison) -> str:
    return f"{_whole(c.nominal)} % interval"


def _whole(level: float) -> int:
    return math.floor(level * 100 + 1e-9)
