"""Inactive parameters of a study: from read-back, from the transport, and from counted calls.

The default's first run shows the transport in force. It decides which parameters can act.

The warm-up run of a search counts the program's calls; only those of its timed part, if the program
marks it with MPI_Pcontrol. Parameters of a collective, or of one-sided communication, that the
program does not call there are not tuned. If a program's calls cannot be counted (it is linked
statically, or there is no compiler), all parameters are tuned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from autotune.measurement.run_history import WARMUP, RunHistory
from autotune.notes import Note
from autotune.space import Setting, Space, Value
from autotune.space.parameter import needed_call
from runner.mpi.base import Adapter
from runner.mpi.discover import families
from runner.types import TRANSPORT, ReadBack, RunRecord

NO_COMPONENT = "its component was not opened"


def inactive_in(record: RunRecord, setting: Setting) -> frozenset[str]:
    """Parameters of ``setting`` that a run of it read back as inactive.

    Empty if the run did not come to its end and so says nothing.
    """
    if not record.valid:
        return frozenset()
    back = record.read_back
    return frozenset(n for n in setting if n in back and back[n].state == "inactive")


def inactive_words(name: str, back: ReadBack) -> str:
    """Why a parameter does nothing here, as a sentence; "" if it is not known to do nothing."""
    if back.state != "inactive":
        return ""
    return f"{name}={back.requested} has no effect here: {back.source or NO_COMPONENT}"


def inactive_difference(
    first: Setting,
    second: Setting,
    first_runs: Sequence[RunRecord],
    second_runs: Sequence[RunRecord],
) -> list[str]:
    """Why two settings are the same here, parameter by parameter; empty if they may differ.

    Every parameter in which they differ must have been read back as inactive in a valid run of the
    setting that names it.
    """
    differences = [n for n in {**first, **second} if first.get(n) != second.get(n)]
    sides = ((first, first_runs), (second, second_runs))
    words = []
    for name in sorted(differences):
        for setting, runs in sides:
            if name not in setting:
                continue
            read_backs = [r.read_back.get(name) for r in runs if r.valid]
            reasons = [inactive_words(name, back) if back else "" for back in read_backs]
            if not reasons or not all(reasons):
                return []
            words.append(reasons[0])
    return words


CALLS = "traced_calls"
"""Key of a warm-up's ``extra``: operation -> calls of all ranks."""


def needs_call_counts(space: Space) -> bool:
    """Whether a parameter of the space is about one collective or one-sided calls only."""
    return any(needed_call(parameter.name) for parameter in space)


def unused_parameters(space: Space, history: RunHistory) -> frozenset[str]:
    """Parameters of collectives and one-sided calls that no counted warm-up called.

    Empty if nothing was counted.
    """
    warm_ups = [e.record for e in history.entries if _has_calls(e.kind, e.record.extra)]
    operations = {name for r in warm_ups for name, count in r.extra[CALLS].items() if count}
    if not operations:
        return frozenset()
    kind = families().get(warm_ups[-1].mpi_name)
    return frozenset(p.name for p in space if _lacks_calls(p.name, operations, kind))


@dataclass(frozen=True)
class TransportFacts:
    """What the default's transport says of the parameters of a space.

    ``defaults`` maps the parameter that chooses the transport to its value in the default.
    ``idle`` maps parameters that cannot act to the reason; it is empty if a setting can choose
    another transport, for then the conditions of the space decide.
    """

    defaults: dict[str, Value]
    idle: dict[str, str]

    @classmethod
    def of(cls, space: Space, records: Iterable[RunRecord]) -> TransportFacts:
        """What ``records``, runs of the default, say; the first that shows a transport counts."""
        for record in records:
            back, kind = record.read_back.get(TRANSPORT), families().get(record.mpi_name)
            if back is None or kind is None or not back.effective:
                continue
            chooses = kind.transport_parameter
            if chooses in space:
                word = back.effective.partition(": ")[0]
                return cls({chooses: word} if word in space[chooses].levels else {}, {})
            return cls({}, kind.idle_under(space.of_default, back.effective))
        return cls({}, {})


def _has_calls(kind: str, extra: dict[str, object]) -> bool:
    return kind == WARMUP and isinstance(extra.get(CALLS), dict)


def _lacks_calls(name: str, operations: set[str], kind: type[Adapter] | None) -> bool:
    """Whether a parameter is about calls none of which was made.

    A component's priority is about all collectives that the component serves.
    """
    if operation := needed_call(name):
        return operation not in operations
    component_operations = kind.operations_of(name) if kind else ()
    # allgatherv is counted as allgather.
    return bool(component_operations) and not any(
        o.startswith(c) for o in component_operations for c in operations
    )


def untuned_calls(space: Space, calls: Mapping[str, int]) -> Note | None:
    """What to do about one-sided calls of which the space has no parameter; None if all is well."""
    if not calls.get("rma") or any(needed_call(parameter.name) == "rma" for parameter in space):
        return None
    return Note(
        "space.one_sided_calls",
        "the program makes one-sided calls (MPI_Put and the like), of which this space has no "
        "parameter; with Open MPI, --space openmpi+openmpi-rma has",
        {"calls": dict(calls)},
    )
