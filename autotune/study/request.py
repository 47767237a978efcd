"""Search requests: a search as one versioned document of JSON types, and workers' requests.

The command line, Python and the workers of a study all begin with a search request.

A worker's request is a search request with its directory. It comes from the results database, so it
is data until its author is known (``autotune.study.worker_trust``).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from autotune.config.validated import validate
from autotune.errors import UsageError
from autotune.store.text import canonical
from autotune.study.budget import SearchPlan
from autotune.targets.request import TargetRequest

SCHEMA = "autotune-search-1"
DEFAULT_TRIALS = 100


class SearchRequest(BaseModel):
    """What is searched, how, and for how long.

    ``space`` is a name or file (None: the space of the MPI), and ``options`` are the strategy's by
    name. ``trials`` counts settings, ``budget_s`` machine seconds, ``max_runs`` launches; with none
    of them, :data:`DEFAULT_TRIALS` settings are tried. ``min_gain`` is a fraction. ``starts`` are
    settings to try first, as the user wrote them. ``features`` and ``params_file`` are paths.
    ``fidelity``: cheap runs screen the settings. ``libraries`` are further MPI libraries, named as
    ``target.mpi``, which is that of the default.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    target: TargetRequest
    libraries: tuple[str, ...] = ()
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
    starts: tuple[str, ...] = ()
    features: str | None = None
    params_file: str | None = None
    fidelity: bool = False

    @property
    def plan(self) -> SearchPlan:
        """How much the search may do; raises UsageError if ``max_runs`` does not hold a proof."""
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
                f"({others})",
                code="budget.too_small",
            )
        return plan

    def to_json(self) -> dict[str, Any]:
        """The document in JSON types: the fields that are not at their defaults."""
        data = self.model_dump(mode="json", exclude_defaults=True)
        return {"schema": SCHEMA, **data, "target": _said(self.target)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], origin: str) -> SearchRequest:
        """Inverse of :meth:`to_json`; ``origin`` says where the document was found.

        Raises UsageError for a document of another version and for a damaged one.
        """
        if data.get("schema") != SCHEMA:
            raise UsageError(
                f"{origin}: the schema is {str(data.get('schema'))[:80]!r}; expected "
                f"{SCHEMA!r}: it was written by another version of autotune, or is damaged",
                code="request.version",
            )
        return cls.of(origin, **{name: part for name, part in data.items() if name != "schema"})

    @classmethod
    def of(cls, origin: str, **fields: Any) -> SearchRequest:
        """A request with these fields; raises UsageError, with ``origin``, for wrong ones."""
        return validate(fields, origin, cls)

    def words(self) -> list[str]:
        """The command line of ``autotune`` for the same search."""
        target = self.target
        line = ["search"]
        for name, value in (
            ("--app", target.app),
            ("--input", target.input),
            ("--ranks", target.ranks),
            ("--cluster", target.cluster),
            *(("--mpi", name) for name in (target.mpi, *self.libraries)),
            ("--metric", target.metric),
            ("--metric-rate", target.metric_rate),
            ("--metric-choice", target.metric_choice),
            ("--stdin", target.stdin),
            ("--before", None if target.before is None else shlex.join(target.before)),
            ("--fresh-dir", target.fresh_dir),
            ("--verify", target.verify),
            ("--verify-absent", target.verify_absent),
            ("--exit-codes", target.exit_codes),
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
        for start in self.starts:
            line += ["--start", start]
        for option, chosen in self.options.items():
            line += ["-O", f"{option}={chosen}"]
        for flag, said in (
            ("--clean-env", target.clean_env),
            ("--commutative-only", target.commutative_only),
            ("--remeasure", self.remeasure),
            ("--no-guard", not self.guard),
            ("--fidelity", self.fidelity),
        ):
            line += [flag] if said else []
        return [*line, "--", *target.program] if target.program else line


def _said(target: TargetRequest) -> dict[str, Any]:
    """The fields that were given, without the command that requested the search."""
    plain = {n: v for n, v in vars(target).items() if v != getattr(TargetRequest, n)}
    plain.pop("command", None)
    for name in ("program", "before"):
        if name in plain:
            plain[name] = list(plain[name])
    return plain


REQUESTS_SCHEMA = "autotune-requests-1"
MOST_REQUESTS = 32
"""Largest number of requests that a study stores; of each key the newest is stored."""
MOST_CHARACTERS = 1 << 20
_PURPOSE = "autotune worker request 1"
WHERE = "a worker's request"


@dataclass(frozen=True)
class WorkerRequest:
    """A search and its working directory.

    ``key`` names the key with which the request was signed; it is empty if nobody signed it.
    Raises UsageError for a relative directory, too much text, or a NUL.
    """

    search: SearchRequest
    cwd: str
    key: str = ""
    signature: str = ""

    def __post_init__(self) -> None:
        if not PurePosixPath(self.cwd).is_absolute():
            raise UsageError(
                f"{WHERE} has the directory {self.cwd[:200]!r}; expected an absolute path",
                code="request.refused",
            )
        content = canonical([self.search.to_json(), self.cwd])
        if len(content) > MOST_CHARACTERS:
            raise UsageError(
                f"{WHERE} has {len(content)} characters; expected {MOST_CHARACTERS} at most",
                code="request.refused",
            )
        if "\\u0000" in content:
            raise UsageError(f"{WHERE} has a NUL in a word", code="request.refused")

    def signed_text(self, study: str) -> bytes:
        """The signed bytes: everything that is carried out, and the hash of its study."""
        search = self.search.to_json()
        content = {"cwd": self.cwd, "study": study, "search": search, "for": _PURPOSE}
        return canonical(content).encode("ascii")

    def to_json(self) -> dict[str, Any]:
        search = self.search.to_json()
        return {"search": search, "cwd": self.cwd, "key": self.key, "signature": self.signature}


def requests_of(data: Mapping[str, Any] | None) -> list[WorkerRequest]:
    """The requests that a study holds, the newest last; raises UsageError for damaged ones."""
    if data is None:
        return []
    if data.get("schema") != REQUESTS_SCHEMA:
        raise UsageError(
            f"{WHERE}: the schema is {str(data.get('schema'))[:80]!r}; expected "
            f"{REQUESTS_SCHEMA!r}: it was written by another version of autotune, or is damaged",
            code="request.version",
        )
    listed = data.get("requests")
    if not isinstance(listed, list) or len(listed) > MOST_REQUESTS:
        raise UsageError(
            "the study's requests are not a list: the results database is damaged",
            code="request.damaged",
        )
    return [_request(item) for item in listed]


def _request(data: Any) -> WorkerRequest:
    if not isinstance(data, dict):
        raise UsageError(
            f"{WHERE} is not an object: the results database is damaged", code="request.damaged"
        )
    search = data.get("search")
    texts = [data.get(name) for name in ("cwd", "key", "signature")]
    if not isinstance(search, dict) or not all(isinstance(text, str) for text in texts):
        raise UsageError(
            f"{WHERE} is damaged: expected a search, and a directory, key and signature that are "
            "texts",
            code="request.damaged",
        )
    return WorkerRequest(SearchRequest.from_json(search, WHERE), *map(str, texts))


def added(data: Mapping[str, Any] | None, request: WorkerRequest) -> dict[str, Any]:
    """The requests of a study with one more, which replaces the one with the same key."""
    try:
        before = requests_of(data)
    except UsageError:
        before = []  # The stored requests cannot be used.
    others = [one for one in before if one.key != request.key][1 - MOST_REQUESTS :]
    return {"schema": REQUESTS_SCHEMA, "requests": [one.to_json() for one in (*others, request)]}
