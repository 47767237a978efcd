"""The faults of requests: a parameter that is unknown, misplaced, overridden or without effect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from autotune.nearest import edits
from autotune.parameters.catalogue import BELOW, TITLES, Catalogue, KnownParameter
from autotune.parameters.effect import Idle, idle_reason
from autotune.parameters.request import Request, ValuePlace, by_precedence, reaches
from autotune.parameters.values import value_problem
from autotune.space.commutativity import needs_commutative
from autotune.space.new_names import NEW_VALUES, new_names
from runner.mpi.discover import families
from runner.mpi.library import same_value

FaultKind = Literal[
    "unknown", "misspelt", "version", "layer", "value", "overridden", "no_effect", "wrong_results"
]


@dataclass(frozen=True)
class Assignment:
    """A value for a parameter of a layer, to stand in place of a request or beside it."""

    name: str
    value: str
    layer: str


@dataclass(frozen=True)
class Fault:
    """One fault of one request.

    ``statement`` says what is wrong, ``cost`` what follows. ``instead`` is what should stand in
    the place of the request: an assignment, "drop" for nothing; None if that is not known.
    ``beside`` is what is missing. ``is_certain``: it follows from the library's own list.
    ``is_harmless``: the launch does what the line says all the same.
    """

    kind: FaultKind
    request: Request
    statement: str
    cost: str
    instead: Assignment | Literal["drop"] | None = None
    beside: Assignment | None = None
    near: tuple[str, ...] = ()
    is_certain: bool = True
    is_harmless: bool = False


def faults_of(
    requests: Sequence[Request],
    catalogue: Catalogue,
    transport: str = "",
    commutes: bool | None = None,
    inactive: Mapping[str, str] | None = None,
) -> list[Fault]:
    """The faults of all requests of one launch, in the order of the requests.

    ``transport`` is the one in force as the library reports it, "" if it is not known.
    ``commutes``: whether all operations of the program's reductions are known to commute.
    ``inactive``: what ranks reported as inactive, with the reason.
    """
    parameters: dict[Request, KnownParameter] = {}
    faults: list[Fault] = []
    for request in requests:
        parameter = catalogue.find(request.name)
        if parameter is None:
            faults += _of_unknown(request, catalogue)
            continue
        fault = _of_layer(request, catalogue)
        if fault is not None:
            faults.append(fault)
        if fault is None or fault.is_harmless:
            parameters[request] = _in_reach(request, parameter, catalogue)
    ordered = by_precedence(list(parameters), catalogue)
    winners: dict[tuple[str, str], Request] = {}
    for request in ordered:
        winners.setdefault((parameters[request].layer, parameters[request].name), request)
    values = {key[1]: winner.value for key, winner in winners.items()}
    for request, parameter in parameters.items():
        winner = winners[parameter.layer, parameter.name]
        if winner is not request:
            faults += _of_overridden(request, winner, parameter, catalogue)
            continue
        faults += _of_value(request, parameter, catalogue)
        idle = idle_reason(parameter, values, catalogue, transport, inactive)
        if idle is not None:
            # A system's file is for every launch, with any transport.
            is_system = request.place is ValuePlace.SYSTEM_FILE
            faults += [] if is_system else [_of_idle(request, idle)]
        elif commutes is not True:
            faults += _of_results(request, commutes)
    return sorted(faults, key=lambda fault: requests.index(fault.request))


def _in_reach(request: Request, parameter: KnownParameter, catalogue: Catalogue) -> KnownParameter:
    """The parameter of this name that the request reaches; some names exist in several layers."""
    layers = [layer for layer in catalogue.layers if reaches(request, layer, catalogue)]
    return catalogue.find(request.name, *layers) or parameter


def _of_unknown(request: Request, catalogue: Catalogue) -> Iterator[Fault]:
    name = request.name
    title = TITLES.get(request.layer if request.layer in BELOW.values() else "", catalogue.title)
    silent = "it is silently ignored" if catalogue.family != "impi" else "it is ignored"
    for spelling in new_names(name):
        if (other := catalogue.find(spelling)) is not None:
            value = _translated(request, catalogue)
            yield _version_fault(request, catalogue, value or Assignment(
                other.name, request.value, other.layer))  # fmt: skip
            return
    other_series = catalogue.other_series(name)
    if other_series is not None:
        if request.layer not in BELOW.values():
            value = _translated(request, catalogue)
            yield _version_fault(request, catalogue, value)
        return
    layers = (request.layer,) if request.layer in BELOW.values() else ()
    near = catalogue.nearest(name, *layers)
    if near:
        own = catalogue.find(near[0], *layers)
        assert own is not None
        is_tied = len(near) > 1 and edits(name, near[0]) == edits(name, near[1])
        is_certain = not is_tied and (catalogue.is_complete or request.layer not in BELOW.values())
        meant = " or ".join(near if is_tied else near[:1])
        yield Fault(
            "misspelt", request, f"{title} has no parameter {request.typed or name}: "
            f"{meant} is meant", silent,
            Assignment(near[0], request.value, own.layer), near=tuple(near), is_certain=is_certain,
        )  # fmt: skip
    elif catalogue.is_complete and request.layer not in BELOW.values():
        yield Fault(
            "unknown", request, f"{title} has no parameter {request.typed or name}, nor one with "
            "a similar name", silent, "drop",
        )  # fmt: skip


def _version_fault(request: Request, catalogue: Catalogue, instead: Assignment | None) -> Fault:
    other = catalogue.other_series(request.name)
    of = "another version"
    if other is not None:
        kind = families().get(other[0].family)
        title = kind.title if kind else TITLES.get(other[0].family, other[0].family)
        of = f"{title} {other[0].series}"
    what = f"{request.typed or request.name} is a parameter of {of}, not of {catalogue.title}"
    if instead is not None:
        here = f"{instead.name}={instead.value}" if instead.value != request.value else instead.name
        what += f"; here it is {here}"
    cost = "it is silently ignored"
    return Fault("version", request, what, cost, instead or "drop", is_certain=other is not None)


def _translated(request: Request, catalogue: Catalogue) -> Assignment | None:
    """What means the same in this version; None if nothing is known to."""
    pair = NEW_VALUES.get((request.name, request.value))
    if pair is None:
        return None
    counterpart = catalogue.find(pair[0])
    return None if counterpart is None else Assignment(counterpart.name, pair[1], counterpart.layer)


def _of_layer(request: Request, catalogue: Catalogue) -> Fault | None:
    """The fault of a request that a place hands to another layer than the parameter's."""
    if catalogue.find(request.name, request.layer) is not None:
        return None
    parameter = catalogue.find(request.name)
    assert parameter is not None
    owner = TITLES.get(parameter.layer, catalogue.title.rpartition(" ")[0])
    other = TITLES.get(request.layer, catalogue.title.rpartition(" ")[0])
    arrives = reaches(request, parameter.layer, catalogue)
    if arrives and parameter.layer != "prte":
        return None
    cost = "it is silently ignored"
    if arrives:
        if request.where:
            return None
        cost = "it arrives all the same here: PRRTE takes it by the beginning of its name"
    return Fault(
        "layer", request, f"{request.name} is a parameter of {owner}, and is given to {other}",
        cost, Assignment(request.name, request.value, parameter.layer), is_harmless=arrives,
    )  # fmt: skip


def _of_overridden(
    request: Request, winner: Request, parameter: KnownParameter, catalogue: Catalogue
) -> Iterator[Fault]:
    """The fault of a value that another one overrides, unless that is what the other is for."""
    # 4.1 refuses a parameter that stands twice, even with one value.
    is_refused = _is_twice(request, winner) and not catalogue.has_runtime_layers
    if same_value(request.value, winner.value, parameter.info) and not is_refused:
        return
    is_usual = request.place is ValuePlace.SYSTEM_FILE or winner.place in (
        ValuePlace.LINE,
        ValuePlace.EXPORT,
    )
    if is_usual and request.place not in (
        ValuePlace.LINE,
        ValuePlace.EXPORT,
        ValuePlace.LOADED_FILE,
    ):
        return
    what = (
        f"{request.name}={request.value} in {request.origin} does not count: "
        f"{winner.origin} says {winner.value}"
    )
    cost = f"{winner.value} is in force"
    if _is_twice(request, winner):
        what = f"{request.name} stands twice on the line: {winner.value} and {request.value}"
        cost = "the launcher refuses to start"
    is_asked = request.place >= ValuePlace.LINE or request.place is ValuePlace.LOADED_FILE
    yield Fault("overridden", request, what, cost, "drop", is_harmless=not is_asked)


def _is_twice(request: Request, winner: Request) -> bool:
    """True if the line has two options for one parameter of Open MPI, which refuses that."""
    return request.place is winner.place is ValuePlace.LINE


def _of_value(request: Request, parameter: KnownParameter, catalogue: Catalogue) -> Iterator[Fault]:
    problem, meant = value_problem(request.value, parameter, catalogue)
    if problem:
        instead = Assignment(request.name, meant, parameter.layer) if meant else None
        refuses = catalogue.family == "mpich" and parameter.layer == "mca"
        cost = "the launch ends in MPI_Init" if refuses else "the library takes another value"
        yield Fault("value", request, f"{request.name}={request.value}: {problem}", cost, instead)


def _of_idle(request: Request, idle: Idle) -> Fault:
    what = f"{request.name}={request.value} has no effect: {idle.reason}"
    beside = None if idle.needs is None else Assignment(*idle.needs)
    return Fault(
        "no_effect", request, what, "it changes nothing", None if beside else "drop", beside,
        is_certain=idle.is_certain,
    )  # fmt: skip


def _of_results(request: Request, commutes: bool | None) -> Iterator[Fault]:
    if needs_commutative(request.name, request.value):
        operations = "the program has one" if commutes is False else "of a program may be one"
        what = (
            f"{request.name}={request.value} gives wrong results with operations that do not "
            f"commute (MPI_Op_create), and {operations}"
        )
        yield Fault(
            "wrong_results", request, what, "wrong results without a message", "drop",
            is_certain=commutes is False,
        )  # fmt: skip


def in_force(requests: Iterable[Request], catalogue: Catalogue) -> dict[str, Request]:
    """The requests that count, by the parameter's own name, of those that reach their parameter."""
    winners: dict[str, Request] = {}
    for request in by_precedence(list(requests), catalogue):
        parameter = catalogue.find(request.name)
        if parameter is not None and reaches(request, parameter.layer, catalogue):
            winners.setdefault(parameter.name, request)
    return winners
