"""A search as it is asked for: one versioned document of JSON types.

The command line, Python and the workers of a study all begin with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from autotune.config.validated import validate
from autotune.errors import UsageError
from autotune.study.plan import SearchPlan
from autotune.study.target_request import TargetRequest

SCHEMA = "autotune-search-1"
DEFAULT_TRIALS = 100


class SearchRequest(BaseModel):
    """What is searched, how, and for how long.

    ``space`` is a name or file (None: that of the MPI), ``options`` are the strategy's by name.
    ``trials`` counts settings, ``budget_s`` machine seconds, ``max_runs`` launches; with none of
    them, :data:`DEFAULT_TRIALS` settings are tried.  ``min_gain`` is a fraction.  ``features`` and
    ``params_file`` are paths.  Raises UsageError for a bound that leaves nothing to search.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    target: TargetRequest
    space: str | None = None
    strategy: str = "auto"
    preset: str | None = None
    options: Mapping[str, int | float | str] = Field(default_factory=dict)
    seed: int = Field(0, ge=0)
    trials: int | None = Field(None, ge=1)
    budget_s: float | None = Field(None, gt=0)
    max_runs: int | None = Field(None, ge=1)
    min_gain: float = Field(0.02, ge=0, le=0.5)
    guard: bool = True
    remeasure: bool = False
    features: str | None = None
    params_file: str | None = None

    @property
    def plan(self) -> SearchPlan:
        """How much the search may do.  Raises UsageError where ``max_runs`` holds no proof."""
        trials, runs = self.trials, self.max_runs
        if trials is None and self.budget_s is None and runs is None:
            trials = DEFAULT_TRIALS
        plan = SearchPlan(
            trials=trials, budget_s=self.budget_s, max_runs=runs, min_gain=self.min_gain
        )
        if runs is not None and runs < plan.least_runs:
            given = f"--runs {runs}" if self.target.command else f"max_runs={runs}"
            others = "--trials, --budget" if self.target.command else "trials, budget"
            raise UsageError(
                f"{given} leaves nothing for the search: the runs of the default and the proof "
                f"of one setting take {plan.least_runs - 1} runs; give more, or another limit "
                f"({others})"
            )
        return plan

    def to_json(self) -> dict[str, Any]:
        """The document: what is not at its default, in JSON types."""
        data = self.model_dump(mode="json", exclude_defaults=True)
        return {"schema": SCHEMA, **data, "target": _said(self.target)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], origin: str) -> SearchRequest:
        """Inverse of :meth:`to_json`; ``origin`` says where it was found.

        Raises UsageError for a document of another version, and for a damaged one.
        """
        if data.get("schema") != SCHEMA:
            raise UsageError(
                f"{origin}: the schema is {str(data.get('schema'))[:80]!r}; expected "
                f"{SCHEMA!r}: it was written by another version of autotune, or is damaged"
            )
        return cls.of(origin, **{name: part for name, part in data.items() if name != "schema"})

    @classmethod
    def of(cls, origin: str, **fields: Any) -> SearchRequest:
        """A request of these fields; raises UsageError, which names ``origin``, for wrong ones."""
        return validate(fields, origin, cls)

    def words(self) -> list[str]:
        """The command line of ``autotune`` that asks for the same."""
        target = self.target
        line = ["search"]
        for name, value in (
            ("--app", target.app),
            ("--input", target.input),
            ("--ranks", target.ranks),
            ("--cluster", target.cluster),
            ("--mpi", target.mpi),
            ("--metric", target.metric),
            ("--metric-choice", target.metric_choice),
            ("--stdin", target.stdin),
            ("--verify", target.verify),
            ("--timeout", target.timeout),
            ("--space", self.space),
            ("--strategy", self.strategy),
            ("--preset", self.preset),
            ("--seed", self.seed),
            ("--trials", self.trials),
            ("--budget", None if self.budget_s is None else f"{self.budget_s:g}s"),
            ("--runs", self.max_runs),
            ("--min-gain", f"{100 * self.min_gain:g}"),
            ("--features", self.features),
            ("--params-file", self.params_file),
        ):
            if value is not None:
                line += [name, str(value)]
        for option, chosen in self.options.items():
            line += ["-O", f"{option}={chosen}"]
        for flag, said in (
            ("--clean-env", target.clean_env),
            ("--remeasure", self.remeasure),
            ("--no-guard", not self.guard),
        ):
            line += [flag] if said else []
        return [*line, "--", *target.program] if target.program else line


def _said(target: TargetRequest) -> dict[str, Any]:
    """The fields that were given; the command that asks is nobody's business later."""
    plain = {n: v for n, v in vars(target).items() if v != getattr(TargetRequest, n)}
    plain.pop("command", None)
    if target.program:
        plain["program"] = list(target.program)
    return plain
