"""The shared part of the adapters: tools draw codes and get losses; a missing tool is reported."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import ClassVar

from autotune.errors import UsageError
from autotune.space import DEFAULT, Setting, Space
from autotune.strategies._codec import Codes
from autotune.strategies.base import Observation, Proposal, Strategy
from autotune.strategies.options import OptionValue

LOSS = 10.0
"""The loss that a peer gets for a setting that fails, as a ratio to the default."""
_REPEATS = 100
"""Number of known settings in a row after which a peer counts as stuck."""

_PEERS = {
    "optuna-tpe": ("optuna_peer", "OptunaTPE"),
    "optuna-tpe:matched": ("optuna_peer", "MatchedOptunaTPE"),
    "optuna-nsga2": ("optuna_peer", "OptunaNSGA2"),
    "smac3": ("smac_peer", "SMAC3"),
    "opentuner": ("opentuner_peer", "OpenTuner"),
    "pymoo-ga": ("pymoo_peer", "PymooGA"),
    "nevergrad": ("nevergrad_peer", "Nevergrad"),
    "hyperopt": ("hyperopt_peer", "Hyperopt"),
    "pyatf": ("pyatf_peer", "PyATF"),
}


class Peer(Strategy):
    """Draws vectors of codes and gets a loss for each; every tool keeps its own defaults.

    A setting that was measured before, or that breaks a constraint, is answered at once and costs
    no run. A user of that tool would get a worse result.
    """

    name: ClassVar[str] = "peer"
    summary: ClassVar[str] = "another tool"
    repeats: ClassVar[bool] = False

    def __init__(
        self,
        space: Space,
        *,
        seed: int,
        priors: Sequence[Setting] = (),
        options: Mapping[str, OptionValue] | None = None,
    ) -> None:
        super().__init__(space, seed=seed, priors=priors, options=options)
        self.sizes: list[int] = self.codec.sizes.tolist()
        self._losses: dict[str, float] = {DEFAULT.key: 1.0}
        self._drawn: Codes | None = None
        self.prepare()

    @abstractmethod
    def prepare(self) -> None:
        """Set the tool up for ``self.sizes`` (choices per parameter) and ``self.seed``."""

    @abstractmethod
    def draw(self) -> Codes | None:
        """The next vector that the tool wants to try; None if it has ended."""

    @abstractmethod
    def report(self, codes: Codes, loss: float) -> None:
        """Report the loss of the last vector."""

    def propose(self) -> Proposal | None:
        for _ in range(_REPEATS):
            codes = self.draw()
            if codes is None:
                return None
            setting = self.codec.settle(self.codec.decode(codes))
            if setting is not None and setting.key not in self._losses:
                self._drawn = codes
                return Proposal(setting)
            self.report(codes, LOSS if setting is None else self._losses[setting.key])
        return None

    def learn(self, observation: Observation) -> None:
        loss = min(observation.fitness, LOSS)
        self._losses[observation.setting.key] = loss
        if self._drawn is not None:
            self.report(self._drawn, loss)
            self._drawn = None


def peer_names() -> tuple[str, ...]:
    """All peers, installed or not."""
    return tuple(_PEERS)


def peer_module(name: str) -> str:
    """The module of a peer's adapter."""
    return f"benchmarks.search.peers.{_PEERS[name][0]}"


def find_peer(name: str) -> type[Peer]:
    """The adapter; raises :class:`UsageError` with the reason if its tool cannot be imported."""
    try:
        found: type[Peer] = getattr(import_module(peer_module(name)), _PEERS[name][1])
    except Exception as error:  # Another package may raise anything when imported.
        raise UsageError(f"peer {name} is left out: {type(error).__name__}: {error}") from error
    return found
