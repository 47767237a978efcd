"""Requests of studies: what a search, a comparison, a run or a measurement of noise is asked.

The command line, Python and the workers of a study all begin with a request. That of a search is a
versioned document of JSON types, which the results database keeps for workers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from autotune.config.option import (
    PAIRS,
    PATH,
    PERCENT,
    TIME,
    FilePath,
    OptionField,
    Request,
    late_option,
    option,
    part,
)
from autotune.errors import UsageError
from autotune.targets.request import TargetRequest

if TYPE_CHECKING:
    from autotune.measurement.budget import SearchPlan

SCHEMA = "autotune-search-1"
DEFAULT_TRIALS = 100
FEWEST_RUNS = 6
"""Fewest runs that show the noise."""


SPACE = option(
    None,
    "--space NAME|FILE",
    "Parameter space that the setting is checked against. Default: that of the MPI library.",
    completion="spaces",
)
BUDGET = option(
    None,
    "--budget TIME",
    "Machine time for all launches together, for example 90s, 10m or 2h. Default: no limit.",
    TIME,
    gt=0,
)
MAX_RUNS = option(
    None, "--runs N", "Number of launches in all, rejected ones included. Default: no limit.", ge=1
)
MIN_GAIN = option(
    0.02,
    "--min-gain PERCENT",
    "Smallest gain that counts, in percent.",
    PERCENT,
    ge=0,
    le=0.5,
)
GUARD = late_option(
    True,
    "--guard/--no-guard",
    "Reject runs during which other processes used the machine. With --no-guard they count too, "
    "and nothing is proven.",
)


def _strategy_help() -> str:
    from autotune.strategies import names

    return f"Search strategy: {', '.join(names())} (docs/explanation/strategies.md)."


class SearchRequest(Request):
    """What is searched, how, and for how long.

    With neither ``trials`` nor ``budget_s`` nor ``max_runs``, :data:`DEFAULT_TRIALS` settings are
    tried. ``libraries`` are further MPI libraries, named as ``target.mpi``, which is that of the
    default.
    """

    target: TargetRequest = part(mpi="libraries")
    libraries: tuple[str, ...] = late_option(
        (),
        "--mpi P",
        "MPI library: family and version (openmpi-5.0, mpich) or installation directory. Default: "
        "that of the program, else the first on PATH. Given several times: the library is a "
        "parameter of the search, and the first one is that of the default.",
    )
    strategy: str = option("auto", "--strategy S", _strategy_help, completion="strategies")
    space: str | None = option(
        None,
        "--space NAME|FILE",
        "Parameter space to search: name or file; join several with +. Default: that of the MPI "
        "library.",
        completion="spaces",
    )
    trials: int | None = option(
        None,
        "--trials N",
        f"Number of settings to try, the default not counted. Default: {DEFAULT_TRIALS}; no limit "
        "with --budget or --runs.",
        ge=1,
    )
    budget_s: float | None = option(
        None,
        "--budget TIME",
        "Machine time for search and proof together, for example 90s, 10m or 2h. Default: no "
        "limit.",
        TIME,
        gt=0,
    )
    max_runs: int | None = MAX_RUNS
    seed: int = option(
        0,
        "--seed N",
        "Seed of the random generator; the same seed proposes the same settings.",
        ge=0,
    )
    preset: str | None = option(
        None, "--preset NAME", "Named set of strategy options; thesis (for ga) is the only one."
    )
    options: Mapping[str, int | float | str] = option(
        {},
        "-O --option NAME=VALUE",
        "Option of the strategy, for example -O population=20 (docs/explanation/strategies.md). "
        "May be repeated.",
        PAIRS,
    )
    min_gain: float = MIN_GAIN
    remeasure: bool = option(
        False, "--remeasure", "Measure everything again; use no runs of other studies."
    )
    fidelity: bool = option(
        False,
        "--fidelity",
        "Run each setting first in the cheap form of the input, which the application's file "
        "declares. Settings that show no gain there get no full run. The proof uses full runs "
        "only.",
    )
    starts: tuple[str, ...] = option(
        (),
        "--start SETTING",
        "Setting to try first: name=value,..., @FILE, or study:ID. The setting of a study under "
        "another MPI library is translated to this one. May be repeated.",
    )
    features: FilePath | None = option(
        None,
        "--features FILE",
        "Warm start: file written by autotune features. The settings that the model predicts for "
        "it are tried first.",
        PATH,
    )
    params_file: FilePath | None = option(
        None,
        "--params-file FILE",
        "File for the proven setting, for mpirun --tune. Default: autotune-APP-STUDY.conf in this "
        "directory.",
        PATH,
    )
    guard: bool = GUARD

    @classmethod
    def arrange(cls, command: str, data: dict[str, Any]) -> dict[str, Any]:
        """The fields of a command line, in which ``--mpi`` names all libraries."""
        first, *others = data.pop("libraries", None) or (None,)
        data = super().arrange(command, data)
        return data | {"target": data["target"] | {"mpi": first}, "libraries": others}

    def value_at(self, field: OptionField) -> Any:
        """The value of an option; inverse of :meth:`arrange`."""
        if field.name != "libraries":
            return super().value_at(field)
        return [name for name in (self.target.mpi, *self.libraries) if name is not None]

    @property
    def plan(self) -> SearchPlan:
        """How much the search may do; raises UsageError if ``max_runs`` does not hold a proof."""
        from autotune.measurement.budget import SearchPlan

        trials, runs = self.trials, self.max_runs
        if trials is None and self.budget_s is None and runs is None:
            trials = DEFAULT_TRIALS
        plan = SearchPlan(
            trials=trials, budget_s=self.budget_s, max_runs=runs, min_gain=self.min_gain
        )
        if runs is not None and runs < plan.least_runs:
            raise UsageError(
                f"--runs {runs} leaves nothing for the search: the runs of the default and the "
                f"proof of one setting take {plan.least_runs - 1} runs; give more, or another "
                "limit (--trials, --budget)",
                code="budget.too_small",
            )
        return plan

    def to_json(self) -> dict[str, Any]:
        """The document in JSON types: the fields that are not at their defaults.

        The command that asked is no part of it.
        """
        data = self.model_dump(mode="json", exclude_defaults=True, exclude={"target": {"command"}})
        return {"schema": SCHEMA, **data}

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

    def words(self) -> list[str]:
        """The command line of ``autotune`` for the same search."""
        program = self.target.program
        return ["search", *super().words(), *(["--", *program] if program else [])]


class Crew(Request):
    """The workers of a search: jobs of a scheduler, unless that is None."""

    scheduler: str | None = option(
        None,
        "--scheduler S",
        "Start workers as jobs of a scheduler (local, slurm, or a template: autotune doctor lists "
        "them) instead of measuring in this process.",
    )
    workers: int = option(1, "--workers N", "Number of workers that --scheduler starts.", ge=1)
    nodes: int = option(
        1,
        "--nodes-per-trial N",
        "Number of nodes of each worker; every trial uses all of them.",
        ge=1,
    )
    time_s: float | None = option(
        None,
        "--walltime TIME",
        "Time limit of each worker's job, for example 30m or 2h. Default: that of the scheduler.",
        TIME,
    )
    job_options: tuple[str, ...] = option(
        (),
        "--job-option WORD",
        "Option passed on to the scheduler, for example --job-option=--partition=debug. May be "
        "repeated.",
    )


class RunRequest(Request):
    """One run of one setting."""

    setting: str = option(
        "default",
        "--setting -s SETTING",
        "Setting of the run: default, name=value,name=value, @FILE, or study:ID (the setting "
        "recommended by a study).",
    )
    target: TargetRequest = part("commutative_only")
    space: str | None = SPACE
    guard: bool = GUARD


class CompareRequest(Request):
    """Two settings of a program, or one program under two MPI libraries (``libraries``)."""

    first: str | None = option(
        None,
        "A",
        "Reference setting: default, name=value,..., @FILE or study:ID. With two libraries: "
        "setting of the first. Default: the default of each library.",
    )
    second: str | None = option(None, "B", "Setting that is compared with A, in the same form.")
    target: TargetRequest = part(mpi=("libraries", "second_program"))
    libraries: tuple[str, ...] = late_option(
        (),
        "--mpi P",
        "MPI library: family and version (openmpi-5.0, mpich) or installation directory. Default: "
        "that of the program, else the first on PATH. Given twice: compare the program under the "
        "second library with the program under the first.",
    )
    second_program: str | None = late_option(
        None,
        "--program-b PATH",
        "Build of the program for the second --mpi; the arguments are the same. Default: one "
        "program for both.",
    )
    budget_s: float | None = BUDGET
    max_runs: int | None = MAX_RUNS
    pairs: int | None = option(
        None,
        "--pairs N",
        "Measure exactly N pairs and test once. Default: a sequential test after 8, 12, 18, 27, 40 "
        "pairs.",
        ge=6,
    )
    min_gain: float = MIN_GAIN
    seed: int = option(
        0, "--seed N", "Seed of the random generator (order within the pairs).", ge=0
    )
    space: str | None = SPACE
    guard: bool = GUARD
    remeasure: bool = late_option(
        False, "--remeasure", "Measure new pairs; do not use the stored ones of this comparison."
    )

    @classmethod
    def arrange(cls, command: str, data: dict[str, Any]) -> dict[str, Any]:
        """The fields of a command line; the target is under the first library."""
        libraries = data.get("libraries", [])
        words = "compare A B" if len(libraries) < 2 else "compare --mpi P --mpi P"
        data = super().arrange(words, data)
        return data | {"target": data["target"] | {"mpi": next(iter(libraries), None)}}


class NoiseRequest(Request):
    """The noise of the default, from this number of valid runs."""

    target: TargetRequest = part("commutative_only")
    runs: int = option(20, "--runs N", "Number of valid runs of the default.", ge=FEWEST_RUNS)
    budget_s: float | None = BUDGET
    guard: bool = GUARD
