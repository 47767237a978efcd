"""The contestants of the benchmark, and all courses of one contestant."""

from __future__ import annotations

import itertools
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from autotune.errors import UsageError
from autotune.space import Setting, Space
from autotune.strategies import Strategy, find, resolve_options
from benchmarks.search.checkpoint import Checkpoint, Figures
from benchmarks.search.code_digest import strategy_and_preset
from benchmarks.search.landscapes import Case, Land
from benchmarks.search.peers import MATCHED, Peer, find_peer, is_peer
from benchmarks.search.replayed_search import (
    ReplayedSearch,
    at_budgets,
    follow,
    proposals_within,
    prove,
)

SLOW_MS = 20.0
"""Milliseconds per trial above which a peer gets 10 seeds and 50 runs, and no null landscapes."""
SLOW_SEEDS, SLOW_RUNS = 10, 50
PROOF_TRIALS = 25

Make = Callable[[Space, int, Sequence[Setting], int], Strategy]
"""Makes a strategy from a space, a seed, a warm start, and the number of trials it will have."""
TRACED = "+traced"
"""Suffix of a contestant's name: it has a warm start from a prediction by one traced run."""
VARIANTS: dict[str, dict[str, object]] = {
    "+no-favourite": {"favourite": Strategy.favourite},
    "+no-repeats": {"repeats": False},
}
"""Other suffixes, and what they replace: the strategy's own estimates name no setting; the study
does not run a setting again at once that looks best."""


@dataclass
class Standing:
    """The courses of one contestant by landscape, one per seed; ``slow``: on the small plan.

    ``false_names`` counts recommendations on null landscapes after the study's proof, of
    ``proofs``.
    """

    name: str
    slow: bool = False
    courses: dict[str, list[ReplayedSearch]] = field(default_factory=dict)
    false_names: int = 0
    proofs: int = 0

    @property
    def own_ms(self) -> float:
        """Mean milliseconds of one ask with its tell."""
        own = [s for courses in self.courses.values() for c in courses for s in c.own_s]
        return 1e3 * float(np.mean(own)) if own else 0.0


def maker(name: str) -> Make:
    """A function that makes a contestant: a peer, or ours by its name.

    Our names are ``NAME`` or ``NAME:PRESET``, with one of the suffixes or none; those of peers
    ``NAME`` or ``NAME:matched``. Raises UsageError for a wrong name, or a peer that is not
    installed.
    """
    if is_peer(name):
        peer, matched = find_peer(name), name.endswith(MATCHED)
        return lambda space, seed, priors, trials: peer(
            space, seed=seed, trials=trials if matched else None
        )
    whole, plus, suffix = name.partition("+")
    base, preset = strategy_and_preset(whole)
    options = resolve_options(base, {}, preset)
    kind, traced = find(base), plus + suffix == TRACED
    if plus and not traced:
        if plus + suffix not in VARIANTS:
            known = ", ".join([TRACED, *VARIANTS])
            raise UsageError(
                f"contestant {name!r}: expected one of the suffixes {known}, or none",
                code="benchmark.fails",
            )
        kind = type(kind.__name__, (kind,), VARIANTS[plus + suffix])

    def make(space: Space, seed: int, priors: Sequence[Setting], trials: int) -> Strategy:
        return kind(space, seed=seed, options=options, priors=priors if traced else ())

    return make


def search(make: Make, land: Land, seed: int, runs: int) -> ReplayedSearch:
    """The course of a contestant, which is told how many trials so many runs hold.

    If it would search otherwise with another number of trials, it makes a search of its own for
    each number of runs that is reported.
    """

    def told(budget: int) -> Strategy:
        return make(land.space, seed, land.priors, proposals_within(land, seed, budget))

    strategy = told(runs)
    if isinstance(strategy, Peer) and strategy.trials is not None and strategy.budgeted:
        return at_budgets(land, told, seed, runs)
    return follow(land, strategy, seed, runs)


Turn = tuple[str, Case, int, int, bool]
"""Contestant, landscape, seed, search runs, and whether a whole study is run too."""


@dataclass(frozen=True)
class Rules:
    """The size of the benchmark.

    ``seeds`` searches of ``runs`` search runs are made on each landscape, and ``proofs`` whole
    studies on each null landscape, by ``jobs`` processes.
    """

    seeds: int
    runs: int
    proofs: int
    jobs: int = 1
    kept: Checkpoint | None = None


def compete(name: str, cases: Sequence[Case], rules: Rules) -> Standing:
    """All courses of one contestant; raises UsageError if it cannot take part."""
    make = maker(name)
    seeds, runs = rules.seeds, rules.runs
    standing = Standing(name)
    if is_peer(name):
        trial = search(make, cases[0].land(0), 0, min(runs, SLOW_RUNS))
        standing.slow = 1e3 * float(np.mean(trial.own_s or [0.0])) > SLOW_MS
    if standing.slow:
        cases = [case for case in cases if not case.null]
        seeds, runs = min(seeds, SLOW_SEEDS), min(runs, SLOW_RUNS)
    began = time.monotonic()
    turns: list[Turn] = [
        (name, case, seed, runs, case.null and not standing.slow and seed < rules.proofs)
        for case, seed in itertools.product(cases, range(seeds))
    ]
    known = rules.kept.read(name, len(turns)) if rules.kept else None
    done = []
    with _played(turns, rules.jobs, known) as played:
        for (_, case, seed, _, proved), (figures, false) in zip(turns, played, strict=True):
            done.append((figures, false))
            courses = standing.courses.setdefault(case.name, [])
            courses.append(ReplayedSearch(case.land(seed), *figures))
            standing.false_names += false
            standing.proofs += proved
            if len(courses) == seeds:
                _show(name, len(standing.courses), len(cases), time.monotonic() - began)
    if rules.kept and known is None:
        rules.kept.write(name, done)
    return standing


def take_part(
    names: Sequence[str], cases: Sequence[Case], rules: Rules
) -> tuple[list[Standing], dict[str, str]]:
    """The standing of each contestant, and the reasons of those that could not take part."""
    standings, absent = [], {}
    for name in names:
        try:
            standings.append(compete(name, cases, rules))
        except Exception as error:  # The hours of the others must not be lost.
            if not is_peer(name):
                raise
            absent[name] = f"{type(error).__name__}: {error}"
    return standings, absent


_turns: Sequence[Turn] = ()


@contextmanager
def _played(
    turns: Sequence[Turn], jobs: int, known: Iterable[tuple[Figures, bool]] | None
) -> Iterator[Iterable[tuple[Figures, bool]]]:
    """A course's figures and whether its study made a false recommendation, in order.

    They are taken from ``known``, or computed by so many processes. The processes are forked,
    because a landscape is made of functions; only figures are sent back.
    """
    if known is not None:
        yield known
        return
    global _turns
    _turns = turns
    if jobs == 1:
        yield map(_play, range(len(turns)))
        return
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        yield pool.imap(_play, range(len(turns)))


def _play(number: int) -> tuple[Figures, bool]:
    name, case, seed, runs, proved = _turns[number]
    make, land = maker(name), case.land(seed)
    course = search(make, land, seed, runs)
    false = False
    if proved:
        fresh = make(land.space, seed, land.priors, PROOF_TRIALS)
        false = prove(land, fresh, seed, PROOF_TRIALS) is not None
    return (course.named, course.own_s, course.ended), false


def _show(name: str, done: int, of: int, spent_s: float) -> None:
    left = spent_s / done * (of - done)
    print(
        f"{name}: {done} of {of} landscapes, about {left:.0f} s left", file=sys.stderr, flush=True
    )
