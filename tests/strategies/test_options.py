"""Option tables: values, presets and what is said about mistakes."""

from __future__ import annotations

import pytest

from autotune.errors import UsageError
from autotune.strategies import (
    create,
    describe,
    find,
    names,
    resolve_options,
)
from autotune.testing.landscapes import SMALL


def test_defaults_then_preset_then_given_texts() -> None:
    assert resolve_options("ga", {})["population"] == 10
    thesis = resolve_options("ga", {"tournament": "7"}, "thesis")
    assert (thesis["population"], thesis["tournament"], thesis["breed"]) == (50, 7, 1)
    assert thesis["mutation_individual"] == 0.002
    assert resolve_options(find("random"), {}) == {}


def test_the_same_options_whether_given_or_not() -> None:
    assert resolve_options("ga", {"population": "10"}) == resolve_options("ga", {})


@pytest.mark.parametrize(
    ("strategy", "given", "preset", "said"),
    [
        (
            "gaa",
            {},
            None,
            r"strategy 'gaa' is not known; did you mean ga\? \(known: auto, ga, random",
        ),
        ("ga", {"tournment": "3"}, None, "no option 'tournment'; did you mean tournament"),
        ("ga", {"population": "many"}, None, "population=many: expected a whole number from 4 to"),
        ("ga", {"population": "5.5"}, None, "population=5.5: expected a whole number"),
        ("ga", {"mutation_gene": "2"}, None, "mutation_gene=2: expected a number from 0 to 1"),
        ("ga", {"mutation_gene": "nan"}, None, "mutation_gene=nan: expected a number"),
        ("ga", {"replace": "all"}, None, r"replace=all: expected one of tournament \| population"),
        ("ga", {"tournament": "12"}, None, "tournament=12: expected at most the population"),
        ("ga", {"offspring": "4"}, None, r"tournament=5: expected at least offspring \+ 2 \(6\)"),
        ("ga", {"init_min": "9", "init_max": "3"}, None, "init_min=9: expected at most init_max"),
        ("ga", {}, "these", "no preset 'these'; did you mean thesis"),
        ("random", {}, "thesis", r"random has no preset 'thesis' \(it has none\)"),
        ("random", {"seed": "1"}, None, r"random has no option 'seed' \(it has none\)"),
        ("exhaustive", {"order": "gird"}, None, r"order=gird: expected one of random \| grid"),
    ],
)
def test_says_what_was_expected(
    strategy: str, given: dict[str, str], preset: str | None, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        resolve_options(strategy, given, preset)


def test_a_strategy_made_directly_checks_its_options_too() -> None:
    with pytest.raises(UsageError, match=r"offspring \+ 2"):
        create("ga", SMALL, seed=0, options={"offspring": 4})


def test_the_description_names_every_strategy_option_and_preset() -> None:
    text = describe()
    for name in names():
        assert f"### {name}\n" in text
        for option in find(name).options.values():
            assert f"| {option.name} | {option.default} |" in text
            assert option.doc in text
    assert "| mutation_gene | 0.3 | 0.005 | 0 to 1 |" in text
