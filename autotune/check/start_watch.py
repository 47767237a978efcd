"""Watches one start of an empty MPI program: what carries its messages, and what takes the time.

The program starts with the parameters and variables of the line, on two ranks of this machine. Only
a slow start is measured again, without what may make it slow.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from autotune.check.launch_facts import LaunchFacts
from autotune.check.parameter_requests import requests_in_force
from autotune.check.transport_facts import Cause, SeenTransport, StartUpFacts
from autotune.parameters.request import ValuePlace
from runner.errors import RunnerError
from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.mpi.hydra import shared_library
from runner.mpi.library import Library
from runner.mpi.mpich import device_of
from runner.probe.command import empty_program
from runner.types import PROTOCOLS, TRANSPORT, LaunchSpec, RunRecord

SLOW_S, SLOW_BESIDE_S = 2.0, 1.0
"""A start that takes longer is measured again for its causes; the second, if the program itself is
known to take less than its start."""
_LIMIT_S = 30.0
_PASSED_ON = frozenset({"parameter", "variable", "parameter_file"})
_OWN_PARAMETERS = ("prtemca", "pmixmca", "gprtemca", "gpmixmca", "am")


def watch_start(facts: LaunchFacts) -> LaunchFacts:
    """The facts with those of the transport and of the start; as they are if none can be seen.

    Takes one launch of two ranks, a slow one up to four.
    """
    library = facts.library
    if library is None or facts.line.is_srun or not facts.hosts_here or not library.params:
        return facts
    try:
        spec = _spec(facts, library)
        with Runner(adapter(library), guard=False) as runner:
            record = runner.run(spec)
            if record.state not in ("ok", "not_read_back"):
                return replace(facts, transport=SeenTransport(device=_device(library)))
            after_s = _program_s(facts, record)
            is_short = after_s is not None and after_s < record.wall_s
            is_slow = record.wall_s > (SLOW_BESIDE_S if is_short else SLOW_S)
            causes = _causes(runner, spec, record, library) if is_slow else {}
    except RunnerError:
        return facts
    return replace(
        facts,
        transport=transport_of(record, library),
        start_up=StartUpFacts(record.wall_s, causes, after_s),
    )


def transport_of(record: RunRecord, library: Library) -> SeenTransport:
    """What carried the messages of a run, from its read-back."""
    backs = record.read_back
    in_force = backs[TRANSPORT].effective if TRANSPORT in backs else None
    protocols = {
        name.removeprefix(PROTOCOLS): back.effective or ""
        for name, back in backs.items()
        if name.startswith(PROTOCOLS)
    }
    inactive = {
        name: back.source or "its component is not opened"
        for name, back in backs.items()
        if back.state == "inactive"
    }
    return SeenTransport(in_force or "", protocols, inactive, _device(library))


def _program_s(facts: LaunchFacts, record: RunRecord) -> float | None:
    """The time of the program after its start; None if it was not run."""
    outcome = facts.outcome
    is_known = outcome is not None and not outcome.dry
    return max(0.0, outcome.seconds - record.wall_s) if outcome and is_known else None


def _device(library: Library) -> str:
    own = shared_library(library) if library.family == "mpich" else None
    return "" if own is None else device_of(own)


def _spec(facts: LaunchFacts, library: Library) -> LaunchSpec:
    """An empty program on two ranks with the parameters and variables of the line."""
    words = [
        word
        for option in facts.line.options
        if option.treatment in _PASSED_ON or option.bare in _OWN_PARAMETERS
        for word in option.words
    ]
    expected = {
        name: one.value
        for name, one in requests_in_force(facts).items()
        if name in library.params and one.request.place is not ValuePlace.SYSTEM_FILE
    }
    own = {n: v for n, v in facts.environment.items() if os.environ.get(n) != v}
    return LaunchSpec(
        program=tuple(empty_program(library)),
        ranks=2,
        env=own,
        expected=expected,
        launch_options=tuple(words),
        oversubscribe=facts.node.cores < 2,
        timeout_s=_LIMIT_S,
    )


def _causes(
    runner: Runner, spec: LaunchSpec, record: RunRecord, library: Library
) -> Mapping[Cause, float]:
    """The seconds that each cause takes of a slow start."""
    causes: dict[Cause, float] = {"resolver": _resolver_s()}
    without: dict[Cause, LaunchSpec] = {
        "pci": replace(spec, env={**spec.env, "HWLOC_COMPONENTS": "-pci"})
    }
    if "btl_ofi_mode" in library.params and "btl" not in spec.launch_options:
        options = (*spec.launch_options, "--mca", "btl", "^ofi")
        without["ofi"] = replace(spec, launch_options=options)
    for cause, other in without.items():
        again = runner.run(other)
        if again.valid:
            causes[cause] = max(0.0, record.wall_s - again.wall_s)
    return causes


def _resolver_s() -> float:
    """Seconds in which the name of this host is looked up."""
    began = time.monotonic()
    with suppress(OSError):
        socket.getaddrinfo(socket.gethostname(), None)
    return time.monotonic() - began
