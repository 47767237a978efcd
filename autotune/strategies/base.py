"""The interface of strategies: a strategy proposes settings and receives their results."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from autotune.space import DEFAULT, Setting, Space
from autotune.strategies.candidates import UnvisitedSettings
from autotune.strategies.codec import DEFAULTS as DEFAULTS
from autotune.strategies.codec import EQUAL as EQUAL
from autotune.strategies.codec import INACTIVE as INACTIVE
from autotune.strategies.codec import UNUSED as UNUSED
from autotune.strategies.codec import Codec
from autotune.strategies.options import Option, OptionValue, complete

STATES = ("ok", "failed", "censored", "running", "pruned")
SCATTER = "scatter"
"""Key in an observation's attributes for the scatter of the default's own runs so far.

The value is the variance of one log time and its degrees of freedom.
"""

_SEEDS = 2**64


@dataclass(frozen=True)
class Observation:
    """A trial in the view of a strategy.

    ``estimate`` is T / T_default: lower is better, 1.0 is the default. ``censored`` means that the
    time limit stopped the trial, so the estimate is a lower bound of the ratio. ``pruned`` means
    that cheap runs excluded the setting from full runs; its estimate is weaker than a measured
    ratio. Raises ValueError for an unknown state.
    """

    number: int
    setting: Setting
    estimate: float | None = None
    state: str = "ok"
    attrs: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.state not in STATES:
            raise ValueError(f"state {self.state!r} is not known; expected one of {STATES}")

    @property
    def fitness(self) -> float:
        """The ratio to minimise; infinite (the worst) for a failed trial."""
        has_ratio = self.estimate is not None and math.isfinite(self.estimate) and self.estimate > 0
        if self.estimate is None or not has_ratio or self.state in ("failed", "running"):
            return math.inf
        return self.estimate


@dataclass(frozen=True)
class Proposal:
    """A setting to try, and the attributes (JSON) that are stored with its trial.

    ``spares`` are proposals to take instead if another worker has just begun this one, the best
    first; they have none of their own.
    """

    setting: Setting
    attrs: dict[str, object] = field(default_factory=dict)
    spares: tuple[Proposal, ...] = ()


def _no_pulse() -> None:
    """No caller waits for the strategy."""


class Strategy(ABC):
    """A search algorithm; it proposes valid canonical settings, each once, and never the default.

    A study measures the default in any case, so the default counts as known with the ratio 1.

    ``space`` defines what may vary, ``seed`` is any integer, ``priors`` are the settings to try
    first (the warm start), and ``options`` are values by name for options in the class's table.
    ``rejected`` lists the priors that this space does not allow, each with the reason. Raises
    :class:`~autotune.errors.UsageError` for a wrong option.

    The next proposal depends only on the seed and on the observations in the order of their
    numbers. So a new object that gets the stored observations by :meth:`restore` continues exactly
    as the old one would have.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    options: ClassVar[dict[str, Option]] = {}
    presets: ClassVar[dict[str, dict[str, OptionValue]]] = {}
    needs: ClassVar[tuple[str, ...]] = ()
    """Packages that the strategy needs and that autotune does not install."""
    repeats: bool = True
    """True if the study immediately repeats a setting that looks best, before the next proposal."""
    estimates: bool = False
    """True if it estimates settings: :meth:`favourite` then gives None for the default."""

    def __init__(
        self,
        space: Space,
        *,
        seed: int,
        priors: Sequence[Setting] = (),
        options: Mapping[str, OptionValue] | None = None,
    ) -> None:
        self.space = space
        self.seed = seed % _SEEDS
        self.values = complete(self.name, self.options, options or {})
        self.check_options(self.values)
        self.codec = Codec(space)
        self.priors, self.rejected = self._usable(priors)
        self._settings_by_key: dict[str, Setting] = {}
        self._taken_keys = {DEFAULT.key}
        self._unvisited_settings = UnvisitedSettings(space, self.codec, self.seed)
        self.pulse: Callable[[], None] = _no_pulse
        """Called repeatedly in possibly long loops of :meth:`ask`.

        The caller sets it and ends a loop by raising an exception in it.
        """
        self.spares = 0
        """The largest number of spares of a proposal that the caller can use."""

    @classmethod  # noqa: B027 - a hook
    def check_options(cls, values: Mapping[str, OptionValue]) -> None:
        """Raise :class:`~autotune.errors.UsageError` for inconsistent values."""

    def ask(self) -> Proposal | None:
        """The next setting to try; None if no promising setting is left."""
        fresh_prior = next((p for p in self.priors if self.is_new(p)), None)
        if fresh_prior is not None:
            proposal: Proposal | None = self.admit(fresh_prior)
        else:
            proposal = self.propose()
        if proposal is not None:
            self._note(proposal.setting)
        return proposal

    def tell(self, observation: Observation) -> None:
        """Record the result of a trial, proposed by this strategy or not."""
        if observation.state == "running":
            self.add_running(observation)
            return
        self._note(observation.setting)
        self._learn_equal(observation.attrs, observation.setting)
        self.learn(observation)

    def restore(self, observations: Iterable[Observation]) -> None:
        """Rebuild the state from stored observations, given in any order."""
        for observation in sorted(observations, key=lambda o: o.number):
            self.tell(observation)

    def learn_equal(self, attrs: Mapping[str, object]) -> None:
        """Record what is known of settings with equal effects before the first trial.

        ``attrs`` are as those of a trial, one of which should have them, too.
        """
        self._learn_equal(attrs, DEFAULT)

    def add_running(self, observation: Observation) -> None:
        """Record a running trial, so that it is not proposed again."""
        self._note(observation.setting)
        self.learn_running(observation)

    def favourite(self) -> Setting | None:
        """The measured setting with the strategy's best estimate.

        None if the default has the best estimate, or if the strategy has no estimates.
        """
        return None

    def is_new(self, setting: Setting) -> bool:
        """True if no setting with the same canonical form was proposed or recorded before."""
        canonical = self.codec.settle(setting)
        return canonical is not None and canonical.key not in self._taken_keys

    @property
    def ordinal(self) -> int:
        """Number of distinct settings proposed or recorded: the position in the random stream."""
        return len(self._settings_by_key)

    def rng(self, *place: int) -> np.random.Generator:
        """A random generator that depends only on the seed and on ``place``."""
        return np.random.default_rng([self.seed, *place])

    @abstractmethod
    def propose(self) -> Proposal | None:
        """A new setting, or None."""

    def learn(self, observation: Observation) -> None:  # noqa: B027 - a hook
        """Learn from an ended trial; a strategy that does not learn need not override this."""

    def learn_running(self, observation: Observation) -> None:  # noqa: B027 - a hook
        """Learn from a running trial; the base class already prevents proposing it again."""

    def admit(self, prior: Setting) -> Proposal:
        """The proposal for a prior; a strategy that stores attributes adds them."""
        return Proposal(prior)

    def new_proposal(self, values: Mapping[str, object]) -> Proposal | None:
        """The proposal of the setting with these values; None if it is not valid or not new.

        It is in canonical form, without parameters that are known to do nothing.
        """
        setting = self.space.canonical(Setting(values))
        if self.space.violations(setting) or not self.is_new(setting):
            return None
        effective = self.codec.settle(setting)
        return None if effective is None else Proposal(effective)

    def anything_new(self) -> Proposal | None:
        """The first new setting of a seeded order; None if the space is exhausted."""
        setting = self._unvisited_settings.first(self.is_new, self.pulse)
        if setting is None or not self.spares:
            return None if setting is None else Proposal(setting)
        others = self._unvisited_settings.ahead(self.spares, self.is_new, self.pulse)
        return Proposal(setting, spares=tuple(map(Proposal, others)))

    def _note(self, setting: Setting) -> None:
        canonical = self.space.canonical(setting)
        self._settings_by_key[canonical.key] = canonical
        self._take(canonical)

    def _take(self, setting: Setting) -> None:
        self._taken_keys.add(setting.key)
        canonical = self.codec.settle(setting)
        if canonical is not None:
            self._taken_keys.add(canonical.key)

    def _learn_equal(self, attrs: Mapping[str, object], setting: Setting) -> None:
        if self.codec.leave_out(attrs, setting):
            for setting in self._settings_by_key.values():
                self._take(setting)

    def _usable(self, priors: Sequence[Setting]) -> tuple[list[Setting], list[tuple[Setting, str]]]:
        good: list[Setting] = []
        bad: list[tuple[Setting, str]] = []
        for prior in priors:
            problems = self.space.violations(prior)
            if problems:
                bad.append((prior, "; ".join(problems)))
            else:
                good.append(self.space.canonical(prior))
        return good, bad
