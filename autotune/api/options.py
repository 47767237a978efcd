"""Arguments that the functions of the Python API share."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, TypedDict, Unpack, cast

from autotune.api.figures import measured_target
from autotune.api.keywords import speaks_python, with_keywords
from autotune.api.target import find_target
from autotune.errors import UsageError
from autotune.measurement.events import Event, PhaseStarted, TrialEnded, Waiting, Watcher
from autotune.notes import Note
from autotune.space import Space
from autotune.store import Store
from autotune.strategies import OptionValue
from autotune.study.study_request import SearchRequest
from autotune.targets.request import TargetRequest
from autotune.targets.target import Target
from autotune.wording import parse_duration
from runner.types import MetricChoice

Program = Sequence[str] | Target | None
"""Words of a command line (a launcher line is understood), or a target from :func:`target`."""
SpaceLike = Space | str | Path | None
"""A space, or the name or file of one; None: the usual space of the MPI."""
StoreLike = Store | str | Path | None
"""An open results database, its path or URL; None: $AUTOTUNE_STORE, else the user's own."""
Budget = str | float | None
"""Machine time: seconds, or a text such as "90s", "10m", "1h30m"."""


class ProgramOptions(TypedDict, total=False):
    """Options of a program: fields of :class:`~autotune.targets.request.TargetRequest`, which says
    what they mean."""

    app: str
    input: str
    ranks: int
    cluster: str
    metric: str
    metric_rate: str
    metric_choice: MetricChoice
    verify: str
    verify_absent: str
    exit_codes: str
    stdin: str | Path
    before: Sequence[str]
    fresh_dir: str | Path
    timeout: float | str
    clean_env: bool
    commutative_only: bool


class TargetOptions(ProgramOptions, total=False):
    """Options of a program under one MPI library: ``mpi`` is its name or directory."""

    mpi: str


class SearchOptions(ProgramOptions, total=False):
    """Options of a program for a search, and fields of
    :class:`~autotune.study.study_request.SearchRequest`, which says what they mean.

    ``mpi`` names the MPI library, or several: the first is that of the default, and the library is
    one of the parameters.
    """

    mpi: str | Sequence[str]
    preset: str
    options: Mapping[str, OptionValue]
    trials: int
    min_gain: float
    seed: int
    starts: Sequence[str]
    features: str | Path
    params_file: str | Path
    guard: bool
    remeasure: bool
    fidelity: bool


def search_parts(options: SearchOptions) -> tuple[dict[str, Any], TargetOptions]:
    """The fields of a search request, and the options of its target under the first library."""
    own = {n: value for n, value in options.items() if n in SearchRequest.model_fields}
    target: dict[str, Any] = {n: value for n, value in options.items() if n not in own}
    libraries = target.get("mpi")
    if libraries is not None and not isinstance(libraries, str):
        if not libraries:
            raise UsageError(
                "mpi=[] names no MPI library; expected one name or several", code="usage.argument"
            )
        target["mpi"], *own["libraries"] = libraries
    return own, cast(TargetOptions, target)


def target_request(program: Sequence[str] | None, options: TargetOptions) -> TargetRequest:
    """The request of a call; raises UsageError for an unknown option or a program in one text."""
    if isinstance(program, str):
        raise UsageError(
            f"program={program!r} is one text; expected a list of words, such as [{program!r}]",
            code="usage.argument",
        )
    if isinstance(options.get("before"), str):
        before = options["before"]
        raise UsageError(
            f"before={before!r} is one text; expected a list of words, such as "
            f"{shlex.split(str(before))!r}",
            code="before.text",
        )
    strange = sorted(set(options) - set(TargetOptions.__annotations__))
    if strange:
        raise UsageError(
            f"{strange[0]}= is not an option of a target; expected one of "
            f"{', '.join(TargetOptions.__annotations__)}",
            code="usage.option_unknown",
        )
    return TargetRequest.of("target()", program=program, **options)


@speaks_python
def target(program: Sequence[str] | None = None, **options: Unpack[TargetOptions]) -> Target:
    """Look up a target that several calls can use in place of a program.

    The options are those of :class:`TargetOptions`.  Raises UsageError if one of them is wrong.
    """
    return find_target(target_request(program, options))


def target_of(
    program: Program, options: TargetOptions, watch: Watcher, store: Store, guard: bool = True
) -> Target:
    """The target of a call, whose metric may be "auto".

    Raises UsageError for options in addition to a ready target.
    """
    if isinstance(program, Target):
        refuse_options(options)
        return program
    return measured_target(target_request(program, options), store, watch, guard=guard)


def refuse_options(options: TargetOptions) -> None:
    """Raise UsageError for options in addition to a ready target."""
    if options:
        raise UsageError(
            f"{sorted(options)[0]}= belongs to a target, and a complete target was given; "
            "set it there",
            code="usage.argument",
        )


def space_of(target: Target, space: SpaceLike) -> Space:
    """The space of a call, for its target; raises UsageError if it cannot be read."""
    if isinstance(space, Space):
        return space
    return target.space(None if space is None else str(space))


def open_store(store: StoreLike) -> AbstractContextManager[Store]:
    """The results database of a call; a database that was given open stays open."""
    return nullcontext(store) if isinstance(store, Store) else Store.open(store)


def read(store: StoreLike) -> AbstractContextManager[Store]:
    """As :func:`open_store`, but read-only; raises UsageError if there is no database."""
    return nullcontext(store) if isinstance(store, Store) else Store.open_to_read(store)


def seconds_of(budget: Budget) -> float | None:
    """The budget in seconds; raises UsageError for a text that is no time."""
    return parse_duration(budget) if isinstance(budget, str) else budget


def _line(text: str) -> None:
    """One line on standard error."""
    print(text, file=sys.stderr, flush=True)


class Lines:
    """A watcher that writes a line for phases, better settings and waiting."""

    def __init__(self, write: Callable[[str], None] = _line) -> None:
        self._write = write
        self._best: float | None = None

    def __call__(self, event: Event) -> None:
        if isinstance(event, Note | Waiting | PhaseStarted):
            self._write(with_keywords(event.words))
        elif isinstance(event, TrialEnded) and event.best is not None:
            if (self._best is None or event.best < self._best) and event.best < 1:
                setting = event.best_setting.key if event.best_setting else "default"
                self._write(
                    f"setting {event.number + 1}: {setting}, gain so far "
                    f"{100 / event.best - 100:+.1f} % (not proven)"
                )
            self._best = event.best if self._best is None else min(self._best, event.best)
