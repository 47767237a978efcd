"""What the adapters share: codes in, losses out, and a peer that is missing is named."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import ClassVar

from autotune.errors import UsageError
from autotune.space import DEFAULT, Setting, Space
from autotune.strategies import Observation, OptionValue, Proposal, Strategy
from autotune.strategies._codec import Codes

LOSS = 10.0
"""What a peer is told of a setting that fails, as a ratio to the default."""
_REPEATS = 100
"""Draws in a row of known settings before a peer counts as stuck."""

_PEERS = {
    "optuna-tpe": ("optuna_peer", "OptunaTPE"),
    "optuna-nsga2": ("optuna_peer", "OptunaNSGA2"),
    "smac3": ("smac_peer", "SMAC3"),
    "opentuner": ("opentuner_peer", "OpenTuner"),
    "pymoo-ga": ("pymoo_peer", "PymooGA"),
    "nevergrad": ("nevergrad_peer", "Nevergrad"),
    "hyperopt": ("hyperopt_peer", "Hyperopt"),
    "pyatf": ("pyatf_peer", "PyATF"),
}


class Peer(Strategy):
    """Draws vectors of codes and is reported a loss for each, with its own defaults throughout.

    A setting that was measured before, or that breaks a rule, is answered at once and costs no run,
    which is kinder than what a user of that tool would get.
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
        """What the tool wants to try next; None where it has ended."""

    @abstractmethod
    def report(self, codes: Codes, loss: float) -> None:
        """The loss of what was drawn last."""

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


def find_peer(name: str) -> type[Peer]:
    """The adapter; raises :class:`UsageError` with the reason where its tool cannot be imported."""
    module, kind = _PEERS[name]
    try:
        found: type[Peer] = getattr(import_module(f"benchmarks.search.peers.{module}"), kind)
    except Exception as error:  # Whatever a foreign package raises while it is imported.
        raise UsageError(f"peer {name} is left out: {type(error).__name__}: {error}") from error
    return found
