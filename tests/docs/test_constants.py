"""Figures of the documentation that are constants of the code.

Each line: the page, a sentence of it in which ``{}`` stands for a figure, and where the figures
come from.  The sentence must be there, once, with exactly these figures: the test fails where
either side changes.  Tables of the strategies' options are generated
(tests/strategies/test_document.py).
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autotune.anova import best_known, classwide, importance, interactions, oneway
from autotune.anova.factors import FactorOptions as Judging
from autotune.api.predict import MOST_TIMES
from autotune.calibration import rounds as calibration_rounds
from autotune.collectives import tournament
from autotune.collectives.tables import TableTerms
from autotune.datasets.plan import BLOCK_S, ExplorationPlan
from autotune.errors import UsageError, WorkError
from autotune.prediction import classes, composed, examples, predictor, warm_start
from autotune.space import load_space
from autotune.stats import blocks, effects, log_ratios, racing, sequential, warnings
from autotune.stats import screening as screening_rule
from autotune.stats.comparison import MIN_GAIN
from autotune.stats.estimate import MIN_RUNS, estimate
from autotune.store import leases
from autotune.study import (
    ablation,
    budget,
    confirmation,
    fresh_pairs,
    rounds,
    screening,
    selection,
)
from autotune.study.budget import SearchPlan
from autotune.study.evaluator import MachineEvaluator
from runner import guard
from runner.mate import launch
from runner.mate.config import MAX_LOCAL_RANKS, Config
from runner.micro import operations, sizes
from runner.native import words
from runner.supervise import counters, messages, process_tree, server, watches
from runner.supervise.messages import ExecRequest
from runner.testbed import measure
from runner.trace import run as tracing

ROOT = Path(__file__).parents[2]
WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
OTHERS = {"half": 0.5, "quarter": 0.25, "second": 2.0, "third": 3.0}
FIGURE = r"(\d[\d,]*(?:\.\d+)?|" + "|".join([*WORDS, *OTHERS]) + ")"


def default(function: Callable[..., Any], name: str) -> Any:
    """What an argument is if nobody gives it."""
    return inspect.signature(function).parameters[name].default


def limit_of(space: str, name: str) -> float:
    """The number in the rule of a space that a value is at most it."""
    text = (ROOT / "configs" / "spaces" / f"{space}.toml").read_text()
    (found,) = re.findall(rf'^rule = "{name} <= (\d+)"$', text, re.MULTILINE)
    return float(found)


def percent(share: float) -> float:
    return 100 * share


SEARCH = SearchPlan()
LOOK = sequential.LookPlan()
FIRST_ROUND = sequential.ErrorBudget().proof(1)
FOREIGN_S = guard.limit_s(0.0)
FOREIGN_SHARE = guard.limit_s(1.0) - FOREIGN_S
THESIS = load_space("openmpi-thesis")

TABLE: list[tuple[str, str, tuple[float, ...]]] = [
    # concepts
    ("concepts", "the default is run again after every {} search runs", (SEARCH.default_every,)),
    ("concepts", "a run {} times slower than the best so far", (SEARCH.limit_factor,)),
    ("concepts", "earns a {} run at once", (SEARCH.promising_runs,)),
    ("concepts", "further runs ({} per setting tried, no more)", (SEARCH.race_share,)),
    (
        "concepts",
        "Where nothing has a {} % chance of a gain worth naming",
        (percent(default(racing.finalists, "doubt")),),
    ),
    ("concepts", "Up to {} finalists run against the default", (SEARCH.finalists,)),
    (
        "concepts",
        "are fixed beforehand ({}, {}, {}, {}, {}; for two finalists {}, {}, {}, {}, {})",
        (*sequential.LOOKS, *rounds.LOOKS_OF_TWO),
    ),
    ("concepts", "a chance of less than {} % is given up", (percent(rounds.FUTILITY),)),
    (
        "concepts",
        "measured once more on {} to {} fresh pairs",
        (fresh_pairs.FRESH_LEAST, fresh_pairs.FRESH_BLOCKS),
    ),
    ("concepts", "the {} % error is split over looks", (percent(SEARCH.alpha),)),
    (
        "concepts",
        "beyond twice the smallest search {} % (at most {} launches)",
        (percent(budget.KEPT_SHARE), budget.KEPT_MOST),
    ),
    ("concepts", "The smallest search takes {} launches", (SEARCH.least_runs,)),
    # fidelity
    ("fidelity", "a warm-up, {} runs, and again", (screening_rule.DEFAULTS,)),
    ("fidelity", "each of the last\n   {} runs of the default", (screening_rule.DEFAULTS,)),
    ("fidelity", "at most 1/{} ({} %)", (1 / screening_rule.CHANCE, 4.8)),
    ("fidelity", "The first {} settings are run once in the cheap form", (screening.BOTH_FIRST,)),
    ("fidelity", "is below {}, multiplied", (screening_rule.AGREEMENT,)),
    ("fidelity", "but by no less than {}.", (screening_rule.LEAST_RELIABILITY,)),
    # statistics
    (
        "statistics",
        "For 95 % it takes {} runs (1 - 2 * 2^-{} = ",
        (MIN_RUNS, MIN_RUNS),
    ),
    (
        "statistics",
        "fewer than {} runs; robust spread (1.4826 MAD / median) above {} %",
        (MIN_RUNS, percent(warnings.SPREAD)),
    ),
    ("statistics", "farther than {} robust standard deviations", (warnings._OUTLIER,)),
    ("statistics", "the metric's step above {} % of the median", (percent(warnings.COARSE),)),
    (
        "statistics",
        "median wall time below `min_time` ({} s)",
        (default(estimate, "min_time"),),
    ),
    ("statistics", "common divisor from {} runs on", (log_ratios._GCD_RUNS,)),
    ("statistics", "(`min_gain`, {} %, is the smallest gain", (percent(MIN_GAIN),)),
    (
        "statistics",
        "looks ({}, {}, {}, {}, {} blocks) and splits alpha ({} % for a comparison",
        (*sequential.LOOKS, percent(LOOK.alpha)),
    ),
    ("statistics", "end the interval at {}, {}, {}, {}, {} |", sequential.LOOKS),
    ("statistics", "*better* (from {} blocks on)", (LOOK.win_from,)),
    (
        "statistics",
        "first round of a search, looks at {}, {}, {}, {}, {}",
        rounds.LOOKS_OF_TWO,
    ),
    (
        "statistics",
        "({} blocks for one finalist, {} for two, {} for three)",
        tuple(rounds.look_plan(n, FIRST_ROUND, MIN_GAIN).win_from for n in (1, 2, 3)),
    ),
    ("statistics", "a finalist whose chance is below {} %", (percent(rounds.FUTILITY),)),
    (
        "statistics",
        "{} to {} pairs are measured after the decision",
        (fresh_pairs.FRESH_LEAST, fresh_pairs.FRESH_BLOCKS),
    ),
    (
        "statistics",
        "the standard error shall be a {} of the gain",
        (round(1 / fresh_pairs.FRESH_ERROR),),
    ),
    ("statistics", "only if the evidence rises by more than {}", (effects._EVIDENCE,)),
    ("statistics", "Student's t, {} degrees of freedom), and", (effects._TAIL,)),
    ("statistics", "everything slower than exp({}) counts", (effects._CLIP,)),
    ("statistics", "no parameter is seen to act to {} finalists", (selection.MOST_UNEXPLAINED,)),
    ("statistics", "or if {} blocks are all slower", (ablation.SURE_BLOCKS,)),
    (
        "statistics",
        "a win has a chance below {} % even if the gain were one that the plan finds with {} %",
        (percent(LOOK.futility), percent(sequential._DESIGN_POWER)),
    ),
    (
        "statistics",
        (
            "of the {} defaults around is off the median of all by more than {} % and more than "
            "chance ({} stand"
        ),
        (
            default(blocks.drifted, "window"),
            percent(default(blocks.drifted, "tolerance")),
            blocks._DRIFT_SIGMAS,
        ),
    ),
    ("statistics", "medians of the {} nearest runs on either side", (blocks.NEAREST,)),
    ("statistics", "Where more than {} of the new blocks are away", (confirmation.DRIFT_SHARE,)),
    ("statistics", "Fisher's exact test, one-sided at {} %", (percent(warnings.ALPHA),)),
    (
        "statistics",
        "{} waits for a quiet machine in a row were in vain, or {} times",
        (MachineEvaluator.max_waits, MachineEvaluator.max_rejects),
    ),
    (
        "statistics",
        "ended at `time_limit` ({}x the incumbent",
        (default(racing.time_limit, "factor"),),
    ),
    ("statistics", "no such chance is above {} %", (percent(default(racing.next_run, "doubt")),)),
    ("statistics", "names up to {}; none", (default(racing.finalists, "most"),)),
    (
        "statistics",
        "none, if nothing has a {} % chance",
        (percent(default(racing.finalists, "doubt")),),
    ),
    # measuring, application-owner, apps
    (
        "measuring",
        "`linger_s` ({} s), SIGTERM, `grace_s` ({} s)",
        (ExecRequest.linger_s, ExecRequest.grace_s),
    ),
    ("measuring", "the same with at most {} s of grace", (server._ORPHAN_GRACE_S,)),
    ("measuring", "SIGKILL has no effect for {} s", (process_tree._PATIENCE_S,)),
    ("measuring", "why `grace_s` is {} s", (ExecRequest.grace_s,)),
    ("measuring", "Where the table costs more than {} ms", (1000 * counters._TABLE_COST_S,)),
    ("measuring", "which is cut at {} KiB", (messages.LINE_LIMIT / 1024,)),
    (
        "measuring",
        "Looks at `/proc` at {}, {}, {}, {} ...",
        tuple(1000 * watches.RANKS_FIRST_LOOK_S * n for n in (1, 2, 4, 8)),
    ),
    ("measuring", "limit = {} s + {} x window", (FOREIGN_S, FOREIGN_SHARE)),
    (
        "measuring",
        "limit is {} s x sqrt(N) + {} x window",
        (guard.limit_s(0.0, 4) / 2, FOREIGN_SHARE),
    ),
    ("measuring", "and up to {} processes that used most CPU", (default(guard.culprits, "most"),)),
    (
        "application-owner",
        "others used more than {} s + {} % of its wall time",
        (FOREIGN_S, percent(FOREIGN_SHARE)),
    ),
    (
        "application-owner",
        "after {} waits of {} s in a row",
        (MachineEvaluator.max_waits, MachineEvaluator.patience_s),
    ),
    (
        "application-owner",
        "A program that runs for less than {} s cannot",
        (default(estimate, "min_time"),),
    ),
    ("apps", "other programs used at most {} s + {} %", (FOREIGN_S, percent(FOREIGN_SHARE))),
    # workers, database
    (
        "workers",
        "It renews a lease every {} s; after {} s",
        (leases.BEAT_S, leases.LEASE_S),
    ),
    ("database", "({} s without a heartbeat", (leases.LEASE_S,)),
    # spaces
    (
        "spaces",
        "the {} parameters and {} levels of Pellegrini's thesis",
        (len(THESIS.parameters), sum(len(p.levels) for p in THESIS.parameters)),
    ),
    (
        "spaces",
        "`idle_sleep` | microseconds | {}, {} |",
        (Config.idle_spin_us, Config.idle_sleep_us),
    ),
    ("spaces", "at most {} ranks per process", (limit_of("mate", "ranks_per_process"),)),
    # features, micro, testbed
    ("features", "run is repeated ({} runs at most)", (tracing.ATTEMPTS,)),
    (
        "micro",
        "default {}, from 32 KiB on fewer ({} MiB in all, at least {})",
        (sizes.MOST, sizes.BYTES >> 20, sizes.LEAST),
    ),
    ("micro", "a window of {} messages", (operations.WINDOW,)),
    ("micro", "median over {} batches", (sizes.BATCHES,)),
    ("testbed", "readings, up to {} times)", (measure._ATTEMPTS,)),
    # datasets
    ("datasets", "cut into **blocks** of at most {} minutes", (BLOCK_S / 60,)),
    (
        "datasets",
        "explore: settings = {}, best = {}, more = {} instead",
        tuple(ExplorationPlan.model_fields[n].default for n in ("settings", "best", "more")),
    ),
    ("datasets", "default_every = {} #", (ExplorationPlan.model_fields["default_every"].default,)),
    ("datasets", "slowest = {} #", (ExplorationPlan.model_fields["slowest"].default,)),
    # prediction
    ("prediction", "Ratios above {}, and failures, count as {}", 2 * (math.exp(examples.EXTREME),)),
    ("prediction", "weighs {} times as much as a gain missed", (predictor.WRONG,)),
    ("prediction", "it is never below {} %", (percent(math.expm1(predictor.SURE)),)),
    ("prediction", "farther from the training set than {} % of", (percent(predictor.REACH),)),
    ("prediction", "chance of being slower is at most {} %", (percent(predictor.HARM),)),
    ("prediction", "Up to {} settings with the best scores", (warm_start.MOST,)),
    # analysis of variance
    ("anova", "the outermost {} % at either end", (percent(oneway.WINSOR),)),
    ("anova", "does not beat the default by {} standard errors", (best_known.SIGMAS,)),
    ("anova", "`--preset thesis`: one-way, {} %", (percent(Judging.level),)),
    ("anova", "`--preset careful` (default): mixed, {} %", (percent(Judging.level),)),
    ("anova", "A level with fewer than {} observations", (oneway.MIN_LEVEL,)),
    ("anova", "has {} settings or more", (interactions.MIN_COMBINATION,)),
    ("anova", "With fewer than {} settings it refuses", (importance.LEAST,)),
    ("anova", "explains less than {} % of unseen", (percent(importance.TRUSTED),)),
    (
        "anova",
        "best of {} drawn at random, mean of {}",
        (classwide.BEST_OF, classwide.DRAWS),
    ),
    ("anova", "mean silhouette below {}", (classes.APART,)),
    # calibration
    ("calibrate", "The {} fastest at each point run twice more", (calibration_rounds.FASTEST,)),
    (
        "calibrate",
        "up to {} of the fastest levels of different parameters together, at most {} settings",
        (calibration_rounds.JOINT, calibration_rounds.MOST_JOINT),
    ),
    (
        "calibrate",
        "at most {} settings, run {} times more at all sizes",
        (calibration_rounds.MOST_WINNERS, calibration_rounds.TIMES),
    ),
    ("prediction", "Responses with fewer than {} runs", (composed.ENOUGH,)),
    ("prediction", "only if two are at least {} hour apart", (composed.APART_H,)),
    ("calibrate", "MPI version and machine, the last {}", (MOST_TIMES,)),
    # collectives
    (
        "collectives",
        "All candidates at every {} size; those within {} % of the best",
        (tournament.COARSE, percent(tournament.SURVIVES - 1)),
    ),
    ("collectives", "the best {} of each size once more", (tournament.FINAL,)),
    (
        "collectives",
        "until {} % of a full grid's measurements",
        (percent(tournament.SHARE),),
    ),
    ("collectives", "every further entry costs {} %", (percent(tournament.CHANGE),)),
    ("collectives", "own choice by `--min-gain` ({} %)", (percent(TableTerms.min_gain),)),
    ("collectives", "`--pairs` ({}) interleaved pairs", (TableTerms.pairs,)),
    # reference
    (
        "commands",
        "{} the work failed, {} wrong usage or input",
        (WorkError.exit_code, UsageError.exit_code),
    ),
    # the MATE runtime
    ("runner/mate/README", "(workers) | ranks per process, at most {} |", (MAX_LOCAL_RANKS,)),
    (
        "runner/mate/README",
        "`idle_spin_us` ({}), `idle_sleep_us` ({}) |",
        (Config.idle_spin_us, Config.idle_sleep_us),
    ),
    ("runner/mate/README", "between two regions, at most every {} us", (1e6 * words.POLL_GAP_S,)),
    ("runner/mate/README", "and after {} us also the last one", (1e6 * words.PATIENCE_S,)),
    (
        "runner/mate/README",
        "an idle process looks for such ranks after {} us",
        (1e6 * words.VISIT_S,),
    ),
    ("runner/mate/README", "each time a {} longer", (words.GROWTH - 1,)),
    ("runner/mate/README", "switch interval is {} ms", (1e3 * launch._SWITCH_INTERVAL_S,)),
]


def number(text: str) -> float:
    """A figure as it is written; words for small ones count."""
    if text in WORDS:
        return float(WORDS.index(text))
    return OTHERS[text] if text in OTHERS else float(text.replace(",", ""))


def text_of(page: str) -> str:
    """A page of docs by its name, or another one by its path without the ending."""
    if "/" in page:
        return (ROOT / f"{page}.md").read_text()
    (found,) = (ROOT / "docs").rglob(f"{page}.md")
    return found.read_text()


def pattern(sentence: str) -> re.Pattern[str]:
    """The sentence with a group for each figure, over any line ends."""
    parts = [r"\s+".join(map(re.escape, part.split(" "))) for part in sentence.split("{}")]
    return re.compile(FIGURE.join(parts))


def compare(text: str, sentence: str, values: tuple[float, ...]) -> str | None:
    """What is wrong with a sentence of a page; None if it says these values."""
    found = pattern(sentence).findall(text)
    if len(found) != 1:
        return f"found {len(found)} times, expected once: {sentence}"
    groups = (found[0],) if isinstance(found[0], str) else found[0]
    said = tuple(map(number, groups))
    if said != pytest.approx(values, rel=1e-9):
        return f"the page says {said}, the code {values}: {sentence}"
    return None


each_line = pytest.mark.parametrize(
    ("page", "sentence", "values"), TABLE, ids=[f"{p}: {s}" for p, s, _ in TABLE]
)


@each_line
def test_the_page_says_what_the_code_does(
    page: str, sentence: str, values: tuple[float, ...]
) -> None:
    assert sentence.count("{}") == len(values) > 0
    assert compare(text_of(page), sentence, values) is None


@each_line
def test_a_change_of_either_side_is_seen(
    page: str, sentence: str, values: tuple[float, ...]
) -> None:
    text = text_of(page)
    for place in range(len(values)):
        other = (*values[:place], values[place] * 1.5 + 1, *values[place + 1 :])
        assert compare(text, sentence, other) is not None, "the code's side"
        match = pattern(sentence).search(text)
        assert match is not None
        changed = text[: match.start(place + 1)] + "77" + text[match.end(place + 1) :]
        assert compare(changed, sentence, values) is not None, "the page's side"
