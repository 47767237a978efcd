"""Strategies and formats of installed packages are found as any other."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import pytest

from autotune import strategies
from autotune.errors import UsageError
from autotune.publish import formats
from autotune.strategies import registry
from runner.errors import RunnerError
from tests.cli.conftest import Cli, cli
from tests.refusals import refused

__all__ = ["cli"]

STRATEGY = """
import autotune

class InOrder(autotune.Strategy):
    name = "in-order"
    summary = "whatever is new"

    def propose(self):
        return self.anything_new()
"""
FORMAT = """
from autotune.publish.formats.scripts import Sh

class Ksh(Sh):
    name = "ksh"
    summary = "a script for ksh"
"""
Install = Callable[[str, str, str], None]


@pytest.fixture
def install(package: Install) -> Iterator[Install]:
    def put(group: str, entry: str, text: str) -> None:
        package(group, entry, text)
        registry._installed_names.cache_clear()

    known = sys.modules.get("autotune.cli.search")
    yield put
    registry._installed_names.cache_clear()
    if known is None:  # Imported meanwhile: its help has the strategy that is no longer there.
        sys.modules.pop("autotune.cli.search", None)


def test_a_strategy_has_a_name_and_no_code_in_its_studies(install: Install, cli: Cli) -> None:
    install(registry.GROUP, "in-order = some_strategies:InOrder", STRATEGY)
    assert strategies.names()[-1] == "in-order"
    found = strategies.find("in-order")
    assert strategies.code_of(found) == ""

    class Other(found):  # type: ignore[valid-type, misc]
        """Of the same name, passed as an object."""

    assert len(strategies.code_of(Other)) == 16
    done = cli("search", "--strategy", "in-ordr", "-n", "1", "--", "true")
    assert done.code == 2
    assert "[strategy.unknown]" in done.err
    assert "in-order?" in done.err


@pytest.mark.parametrize(
    ("entry", "text", "named"),
    [
        ("in-order = some_strategies:InOrder", "import nothing_at_all", "nothing_at_all"),
        ("in-order = some_strategies:os", "import os", "autotune.strategies"),
    ],
)
def test_a_broken_one_is_an_error_for_who_asks(
    install: Install, cli: Cli, entry: str, text: str, named: str
) -> None:
    install(registry.GROUP, entry, text)
    assert strategies.find("ga").name == "ga"
    done = cli("search", "--strategy", "in-order", "-n", "1", "--", "true")
    assert done.code == 1
    assert "[extension.invalid]" in done.err
    assert named in done.err
    assert cli("search", "--help").code == 0


def test_its_own_name_is_the_entry_point_s(install: Install) -> None:
    install(registry.GROUP, "other = some_strategies:InOrder", STRATEGY)
    with refused(UsageError, "extension.invalid"):
        strategies.find("other")


def test_ours_are_not_replaced(install: Install) -> None:
    install(registry.GROUP, "ga = some_strategies:InOrder", STRATEGY)
    assert strategies.find("ga").__name__ == "Genetic"
    assert len(set(strategies.names())) == len(strategies.names())


def test_a_format_is_listed_and_found(install: Install, cli: Cli) -> None:
    install(formats.GROUP, "ksh = some_formats:Ksh", FORMAT)
    assert formats.find("ksh").summary == "a script for ksh"
    assert "a script for ksh" in cli("publish", "--formats").out


def test_a_broken_format_is_named(install: Install) -> None:
    install(formats.GROUP, "ksh = some_formats:Nothing", FORMAT)
    with refused(RunnerError, "extension.invalid"):
        formats.find("ksh")
