"""Option tables: values, presets and what is said about mistakes."""

from __future__ import annotations

import re

from autotune.errors import UsageError
from autotune.strategies import (
    create,
    describe,
    find,
    names,
    resolve_options,
)
from autotune.testing.landscapes import SMALL
from tests.case_table import case_table
from tests.refusals import refused


def test_defaults_then_preset_then_given_texts() -> None:
    assert resolve_options("ga", {})["population"] == 10
    thesis = resolve_options("ga", {"tournament": "7"}, "thesis")
    assert (thesis["population"], thesis["tournament"], thesis["breed"]) == (50, 7, 1)
    assert thesis["mutation_individual"] == 0.002
    assert resolve_options(find("random"), {}) == {}


def test_the_same_options_whether_given_or_not() -> None:
    assert resolve_options("ga", {"population": "10"}) == resolve_options("ga", {})


@case_table(
    ("strategy", "given", "preset", "code", "said"),
    [
        ("gaa", {}, None, "strategy.unknown", r"'gaa'.*\bga\?.*\bauto, ga, random"),
        ("ga", {"tournment": "3"}, None, "strategy.option_unknown", r"'tournment'.*tournament\?"),
        ("ga", {"population": "many"}, None, "strategy.option_range", "population=many: .* 4 .*"),
        ("ga", {"population": "5.5"}, None, "strategy.option_range", "population=5.5: .* 4 .*"),
        ("ga", {"mutation_gene": "2"}, None, "strategy.option_range", "mutation_gene=2: .*0.* 1$"),
        ("ga", {"mutation_gene": "nan"}, None, "strategy.option_range", "mutation_gene=nan: .* 1$"),
        (
            "ga",
            {"replace": "all"},
            None,
            "strategy.option_range",
            r"replace=all: .*tournament \| population",
        ),
        ("ga", {"tournament": "12"}, None, "strategy.option_range", r"tournament=12: .*\(10\)"),
        ("ga", {"offspring": "4"}, None, "strategy.option_range", r"tournament=5: .*\(6\)"),
        (
            "ga",
            {"init_min": "9", "init_max": "3"},
            None,
            "strategy.option_range",
            r"init_min=9: .*init_max \(3\)",
        ),
        ("ga", {}, "these", "strategy.preset_unknown", r"'these'.*thesis\?"),
        ("random", {}, "thesis", "strategy.preset_unknown", "random.*'thesis'"),
        ("random", {"seed": "1"}, None, "strategy.option_unknown", "random.*'seed'"),
        ("exhaustive", {"order": "gird"}, None, "strategy.option_range", r"order=gird: .*\| grid"),
    ],
)
def test_says_what_was_expected(
    strategy: str, given: dict[str, str], preset: str | None, code: str, said: str
) -> None:
    with refused(UsageError, code) as told:
        resolve_options(strategy, given, preset)
    assert re.search(said, str(told.value)), told.value


def test_a_strategy_made_directly_checks_its_options_too() -> None:
    with refused(UsageError, "strategy.option_range"):
        create("ga", SMALL, seed=0, options={"offspring": 4})


def test_the_description_names_every_strategy_option_and_preset() -> None:
    text = describe()
    for name in names():
        assert f"### {name}\n" in text
        for option in find(name).options.values():
            assert f"| {option.name} | {option.default} |" in text
            assert option.doc in text
    assert "| mutation_gene | 0.3 | 0.005 | 0 to 1 |" in text
