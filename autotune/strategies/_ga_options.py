"""The options of the genetic search, and the thesis's values for them."""

from __future__ import annotations

from collections.abc import Mapping

from autotune.strategies._genes import Rates
from autotune.strategies._population import Plan
from autotune.strategies.options import Option, OptionValue, table

OPTIONS = table(
    Option("population", "int", 10, "individuals", (4, 10_000)),
    Option(
        "tournament",
        "int",
        5,
        "individuals drawn per generation; those not yet run first",
        (3, 10_000),
    ),
    Option("offspring", "int", 2, "children per generation", (1, 1000)),
    Option("init_min", "int", 1, "fewest parameters in an individual at the start", (1, 10_000)),
    Option(
        "init_max", "int", 2, "most parameters in an individual at the start; 0: all", (0, 10_000)
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
        "then: probability of each of its parameters to change",
        (0, 1),
    ),
    Option(
        "step",
        "float",
        0.5,
        "share of those changes that go to a neighbouring level, where levels are ordered",
        (0, 1),
    ),
    Option(
        "drop", "float", 0.1, "then: probability of each of its parameters to be left out", (0, 1)
    ),
    Option("insert", "float", 0.5, "then: expected number of parameters added", (0, 100)),
    Option(
        "breed",
        "int",
        40,
        "children bred for each one run; a model picks it (1: no model)",
        (1, 10_000),
    ),
    Option(
        "replace",
        "choice",
        "population",
        "whose worst the children replace",
        ("tournament", "population"),
    ),
    Option(
        "patience",
        "int",
        40,
        "generations without a new best, after the first population, until it stops; 0: none",
        (0, 100_000),
    ),
    Option(
        "max_generations", "int", 0, "generations after which to stop; 0: no end", (0, 1_000_000)
    ),
    Option(
        "rules",
        "choice",
        "own",
        "thesis: each individual is run once, only the population's best counts as progress, and "
        "the first population is whole",
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
"""Pellegrini 1.8.1, to the letter; docs/strategies.md goes through it line by line."""


def plan(values: Mapping[str, OptionValue]) -> Plan:
    """The options as the population wants them."""
    return Plan(
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
