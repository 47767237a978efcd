"""The peer pymoo: its genetic algorithm for mixed variables."""

# mypy: disable-error-code="import-not-found, import-untyped, misc"

from __future__ import annotations

from pymoo.algorithms.soo.nonconvex.ga import FitnessSurvival
from pymoo.core.mixed import MixedVariableGA
from pymoo.core.population import Population
from pymoo.core.problem import Problem
from pymoo.core.variable import Choice, Integer
from pymoo.termination import get_termination

from autotune.strategies.codec import Codes
from benchmarks.search.peers.base import STARTUP, Peer

_POPULATION = 20


class PymooGA(Peer):
    """MixedVariableGA with every parameter as a choice, in populations of 20.

    Matched: populations of five, integers for ordered levels, the default in the first population.
    """

    name = "pymoo-ga"

    def prepare(self) -> None:
        names = [f"p{i:03d}" for i in range(len(self.sizes))]
        variables = {
            name: Integer(bounds=(0, n - 1)) if ordered else Choice(options=list(range(n)))
            for name, n, ordered in zip(names, self.sizes, self.ordered, strict=True)
        }
        problem = Problem(vars=variables, n_obj=1)
        self._algorithm = MixedVariableGA(
            pop_size=_POPULATION if self.trials is None else STARTUP, survival=FitnessSurvival()
        )
        self._algorithm.setup(
            problem, termination=get_termination("n_gen", 10**6), seed=self.seed % 2**31
        )
        self._waiting: list[int] = []
        self._generation = Population()

    def draw(self) -> Codes | None:
        if not self._waiting:
            first = not len(self._generation)
            self._generation = self._algorithm.ask()
            if first and self.trials is not None and self.default is not None:
                names = sorted(self._generation[0].X)
                self._generation[0].X.update(zip(names, self.default, strict=True))
            self._waiting = list(range(len(self._generation)))
        if not self._waiting:
            return None
        individual = self._generation[self._waiting[0]]
        return tuple(int(individual.X[name]) for name in sorted(individual.X))

    def report(self, ranks: Codes, loss: float) -> None:
        self._generation[self._waiting.pop(0)].set("F", [loss])
        if not self._waiting:
            for individual in self._generation:
                individual.evaluated.update({"F", "G", "H"})
            self._algorithm.tell(infills=self._generation)
