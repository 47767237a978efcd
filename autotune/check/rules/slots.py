"""Slots and oversubscription: ranks against slots and cores, and how waiting ranks wait."""

from __future__ import annotations

import re
from collections.abc import Iterator

from autotune.check.corrections import YIELD, yielding
from autotune.check.finding import Certainty, LaunchFinding, Weight
from autotune.check.launch_facts import LaunchFacts
from autotune.check.launch_line import LaunchLine
from autotune.check.rule import LaunchRule
from autotune.wording import count
from runner.cpus import count_cores
from runner.mpi.discover import adapter
from runner.mpi.intel import WAIT_MODE

_REFUSAL = re.compile(r"not enough slots|are requested by the application|slots available", re.I)
_TRUE = ("1", "true", "yes", "t", "y", "enabled")


class TooFewSlots(LaunchRule):
    """The launcher refuses the launch because it counts fewer slots than ranks."""

    code = "slots.too_few"
    weight = Weight.WRONG
    summary = "the launcher refuses more ranks than it counts slots"
    explanation = (
        "Open MPI starts as many ranks on a host as it has slots: cores if no host is named, one "
        "for each time that --host names it, and the number behind slots= in a hostfile. For more "
        "ranks it starts nothing. The cure is to name the slots (--host NAME:N) where there are "
        "cores, and --oversubscribe where there are none."
    )

    def examine(self, facts: LaunchFacts) -> Iterator[LaunchFinding]:
        """A finding if the launcher refused, or if its hosts have fewer slots than ranks."""
        library, ranks = facts.library, facts.line.ranks
        if library is None or ranks is None or not adapter(library).counts_slots:
            return
        if facts.line.is_srun or facts.ranks or may_oversubscribe(facts):
            return
        is_refused = facts.outcome is not None and bool(_REFUSAL.search(facts.outcome.error_tail))
        slots = facts.slots if facts.hosts_here else None
        if not is_refused and (slots is None or slots >= ranks):
            return
        number = facts.node.cores if slots is None else slots
        where = facts.line.option("host", "H", "hostfile", "machinefile")
        yield self.finding(
            f"{count(ranks, 'rank')} are asked for, and the launcher counts "
            f"{count(number, 'slot')}",
            "nothing is started",
            Certainty.SEEN if is_refused else Certainty.KNOWN,
            where="" if where is None else " ".join(where.words),
            corrected_line=_with_slots(facts, ranks).words,
        )


def _with_slots(facts: LaunchFacts, ranks: int) -> LaunchLine:
    """The line with as many slots as ranks, if the node has the cores; else oversubscribed."""
    hosts = facts.line.option("host", "H")
    names = hosts.values[0].split(",") if hosts is not None and hosts.values else []
    one_host = len({name.partition(":")[0] for name in names}) == 1
    if hosts is not None and one_host and ranks <= facts.node.cores:
        name = names[0].partition(":")[0]
        return facts.line.with_replaced(hosts, hosts.words[0], f"{name}:{ranks}")
    return facts.line.with_options("--oversubscribe")


def may_oversubscribe(facts: LaunchFacts) -> bool:
    """True if the line allows more ranks than slots."""
    if facts.line.option("oversubscribe") is not None:
        return True
    mapping = facts.line.option("map-by")
    words = mapping.values[0].lower().split(":") if mapping is not None and mapping.values else []
    values = [
        *facts.rank_variables.values(),
        *(v for one in facts.line.parameters for v in one.values),
    ]
    return "oversubscribe" in words or any("oversubscribe" in value.lower() for value in values)


class NoYield(LaunchRule):
    """Ranks outnumber the cores, and a rank that waits keeps its core."""

    code = "oversubscription.no_yield"
    weight = Weight.OVER_TWICE
    summary = "more ranks than cores, and waiting ranks do not give their core away"
    explanation = (
        "MPI libraries wait by asking again and again whether a message has come. With more ranks "
        "than cores the rank that should send it has no core meanwhile, and every message takes "
        "time slices of milliseconds: 4 and 17 times as long were seen. Open MPI lets ranks give "
        "their core away if it counts more ranks than slots, but it does not know of a quota, of a "
        "hostfile that declares too many slots, or under srun. The cure is to say so "
        "(mpi_yield_when_idle, I_MPI_WAIT_MODE), or fewer ranks."
    )

    def examine(self, facts: LaunchFacts) -> Iterator[LaunchFinding]:
        """A finding if ranks outnumber the cores and the library does not yield by itself."""
        ranks, cores = facts.ranks_here, _cores(facts)
        if ranks <= cores or not cores or facts.library is None or yields(facts):
            return
        line = yielding(facts)
        yield self.finding(
            f"{count(ranks, 'rank')} have {count(cores, 'core')}, and a rank that waits keeps its "
            "core",
            f"{ranks / cores:.2g} ranks in turns on each core; a message waits for time slices of "
            "milliseconds",
            Certainty.KNOWN,
            corrected_line=None if line is None else line.words,
        )


def _cores(facts: LaunchFacts) -> int:
    """Cores that the ranks of this node may use together."""
    cores = facts.usable_cores
    cpus = frozenset().union(*(rank.cpus for rank in facts.ranks))
    # Elsewhere ranks that share cores while others are free are a matter of binding.
    return min(cores, count_cores(cpus)) if cpus and facts.line.is_srun else cores


def yields(facts: LaunchFacts) -> bool:
    """True if ranks that wait give their core away, or if that is not known."""
    library, variables = facts.library, facts.rank_variables
    if library is None:
        return True
    match library.family:
        case "openmpi":
            value = _yield_value(facts)
            return _knows_oversubscription(facts) if value is None else value.lower() in _TRUE
        case "impi":
            thread_yield = variables.get("I_MPI_THREAD_YIELD")
            if thread_yield is not None:
                return thread_yield in ("2", "3")
            return variables.get(WAIT_MODE, "0").lower() in (*_TRUE, "on", "enable")
    return True


def _yield_value(facts: LaunchFacts) -> str | None:
    """The value of Open MPI's parameter: of the line, the environment, or a file; None: unset."""
    for option in reversed(facts.line.parameters):
        if option.values[:1] == (YIELD,) and len(option.values) > 1:
            return option.values[1]
    variable = facts.rank_variables.get(f"OMPI_MCA_{YIELD}")
    if variable is not None:
        return variable
    return next((f.values[YIELD] for f in facts.parameter_files if YIELD in f.values), None)


def _knows_oversubscription(facts: LaunchFacts) -> bool:
    """True if Open MPI's launcher itself counts more ranks than slots."""
    if facts.line.is_srun:
        return False
    cores = count_cores(facts.node.online_cpus or facts.node.cpus)
    return facts.ranks_here > (cores if facts.slots is None else facts.slots)
