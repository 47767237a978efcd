"""The requests for parameters on a launch line and around it, and the line with one changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from autotune.check.launch_facts import LaunchFacts
from autotune.check.launch_line import LaunchLine, LineOption
from autotune.parameters.catalogue import BELOW, VARIABLE_LAYERS, Catalogue
from autotune.parameters.fault import Assignment, Fault, faults_of, in_force
from autotune.parameters.request import (
    OPTION_LAYERS,
    Request,
    ValuePlace,
    from_file,
    from_variables,
    option_layer,
)
from autotune.targets.wrapped_launcher import is_assignment
from runner.types import LIBRARY

LOADING = frozenset({"tune", "am"})
"""Options, without dashes, that load a file of parameters."""
_OPTIONS = {layer: f"--{option}" for option, layer in reversed(OPTION_LAYERS.items())}


def catalogue_of(facts: LaunchFacts) -> Catalogue | None:
    """The parameters of the launcher's library; by their shipped names if it listed none."""
    if facts.catalogue is not None or facts.library is None:
        return facts.catalogue
    shipped = Catalogue.shipped(facts.library)
    return shipped if shipped.is_usable else None


def parameter_faults(facts: LaunchFacts) -> Iterator[tuple[Fault, LaunchLine | None]]:
    """The faults of the parameters of a launch, each with the corrected line.

    The line is None if the fault is in a file, or if what is right is not known.
    """
    catalogue = catalogue_of(facts)
    if catalogue is None:
        return
    options = _line_requests(facts, catalogue)
    requests = [*(request for request, _ in options), *_surrounding_requests(facts, catalogue)]
    seen = facts.transport
    for fault in faults_of(requests, catalogue, seen.in_force, inactive=seen.inactive):
        option = next((o for request, o in options if request is fault.request), None)
        yield fault, _corrected(facts, fault, option)


@dataclass(frozen=True)
class RequestInForce:
    """The request whose value counts for a parameter; ``option``: its option on the line."""

    request: Request
    option: LineOption | None = None

    @property
    def value(self) -> str:
        """The value in force."""
        return self.request.value


def requests_in_force(facts: LaunchFacts) -> dict[str, RequestInForce]:
    """The requests that count, by the parameter's own name; {} if the library is not known."""
    catalogue = catalogue_of(facts)
    if catalogue is None:
        return {}
    options = _line_requests(facts, catalogue)
    requests = [*(request for request, _ in options), *_surrounding_requests(facts, catalogue)]
    return {
        name: RequestInForce(winner, next((o for r, o in options if r is winner), None))
        for name, winner in in_force(requests, catalogue).items()
    }


def without_request(facts: LaunchFacts, winner: RequestInForce) -> LaunchLine | None:
    """The line without a request; None if it stands neither on the line nor before it."""
    if winner.option is not None:
        return facts.line.with_replaced(winner.option)
    if winner.request.where not in facts.line.assignments:
        return None
    before = tuple(w for w in facts.line.before if not _assigns(w, winner.request.where))
    return replace(facts.line, before=before)


def _line_requests(facts: LaunchFacts, catalogue: Catalogue) -> list[tuple[Request, LineOption]]:
    """The requests of the line's options, each with its option."""
    requests = []
    for option in facts.line.options:
        if option in facts.line.parameters and len(option.values) == 2:
            name, value = option.values
            layer = option_layer(option.bare)
            requests.append((Request(name, value, ValuePlace.LINE, layer, name), option))
        elif option.treatment == "variable" and option.values:
            name, equals, value = "=".join(option.values).partition("=")
            if equals:
                pairs = from_variables({name: value}, catalogue, ValuePlace.EXPORT)
                requests += [(request, option) for request in pairs]
    return requests


def _surrounding_requests(facts: LaunchFacts, catalogue: Catalogue) -> Iterator[Request]:
    """The requests of the environment and of parameter files."""
    exported = facts.line.variables
    variables = {**facts.environment, **facts.line.assignments}
    yield from from_variables(variables, catalogue)
    if facts.line.is_srun:
        yield from from_variables(exported, catalogue, ValuePlace.EXPORT)
    loaded = {v for o in facts.line.options if o.bare in LOADING for v in o.values}
    for file in facts.parameter_files:
        numbered = [(file.lines.get(name, 0), name, value) for name, value in file.values.items()]
        for request in from_file(file.path, numbered, catalogue):
            is_loaded = file.path in loaded
            yield replace(request, place=ValuePlace.LOADED_FILE) if is_loaded else request


def _corrected(facts: LaunchFacts, fault: Fault, option: LineOption | None) -> LaunchLine | None:
    """The line without the fault; None for one in a file."""
    line, request = facts.line, fault.request
    if fault.beside is not None:
        return _with_assignment(facts, fault.beside, option)
    if option is not None and fault.instead == "drop":
        return line.with_replaced(option)
    if option is not None and isinstance(fault.instead, Assignment):
        return line.with_replaced(option, *_words(option, fault.request, fault.instead))
    if request.place is not ValuePlace.ENVIRONMENT or fault.instead is None:
        return None
    if request.where in line.assignments:
        before = tuple(w for w in line.before if not _assigns(w, request.where))
        line = replace(line, before=before)
    elif fault.instead == "drop":
        return None
    if isinstance(fault.instead, Assignment):
        name = _variable(fault.instead)
        return line.with_assignment(name, fault.instead.value)
    return line


def _assigns(word: str, name: str) -> bool:
    return is_assignment(word) and word.partition("=")[0] == name


def _variable(assignment: Assignment) -> str:
    """The variable that sets a parameter."""
    prefixes = {layer: prefix for prefix, layer in VARIABLE_LAYERS.items()}
    is_variable = assignment.layer in BELOW.values() or assignment.name.isupper()
    is_variable = is_variable or assignment.name.startswith(("MPIR_", "I_MPI_"))
    return assignment.name if is_variable else prefixes[assignment.layer] + assignment.name


def _words(option: LineOption, request: Request, instead: Assignment) -> tuple[str, ...]:
    """The words of an option with another parameter in its place."""
    first = option.words[0]
    if request.place is ValuePlace.LINE:
        same = instead.layer == request.layer
        word = first if same else _OPTIONS.get(instead.layer, "--mca")
        return (word, instead.name, instead.value)
    name = _variable(instead)
    if len(option.values) == 2:
        return (first, name, instead.value)
    return (first, f"{name}={instead.value}")


def _with_assignment(
    facts: LaunchFacts, assignment: Assignment, option: LineOption | None
) -> LaunchLine:
    """The line with one more value, by the same kind of option as ``option``."""
    is_mca = facts.library is not None and facts.library.family == "openmpi"
    if is_mca and not facts.line.is_srun and assignment.layer == LIBRARY:
        before = option or next(iter(facts.line.parameters), None)
        word = before.words[0] if before is not None and before.name == "--mca" else "--mca"
        return facts.line.with_options(word, assignment.name, assignment.value)
    return facts.line.with_variable(_variable(assignment), assignment.value)
