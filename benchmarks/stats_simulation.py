"""Figures of docs/explanation/statistics.md: coverage, false winners, power, expected blocks,
racing.

    python -m benchmarks.stats_simulation [--coverage] [--null] [--power] [--racing] [--json]

Without a section, all are run (two minutes of one core). The seeds are fixed, and so is the output.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Callable

import numpy as np

from autotune.stats import (
    Decision,
    LookPlan,
    compare,
    design,
    estimate,
    settle,
    winner,
)
from autotune.stats.comparison import judge
from autotune.stats.log_ratios import log_ratios
from benchmarks.common import run_benchmark, table
from benchmarks.harness.simulated_times import (
    BASE_S,
    MODELS,
    NOISES,
    STEP_S,
    SimulatedComparison,
    simulate,
)
from benchmarks.racing_simulation import Array, Row, racing


def coverage(studies: int = 1000) -> list[Row]:
    """Coverage of 95 % intervals of the gain: at 12 blocks, and at all looks of a plan together."""
    rows = []
    for model in MODELS:
        for method in ("sign", "wilcoxon"):
            rng = np.random.default_rng(11)
            plan = LookPlan(method=method)
            once, late, always, widths = 0, 0, 0, []
            for _ in range(studies):
                s = simulate(model, rng, plan.looks[-1], gain=0.05)
                c = compare(
                    s.default[:12],
                    s.candidate[:12],
                    censored_candidate=s.censored_candidate[:12],
                    method=method,
                )
                once += _holds(c.lo, s.truth, c.hi)
                if math.isfinite(c.hi) and c.lo > -1:
                    widths.append(c.hi - c.lo)
                late += _holds_at_the_end(plan, s)
                always += _holds_throughout(plan, s)
            rows.append(
                {
                    "noise": model,
                    "method": method,
                    "coverage": once / studies,
                    "at 40 blocks": late / studies,
                    "mean width": float(np.mean(widths)) if widths else None,
                    "open intervals": studies - len(widths),
                    "at all looks": always / studies,
                }
            )
    return rows


def estimates(studies: int = 2000) -> list[Row]:
    """Coverage of the median's interval of one setting's runs."""
    rows = []
    for name, noise in NOISES.items():
        rng = np.random.default_rng(15)
        truth = float(np.exp(np.median(noise(rng, 0.05, 1_000_000))))
        for n in (6, 12, 25):
            inside, widths = 0, []
            for _ in range(studies):
                e = estimate(np.exp(noise(rng, 0.05, n)), resolution=0.0)
                inside += e.lo <= truth <= e.hi
                widths.append((e.hi - e.lo) / truth)
            width = float(np.mean(widths))
            row = {"noise": name, "runs": n, "promised": e.level}
            rows.append(row | {"coverage": inside / studies, "mean width": width})
    return rows


def _holds(lo: float, truth: float, hi: float) -> bool:
    return (lo == -1 or math.log1p(lo) <= truth) and truth <= math.log1p(hi)


def _holds_at_the_end(plan: LookPlan, s: SimulatedComparison) -> bool:
    c = compare(s.default, s.candidate, censored_candidate=s.censored_candidate, method=plan.method)
    return _holds(c.lo, s.truth, c.hi)


def _holds_throughout(plan: LookPlan, s: SimulatedComparison) -> bool:
    ratios = log_ratios(s.default, s.candidate, censored_candidate=s.censored_candidate)
    for look, rank in zip(plan.looks, plan.ranks, strict=True):
        c = judge(
            ratios.first(look),
            rank,
            level=plan.level,
            alpha=plan.alpha,
            min_gain=plan.min_gain,
            method=plan.method,
        )
        if c.interval and not _holds(c.lo, s.truth, c.hi):
            return False
    return True


def false_winners(studies: int = 1000, candidates: int = 200) -> list[Row]:
    """Studies that name a winner where none exists; finalists have the best first runs.

    Under symmetric noise the candidates also differ in their noise, so that the selection prefers
    the noisiest.
    """
    rows = []
    for model in (*NOISES, "drift", "quantised"):
        for chosen in (1, 3):
            rng = np.random.default_rng(12)
            plan = LookPlan(finalists=chosen)
            wrong, blocks = 0, []
            for _ in range(studies):
                scale = _scales(model, rng, candidates)
                first = scale * NOISES.get(model, NOISES["normal"])(rng, 0.05, candidates)
                lucky = np.argsort(first)[:chosen]
                times = _null_blocks(model, rng, plan.looks[-1], np.append(1.0, scale[lucky]))
                decisions = _confirm(plan, times)
                wrong += winner(decisions) is not None
                blocks.append(max(d.comparison.n for d in decisions))
            rows.append(
                {
                    "noise": model,
                    "finalists": chosen,
                    "false winners": wrong,
                    "of studies": studies,
                    "allowed": round(0.05 * studies + 2 * math.sqrt(0.05 * 0.95 * studies), 1),
                    "mean blocks": float(np.mean(blocks)),
                }
            )
    return rows


def _scales(model: str, rng: np.random.Generator, n: int) -> Array:
    return rng.uniform(0.5, 3, n) if model in ("normal", "heavy tail", "drift") else np.ones(n)


def _null_blocks(model: str, rng: np.random.Generator, blocks: int, scale: Array) -> Array:
    """Seconds, shape (settings, blocks), of settings that differ only in noise; 0 is the default.

    Runs follow each other in the order of a real study; drift acts on the position in that order.
    """
    settings = scale.size
    noise = NOISES.get(model, NOISES["normal"])
    logs = np.array([s * noise(rng, 0.05, blocks) for s in scale])
    if model == "drift":
        for b, order in enumerate(design(settings, blocks, rng)):
            when = (b * settings + np.arange(settings)) / (blocks * settings)
            speed = np.log1p(0.5 * when) + np.log(2) * ((when > 0.15) & (when < 0.35))
            logs[order, b] += speed
    times = BASE_S * np.exp(logs)
    return np.asarray(STEP_S * np.round(times / STEP_S)) if model == "quantised" else times


def _confirm(plan: LookPlan, times: Array, resolution: float | None = None) -> list[Decision]:
    """The proof as a study runs it: look by look; finalists leave when decided."""
    decisions: list[Decision] = []
    for look in plan.looks:
        decisions = settle(
            [plan.decide(times[0, :look], c[:look], resolution=resolution) for c in times[1:]]
        )
        if all(d.stop for d in decisions):
            break
    return decisions


def power(studies: int = 400) -> list[Row]:
    """Outcome and expected blocks for one finalist, by true gain and noise, under normal noise."""
    rows = []
    variants = [
        ("sign", LookPlan()),
        ("wilcoxon", LookPlan(method="wilcoxon")),
        ("sign, 3 finalists", LookPlan(finalists=3)),
        ("sign, fixed 12", LookPlan.single_look(12)),
        ("sign, fixed 40", LookPlan.single_look(40)),
    ]
    for name, plan in variants:
        for cv in (0.01, 0.05, 0.15):
            for gain in (0.0, 0.02, 0.05, 0.10):
                rng = np.random.default_rng(13)
                seen: Counter[str] = Counter()
                blocks = 0
                for _ in range(studies):
                    s = simulate("normal", rng, plan.looks[-1], gain=gain, cv=cv)
                    times = np.array([s.default, s.candidate])
                    decision = _confirm(plan, times, resolution=0.0)[0]
                    seen[decision.outcome] += 1
                    blocks += decision.comparison.n
                rows.append(
                    {
                        "plan": name,
                        "noise cv": cv,
                        "gain": gain,
                        "better": seen["better"] / studies,
                        "worse": seen["worse"] / studies,
                        "equivalent": seen["equivalent"] / studies,
                        "futile": seen["futile"] / studies,
                        "undecided": seen["undecided"] / studies,
                        "mean blocks": blocks / studies,
                    }
                )
    return rows


SECTIONS: dict[str, dict[str, Callable[[], list[Row]]]] = {
    "coverage": {"comparisons": coverage, "estimates": estimates},
    "null": {"false winners": false_winners},
    "power": {"power and expected blocks": power},
    "racing": {"racing": racing},
}


def _text(row: Row) -> Row:
    return {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for section in SECTIONS:
        parser.add_argument(f"--{section}", action="store_true")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = vars(parser.parse_args())
    chosen = [s for s in SECTIONS if options[s]] or list(SECTIONS)
    results = {}
    for section in chosen:
        for title, figures in SECTIONS[section].items():
            results[title] = figures()
            if not options["json"]:
                print(f"\n{title}")
                table([_text(row) for row in results[title]])
    if options["json"]:
        print(json.dumps(results, indent=1))


if __name__ == "__main__":
    run_benchmark(main)
