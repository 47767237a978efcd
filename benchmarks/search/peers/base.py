"""The shared part of the adapters: tools draw ranks and get losses; a missing tool is reported.

A peer takes part as it comes (``NAME``), and matched to the search (``NAME:matched``), with
everything that its user could tell it: the number of trials, the default and its result, a start-up
of five trials at most, which parameters have ordered levels. Each tool takes what it can.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import ClassVar

from autotune.errors import UsageError
from autotune.space import DEFAULT, Setting, Space
from autotune.strategies.base import Observation, Proposal, Strategy
from autotune.strategies.codec import Codes
from autotune.strategies.options import OptionValue

LOSS = 10.0
"""The loss that a peer gets for a setting that fails, as a ratio to the default."""
MATCHED = ":matched"
"""Suffix of the name of a peer that is matched to the search."""
STARTUP = 5
"""Number of trials of a matched peer's start-up, the default among them."""
_REPEATS = 100
"""Number of known settings in a row after which a peer counts as stuck."""

_PEERS = {
    "optuna-tpe": ("optuna_peer", "OptunaTPE"),
    "optuna-tpe:unordered": ("optuna_peer", "UnorderedOptunaTPE"),
    "optuna-nsga2": ("optuna_peer", "OptunaNSGA2"),
    "smac3": ("smac_peer", "SMAC3"),
    "opentuner": ("opentuner_peer", "OpenTuner"),
    "pymoo-ga": ("pymoo_peer", "PymooGA"),
    "nevergrad": ("nevergrad_peer", "Nevergrad"),
    "hyperopt": ("hyperopt_peer", "Hyperopt"),
    "pyatf": ("pyatf_peer", "PyATF"),
    "kerneltuner-ga": ("kerneltuner_peer", "KernelTunerGA"),
    "kerneltuner-pso": ("kerneltuner_peer", "KernelTunerPSO"),
}


class Peer(Strategy):
    """Draws vectors of ranks and gets a loss for each.

    ``trials`` is the number of trials of a matched peer. It is None for one as it comes, which
    keeps its tool's own defaults. A rank is the place of a choice of a parameter: by size where
    ``ordered`` says so, else as the space lists them. Only a matched peer has ordered parameters.

    A setting that was measured before, or that breaks a constraint, is answered at once and costs
    no run. A user of that tool would get a worse result.
    """

    name: ClassVar[str] = "peer"
    summary: ClassVar[str] = "another tool"
    repeats: ClassVar[bool] = False
    budgeted: ClassVar[bool] = False
    """Whether a matched one searches otherwise with another number of trials."""

    def __init__(
        self,
        space: Space,
        *,
        seed: int,
        priors: Sequence[Setting] = (),
        options: Mapping[str, OptionValue] | None = None,
        trials: int | None = None,
    ) -> None:
        super().__init__(space, seed=seed, priors=priors, options=options)
        self.trials = trials
        self.sizes: list[int] = self.codec.sizes.tolist()
        self.ordered = [
            trials is not None and len(axis) == size
            for axis, size in zip(self.codec.axis, self.sizes, strict=True)
        ]
        self._codes = [
            axis if ordered else tuple(range(size))
            for axis, size, ordered in zip(self.codec.axis, self.sizes, self.ordered, strict=True)
        ]
        self._losses: dict[str, float] = {DEFAULT.key: 1.0}
        self._drawn: Codes | None = None
        self.prepare()

    @abstractmethod
    def prepare(self) -> None:
        """Set the tool up for ``self.sizes`` (choices per parameter) and ``self.seed``.

        A matched peer is told of the default here, or later draws it first.
        """

    @property
    def default(self) -> Codes | None:
        """The ranks of the default; None if the space does not have it."""
        codes = self.codec.encode(DEFAULT)
        if codes is None:
            return None
        return tuple(order.index(c) for order, c in zip(self._codes, codes, strict=True))

    def setting(self, ranks: Codes) -> Setting | None:
        """The setting of these ranks in canonical form; None if it breaks a constraint."""
        codes = [order[rank] for order, rank in zip(self._codes, ranks, strict=True)]
        return self.codec.settle(self.codec.decode(codes))

    def recommendation(self) -> Setting | None:
        """The setting that the tool names as the best; None for the default.

        Without a rule of the tool's own it is the one with the smallest loss.
        """
        return self._settings_by_key.get(min(self._losses, key=self._losses.__getitem__))

    @abstractmethod
    def draw(self) -> Codes | None:
        """The next vector that the tool wants to try; None if it has ended."""

    @abstractmethod
    def report(self, ranks: Codes, loss: float) -> None:
        """Report the loss of the last vector."""

    def propose(self) -> Proposal | None:
        for _ in range(_REPEATS):
            ranks = self.draw()
            if ranks is None:
                return None
            setting = self.setting(ranks)
            if setting is not None and setting.key not in self._losses:
                self._drawn = ranks
                return Proposal(setting)
            self.report(ranks, LOSS if setting is None else self._losses[setting.key])
        return None

    def learn(self, observation: Observation) -> None:
        loss = min(observation.fitness, LOSS)
        self._losses[observation.setting.key] = loss
        if self._drawn is not None:
            self.report(self._drawn, loss)
            self._drawn = None


def peer_names() -> tuple[str, ...]:
    """All peers as they come, installed or not."""
    return tuple(name for name in _PEERS if ":" not in name)


def is_peer(name: str) -> bool:
    """Whether this is the name of a peer, matched or not."""
    return name.removesuffix(MATCHED) in _PEERS


def peer_module(name: str) -> str:
    """The module of a peer's adapter."""
    return f"benchmarks.search.peers.{_PEERS[name.removesuffix(MATCHED)][0]}"


def find_peer(name: str) -> type[Peer]:
    """The adapter; raises :class:`UsageError` with the reason if its tool cannot be imported."""
    kind = _PEERS[name.removesuffix(MATCHED)][1]
    try:
        found: type[Peer] = getattr(import_module(peer_module(name)), kind)
    except Exception as error:  # Another package may raise anything when imported.
        raise UsageError(
            f"peer {name} is left out: {type(error).__name__}: {error}", code="benchmark.fails"
        ) from error
    return found
