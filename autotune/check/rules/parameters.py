"""Parameters: unknown, misplaced, overridden, without effect, or wrong for some operations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from autotune.check.finding import Certainty, LaunchFinding, Weight
from autotune.check.launch_facts import LaunchFacts
from autotune.check.parameter_requests import parameter_faults
from autotune.check.rule import LaunchRule
from autotune.parameters.catalogue import BELOW
from autotune.parameters.fault import Fault, FaultKind
from autotune.parameters.request import ValuePlace


class ParameterRule(LaunchRule):
    """The faults of one kind of the parameters of a launch."""

    kind: ClassVar[FaultKind]
    in_environment: ClassVar[Weight] = Weight.SLIGHT
    """The weight of a fault that is not on the line: a site's file may be for other launches."""
    comparison: ClassVar[bool] = False

    def examine(self, facts: LaunchFacts) -> Iterator[LaunchFinding]:
        """A finding for each parameter with this fault."""
        for fault, line in parameter_faults(facts):
            if fault.kind != self.kind:
                continue
            request = fault.request
            on_line = request.place in (ValuePlace.LINE, ValuePlace.EXPORT, ValuePlace.LOADED_FILE)
            on_line = on_line or request.where in facts.line.assignments
            if not (on_line or self.counts_around(fault)):
                continue
            weight = self.weight if on_line else min(self.weight, self.in_environment)
            yield self.finding(
                fault.statement,
                fault.cost,
                Certainty.KNOWN if fault.is_certain else Certainty.LIKELY,
                weight=Weight.SLIGHT if fault.is_harmless else weight,
                where=request.origin,
                corrected_line=None if line is None else line.words,
                comparison=self.comparison,
                advice="" if line is not None else _advice(fault),
            )

    def counts_around(self, fault: Fault) -> bool:
        """Whether a fault counts that stands in the environment or in a file."""
        return True


def _advice(fault: Fault) -> str:
    """What to do where no line cures it."""
    request = fault.request
    is_variable = request.place is ValuePlace.ENVIRONMENT
    if fault.instead == "drop":
        return f"unset {request.where}" if is_variable else f"remove it from {request.origin}"
    if fault.instead is None or isinstance(fault.instead, str):
        return f"autotune explain {request.name}"
    return f"write {fault.instead.name} = {fault.instead.value} in {request.origin}"


_EXPLAIN = "autotune explain NAME shows what a parameter means and who sets it."


class UnknownParameter(ParameterRule):
    """No parameter has this name, or one like it."""

    code = "parameters.unknown"
    kind = "unknown"
    weight = Weight.WRONG
    summary = "a parameter that the library does not have"
    explanation = (
        "MPI libraries silently ignore parameters that they do not know. The name was looked up in "
        "the library's own list, and in those of other versions that autotune has. " + _EXPLAIN
    )


class MisspeltParameter(ParameterRule):
    """A name that differs from a known one by few letters."""

    code = "parameters.misspelt"
    kind = "misspelt"
    weight = Weight.WRONG
    in_environment = Weight.TENTH
    summary = "a misspelt parameter, which is silently ignored"
    explanation = (
        "MPI libraries silently ignore parameters that they do not know. The name differs by a few "
        "letters from one that this library lists, and the line is given with that one. " + _EXPLAIN
    )


class OtherVersion(ParameterRule):
    """A parameter of another version of the library."""

    code = "parameters.version"
    kind = "version"
    weight = Weight.WRONG
    in_environment = Weight.TENTH
    summary = "a parameter of another version, which this one silently ignores"
    explanation = (
        "Versions rename and remove parameters, and the new library ignores the old names without "
        "a word: Open MPI 5.0 has btl_sm_* for btl_vader_*, and rmaps_default_mapping_policy for "
        "rmaps_base_mapping_policy. The names of other versions are shipped as tables, made from "
        "the libraries' own lists."
    )


class WrongLayer(ParameterRule):
    """A parameter given to another part of Open MPI 5 than the one that has it."""

    code = "parameters.layer"
    kind = "layer"
    weight = Weight.WRONG
    in_environment = Weight.TENTH
    summary = "a parameter given to the wrong layer: library, PRRTE or PMIx"
    explanation = (
        "Open MPI 5 has three layers with parameters of their own: the library (--mca, OMPI_MCA_), "
        "PRRTE, which starts the ranks (--prtemca, PRTE_MCA_), and PMIx (--pmixmca, PMIX_MCA_). "
        "What is given to the wrong one is silently ignored. Only --mca on the line passes some "
        "names on to PRRTE, by their first word; the variable OMPI_MCA_ and Open MPI's files do "
        "not (measured with 5.0.11)."
    )


class RefusedValue(ParameterRule):
    """A value outside an enumeration, or not of the parameter's type."""

    code = "parameters.value"
    kind = "value"
    weight = Weight.WRONG
    in_environment = Weight.TENTH
    summary = "a value that the library does not understand"
    explanation = (
        "Open MPI reads a word as 0 where it expects a number, and an unknown name as the default; "
        "MPICH ends in MPI_Init; Intel MPI replaces some values. The type and the names of values "
        "are the library's own. " + _EXPLAIN
    )


class Overridden(ParameterRule):
    """A value that another place overrides."""

    code = "parameters.overridden"
    kind = "overridden"
    weight = Weight.WRONG
    summary = "a value that another place overrides"
    explanation = (
        "One parameter has values in several places. The override file of the system counts first, "
        "then the line, the environment, the user's file, the system's file; --tune stands before "
        "the user's file in Open MPI 4.1, and behind it in 5.0. Files of options of Intel MPI's "
        "launcher stand before the environment."
    )


class WithoutEffect(ParameterRule):
    """A parameter that cannot act: its component, the transport, a missing switch."""

    code = "parameters.no_effect"
    kind = "no_effect"
    weight = Weight.TENTH
    summary = "a parameter that has no effect with the others in force"
    explanation = (
        "A value can be set and do nothing: btl_* while UCX carries the messages, an algorithm of "
        "coll/tuned without coll_tuned_use_dynamic_rules, a component that another parameter "
        "excludes or that serves no collective."
    )

    def counts_around(self, fault: Fault) -> bool:
        """False for UCX and libfabric: a site sets their variables for all transports."""
        return fault.request.layer not in BELOW.values()


class WrongResults(ParameterRule):
    """An algorithm that is wrong for operations that do not commute."""

    code = "parameters.wrong_results"
    kind = "wrong_results"
    weight = Weight.SLIGHT
    summary = "an algorithm with wrong results for operations that do not commute"
    explanation = (
        "Some algorithms of reductions change the order of the operands. MPI's own operations "
        "(sums, maxima) commute; one that the program creates (MPI_Op_create) may not, and then "
        "results are wrong without a message. The table of such algorithms was measured."
    )
