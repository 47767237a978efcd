"""Simulated studies of ``benchmarks/`` with fixed seeds: the outcome of each, not only counts."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from autotune.measurement.budget import SearchPlan
from benchmarks import classwide_simulation, main_simulation, published_simulation, stats_simulation
from benchmarks import trust_simulation as trust
from benchmarks.racing_simulation import racing
from benchmarks.study_simulation import NOISES, study
from tests.witness.plain import plain, write_lines


def _answers(simulated: trust.SimulatedStudy, *lives: int | None) -> list[Any]:
    """Answers of a study that ends after so many runs (None: when it is done), and its runs.

    Of the runs their number, and a digest of settings and seconds in their order.
    """
    plans = [SearchPlan(trials=20 + 10 * number) for number in range(len(lives))]
    answers = [simulated.go_on(*pair) for pair in zip(plans, lives, strict=True)]
    entries = simulated.evaluator.history.entries
    runs = [[entry.key, entry.record.state, entry.record.value_s] for entry in entries]
    digest = hashlib.sha256(f"{plain(runs)}".encode()).hexdigest()[:7]
    return [[a and a.setting and a.setting.key for a in answers], len(runs), digest]


def one_study(noise: str, gain: float, seed: int) -> Any:
    chosen, *runs = study(NOISES[noise], seed, 40, gain)
    return [chosen and chosen.key, *runs]


def adverse(name: str, seed: int) -> Any:
    """No candidate has a gain; the study is extended once."""
    return _answers(trust.SimulatedStudy(trust.ADVERSE[name], seed), None, None)


def killed(life: int, seed: int) -> Any:
    """Killed twice, continued to its end and extended."""
    return _answers(trust.SimulatedStudy(trust.acting(0.1, 0.05), seed), life, life, None, None)


Case = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function, and its arguments before the seed or the number of studies."""
GAINS = (0.02, 0.05, 0.10)
STUDIES: dict[str, tuple[int, list[Case]]] = {
    "study": (
        30,
        [(one_study, (noise, 0.0)) for noise in NOISES]
        + [(one_study, (noise, gain)) for noise in ("1 %", "5 %", "15 %") for gain in GAINS],
    ),
    "trust": (
        16,
        [(adverse, (name,)) for name in trust.ADVERSE]
        + [(killed, (life,)) for life in (30, 60, 110)]
        + [(trust.named, (0.05, 0.01)), (trust.named, (0.10, 0.05))]
        + [(trust.slow_named, case[1:]) for case in trust.SLOW_CASES],
    ),
    "main": (
        12,
        [(main_simulation.study, (case, "ga", 100)) for case in main_simulation.CASES.values()],
    ),
    "published-gains": (
        30,
        [
            (published_simulation.look_again, (n, 0.1, t, 60))
            for n in NOISES
            for t in (0.1, 0.05, 0)
        ],
    ),
    "classwide": (
        8,
        [
            (classwide_simulation.by_name, (name,))
            for name in classwide_simulation.FALSE | classwide_simulation.POWER
        ],
    ),
}
"""Number of seeds, and cases of which each seed is a study."""
TABLES: dict[str, list[Case]] = {
    "stats": [
        (stats_simulation.coverage, (400,)),
        (stats_simulation.estimates, (400,)),
        (stats_simulation.false_winners, (300,)),
        (stats_simulation.power, (120,)),
    ],
    "racing": [(racing, (30,))],
}
"""Simulations whose tables are recorded whole."""


def outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[str, Any]:
    """The function with its arguments, and what it returned, without names of fields."""
    return f"{function.__name__} {_bare(arguments)}", _bare(function(*arguments))


def _bare(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return [_bare(getattr(value, one.name)) for one in dataclasses.fields(value)]
    return [_bare(one) for one in value] if isinstance(value, tuple | list) else value


def record(name: str, out: Path, place: Path) -> None:
    """Write a line for each study, or for each row of the tables."""
    seeds, cases = STUDIES.get(name, (0, []))
    work = TABLES.get(name) or [(f, (*given, s)) for f, given in cases for s in range(seeds)]
    # Separate processes, not forks: they inherit only the seed.
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        lines = list(pool.map(outcome, *zip(*work, strict=True)))
    rows = [(title, row) for title, rows in lines for row in (rows if name in TABLES else [rows])]
    write_lines(out / f"{name}.txt", [f"{title} {json.dumps(plain(row))}" for title, row in rows])
