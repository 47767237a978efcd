"""The contract on every registered strategy, and on the published preset of the genetic search."""

from __future__ import annotations

from typing import Any

import pytest

from autotune.space import Space
from autotune.strategies import Strategy, find, names, resolve_options
from autotune.strategies.options import missing_package
from autotune.testing import StrategyContract, StrategyQuality


class TestStrategies(StrategyContract, StrategyQuality):
    @pytest.fixture(params=names())
    def kind(self, request: pytest.FixtureRequest) -> type[Strategy]:
        name = str(request.param)
        if absent := missing_package(find(name).needs):
            short = name.rpartition(":")[2]
            pytest.skip(f"strategy {short} needs {', '.join(absent)}, which is not installed")
        return find(name)


class TestThesis(StrategyContract, StrategyQuality):
    @pytest.fixture
    def kind(self) -> type[Strategy]:
        return find("ga")

    def make(self, kind: type[Strategy], space: Space, seed: int = 0, **more: Any) -> Strategy:
        options = resolve_options(kind, {"patience": 0}, "thesis")
        return kind(space, seed=seed, options=options, **more)
