"""The contract on every registered strategy, and on the published preset of the genetic search."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.contract.strategies")

from autotune.space import Space  # noqa: E402
from autotune.strategies import Strategy, create, find, names, resolve_options  # noqa: E402
from autotune.strategies._optional import missing  # noqa: E402
from tests.contract.strategies import StrategyContract  # noqa: E402


class TestStrategies(StrategyContract):
    @pytest.fixture(params=names())
    def name(self, request: pytest.FixtureRequest) -> str:
        name = str(request.param)
        if absent := missing(find(name).needs):
            pytest.skip(f"strategy {name} needs {', '.join(absent)}, which is not installed")
        return name


class TestThesis(StrategyContract):
    @pytest.fixture
    def name(self) -> str:
        return "ga"

    def make(self, name: str, space: Space, seed: int = 0, **more: object) -> Strategy:
        options = resolve_options(name, {"patience": 0}, "thesis")
        return create(name, space, seed=seed, options=options, **more)  # type: ignore[arg-type]
