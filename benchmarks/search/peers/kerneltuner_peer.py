"""The peers of Kernel Tuner: its genetic algorithm and its particle swarm."""

# mypy: disable-error-code="import-not-found, import-untyped, misc"

from __future__ import annotations

import queue
import random
import threading
from types import ModuleType
from typing import ClassVar

import numpy as np
from kernel_tuner.interface import Options
from kernel_tuner.searchspace import Searchspace
from kernel_tuner.strategies import genetic_algorithm, pso
from kernel_tuner.util import TuningBudget

from autotune.strategies.codec import Codes
from benchmarks.search.peers.base import Peer

_MOST = 1_000_000
"""Evaluations after which a strategy of Kernel Tuner would end; known settings count too."""


class _KernelTuner(Peer):
    """A strategy with its own defaults; it runs in a thread, which waits for each loss.

    It is told the constraints, as a user would tell them, and keeps to them. Matched: it starts at
    the default (``x0``).
    """

    strategy: ClassVar[ModuleType]

    def prepare(self) -> None:
        random.seed(self.seed)  # Kernel Tuner draws from the global generators.
        np.random.seed(self.seed % 2**32)
        names = [f"p{number:03d}" for number in range(len(self.sizes))]
        choices = {name: list(range(size)) for name, size in zip(names, self.sizes, strict=True)}

        def allowed(ranks: dict[str, int]) -> bool:
            codes = tuple(
                order[ranks[name]] for order, name in zip(self._codes, names, strict=True)
            )
            return self.codec.is_canonical(codes)

        known = self._whole(choices, allowed)
        own: dict[str, object] = {}
        if self.trials is not None and self.default is not None:
            own["x0"] = list(self.default)
        options = Options(
            strategy_options=Options(own),
            objective=["time"],
            objective_higher_is_better=[False],
            verbose=False,
            budget=TuningBudget(None, _MOST),
        )
        self._wanted: queue.Queue[Codes | None] = queue.Queue()
        self._losses_back: queue.Queue[float] = queue.Queue()

        def search() -> None:
            try:
                self.strategy.tune(known, self, options)
            finally:
                self._wanted.put(None)

        threading.Thread(target=search, daemon=True).start()

    @staticmethod
    def _whole(choices: dict[str, list[int]], allowed: object) -> Searchspace:
        return Searchspace(choices, [allowed], _MOST)

    def run(self, configs: list[Codes], _: Options) -> list[dict[str, float]]:
        """Called by Kernel Tuner: the loss of each configuration."""
        results: list[dict[str, float]] = []
        for config in configs:
            self._wanted.put(tuple(int(rank) for rank in config))
            results.append({"time": self._losses_back.get()})
        return results

    def add_strategy_time(self, _: float) -> None:
        """Called by Kernel Tuner, which counts its own time."""

    def draw(self) -> Codes | None:
        return self._wanted.get()

    def report(self, ranks: Codes, loss: float) -> None:
        self._losses_back.put(loss)


class KernelTunerGA(_KernelTuner):
    """The genetic algorithm."""

    name = "kerneltuner-ga"
    strategy = genetic_algorithm


class KernelTunerPSO(_KernelTuner):
    """The particle swarm."""

    name = "kerneltuner-pso"
    strategy = pso
