"""The options of the genetic search (Pellegrini 1.8), and the values of the thesis for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autotune.strategies._genes import Rates
from autotune.strategies.options import Option, OptionValue, table


@dataclass(frozen=True)
class GeneticOptions:
    """The options of the genetic search; docs/strategies.md explains each."""

    population: int
    tournament: int
    offspring: int
    lengths: tuple[int, int]
    rates: Rates
    breed: int
    replace: str
    patience: int
    max_generations: int
    start_default: bool
    thesis: bool = False
    """Whether the search follows the text of the thesis only.

    The default is then no individual and no progress, the first population is whole, and children
    stay as they were bred.
    """


OPTIONS = table(
    Option("population", "int", 10, "number of individuals in the population", (4, 10_000)),
    Option(
        "tournament",
        "int",
        5,
        "individuals drawn for each tournament; those not yet run are drawn first",
        (3, 10_000),
    ),
    Option("offspring", "int", 2, "children per generation", (1, 1000)),
    Option(
        "init_min",
        "int",
        1,
        "smallest number of parameters of an individual in the first population",
        (1, 10_000),
    ),
    Option(
        "init_max",
        "int",
        2,
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
        0.15,
        "probability that a parameter of a mutated child changes its level",
        (0, 1),
    ),
    Option(
        "step",
        "float",
        0.5,
        "share of these changes that go to a neighbouring level, if the levels are ordered",
        (0, 1),
    ),
    Option(
        "drop", "float", 0.1, "probability that a parameter of a mutated child is left out", (0, 1)
    ),
    Option(
        "insert",
        "float",
        0.5,
        "expected number of parameters that are added to a mutated child",
        (0, 100),
    ),
    Option(
        "breed",
        "int",
        40,
        "children bred for each child that is run; a surrogate model selects it (1: no model)",
        (1, 10_000),
    ),
    Option(
        "replace",
        "choice",
        "population",
        "group whose worst individuals are replaced by the children",
        ("tournament", "population"),
    ),
    Option(
        "patience",
        "int",
        40,
        "generations without a new best, after the first population, until the search stops; "
        "0: no limit",
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
        "rules",
        "choice",
        "own",
        "thesis: each individual is run once, only a new best of the population counts as "
        "progress, and the first population is filled up to its size",
        ("own", "thesis"),
        later=True,
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
    "step": 0.0,
    "drop": 0.0,
    "insert": 0.0,
    "breed": 1,
    "replace": "tournament",
    "patience": 10,
    "max_generations": 0,
    "rules": "thesis",
}
"""The options exactly as in Pellegrini 1.8.1; docs/strategies.md compares them line by line."""


def genetic_options(values: Mapping[str, OptionValue]) -> GeneticOptions:
    """The options in the form that the population needs."""
    return GeneticOptions(
        population=int(values["population"]),
        tournament=int(values["tournament"]),
        offspring=int(values["offspring"]),
        lengths=(int(values["init_min"]), int(values["init_max"])),
        rates=Rates(
            individual=float(values["mutation_individual"]),
            gene=float(values["mutation_gene"]),
            step=float(values["step"]),
            drop=float(values["drop"]),
            insert=float(values["insert"]),
        ),
        breed=int(values["breed"]),
        replace=str(values["replace"]),
        patience=int(values["patience"]),
        max_generations=int(values["max_generations"]),
        start_default=values["start_default"] == "yes",
        thesis=values.get("rules") == "thesis",
    )
