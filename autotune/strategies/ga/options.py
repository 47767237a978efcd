"""The options of the genetic search (Pellegrini 1.8), and their values in the thesis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autotune.strategies.ga.operators import Rates
from autotune.strategies.options import Option, OptionValue, table

_STEP = 0.5
"""Share of changed ordered levels that move to a neighbouring level."""
_DROP = 0.1
"""Probability that a parameter of a mutated child is left out."""


@dataclass(frozen=True)
class GeneticOptions:
    """The options of the genetic search; docs/explanation/strategies.md explains each."""

    population: int
    tournament: int
    offspring: int
    lengths: tuple[int, int]
    rates: Rates
    breed: int
    inner: int
    replace: str
    patience: int
    max_generations: int
    start_default: bool
    ei_threshold: float
    ei_patience: int
    min_trials: int
    thesis: bool = False
    """True if the search follows the text of the thesis only.

    Then the default is not an individual and not progress, the first population is complete, and
    children are not changed after breeding.
    """

    @property
    def is_assisted(self) -> bool:
        """True if a surrogate selects the children."""
        return self.breed > 1


OPTIONS = table(
    Option("population", "int", 10, "number of individuals in the population", (4, 10_000)),
    Option(
        "tournament",
        "int",
        5,
        "individuals drawn for each tournament; those not yet run are drawn first",
        (3, 10_000),
    ),
    Option("offspring", "int", 1, "children per generation", (1, 1000)),
    Option(
        "init_min",
        "int",
        2,
        "smallest number of parameters of an individual in the first population",
        (1, 10_000),
    ),
    Option(
        "init_max",
        "int",
        4,
        "largest number of parameters of an individual in the first population; 0: all",
        (0, 10_000),
    ),
    Option(
        "start_default",
        "choice",
        "yes",
        "the default is an individual of the first population",
        ("yes", "no"),
    ),
    Option("mutation_individual", "float", 1.0, "probability that a child is mutated", (0, 1)),
    Option(
        "mutation_gene",
        "float",
        0.3,
        "probability that a parameter of a mutated child changes its level",
        (0, 1),
    ),
    Option(
        "insert",
        "float",
        1.0,
        "expected number of parameters that are added to a mutated child",
        (0, 100),
    ),
    Option(
        "breed",
        "int",
        40,
        "children bred for each child that is run; a surrogate selects it (1: no surrogate)",
        (1, 10_000),
    ),
    Option(
        "inner",
        "int",
        5,
        "with a surrogate: further generations for each child that is run, which only the "
        "surrogate judges",
        (0, 100),
    ),
    Option(
        "replace",
        "choice",
        "population",
        "group whose worst individuals are replaced by the children; with a surrogate always the "
        "population",
        ("tournament", "population"),
    ),
    Option(
        "patience",
        "int",
        30,
        "generations without a new best until the search stops, after as many others; 0: never",
        (0, 100_000),
    ),
    Option(
        "max_generations",
        "int",
        0,
        "number of generations after which the search stops; 0: no limit",
        (0, 1_000_000),
    ),
    Option(
        "ei_threshold",
        "float",
        0.002,
        "with a surrogate: expected improvement (of the log ratio) below which a run is not worth "
        "its cost",
        (0, 1),
    ),
    Option(
        "ei_patience",
        "int",
        10,
        "with a surrogate: generations without a new best until the search stops if no candidate "
        "is worth its cost",
        (1, 100_000),
    ),
    Option(
        "min_trials",
        "int",
        10,
        "with a surrogate: settings tried before it may stop",
        (0, 100_000),
    ),
    Option(
        "rules",
        "choice",
        "own",
        "thesis: each individual is run once, only a new best of the population counts as "
        "progress, and the first population is filled up to its size",
        ("own", "thesis"),
    ),
)

THESIS: dict[str, OptionValue] = {
    "population": 50,
    "tournament": 5,
    "offspring": 2,
    "init_min": 1,
    "init_max": 0,
    "start_default": "no",
    "mutation_individual": 0.002,
    "mutation_gene": 0.005,
    "insert": 0.0,
    "breed": 1,
    "replace": "tournament",
    "patience": 10,
    "max_generations": 0,
    "rules": "thesis",
}
"""The options exactly as in Pellegrini 1.8.1; docs/explanation/strategies.md compares them line by
line."""


_SAME_NAMES = (
    *("population", "tournament", "offspring", "breed", "inner", "replace", "patience"),
    *("max_generations", "ei_threshold", "ei_patience", "min_trials"),
)


def genetic_options(options: Mapping[str, OptionValue]) -> GeneticOptions:
    """The options in the form that the population needs; absent ones have their defaults."""
    values = {name: option.default for name, option in OPTIONS.items()} | dict(options)
    thesis = values["rules"] == "thesis"
    same: dict[str, Any] = {name: values[name] for name in _SAME_NAMES}
    return GeneticOptions(
        **same,
        lengths=(int(values["init_min"]), int(values["init_max"])),
        rates=Rates(
            individual=float(values["mutation_individual"]),
            gene=float(values["mutation_gene"]),
            step=0.0 if thesis else _STEP,
            drop=0.0 if thesis else _DROP,
            insert=float(values["insert"]),
        ),
        start_default=values["start_default"] == "yes",
        thesis=thesis,
    )
