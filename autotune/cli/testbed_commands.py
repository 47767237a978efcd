"""``autotune testbed``: starts, measures, uses and stops a small cluster on one machine."""

from __future__ import annotations

import re
from contextlib import ExitStack
from typing import Annotated

import typer

from autotune.cli.options import JsonOut, opt
from autotune.config.cluster import check_testbed_name
from autotune.errors import UsageError
from autotune.terminal.render import print_message, write_document, write_json
from autotune.terminal.testbeds import print_removals, print_states, print_testbed
from runner import testbed as tb
from runner.lock import BusyError, LockNews, MachineLock

testbed = typer.Typer(
    help="Set up and use a small cluster on this machine, made of network namespaces "
    "and a delay line (needs root).",
    no_args_is_help=True,
)

Name = Annotated[str, opt("--name NAME", "Name of the testbed; several may be up.")]

TestbedList = list[tb.Status]
DownList = list[tb.Removal]

_LATENCY = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)\s*(us|ms|s)")
_RATE = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)\s*([kmg])(?:bit|bps)?", re.IGNORECASE)
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_BITS = {"k": 1e3, "m": 1e6, "g": 1e9}


def parse_latency(text: str) -> float:
    """Seconds of ``100us``, ``1ms``, ``0.5s`` or ``0``; raises UsageError for anything else."""
    if text.strip() == "0":
        return 0.0
    match = _LATENCY.fullmatch(text.strip().lower())
    if match is None:
        raise UsageError(
            f"--latency {text!r} is not a time; expected a number and us, ms or s, such as "
            "100us or 1ms, or 0",
            code="testbed.syntax",
        )
    return float(match[1]) * _SECONDS[match[2]]


def parse_rate(text: str) -> int:
    """Bits per second of ``1gbit``, ``100mbit`` or ``unlimited`` (0); else raises UsageError."""
    if text.strip().lower() == "unlimited":
        return 0
    match = _RATE.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"--rate {text!r} is not a rate; expected a number and kbit, mbit or gbit, "
            "such as 100mbit or 1gbit, or unlimited",
            code="testbed.invalid",
        )
    return round(float(match[1]) * _BITS[match[2].lower()])


@testbed.command("up")
def up(
    nodes: Annotated[int, opt("--nodes N", "Number of nodes.")] = 2,
    latency: Annotated[
        str, opt("--latency TIME", "Latency of each direction: 100us, 1ms, or 0 for none.")
    ] = "1ms",
    rate: Annotated[
        str, opt("--rate RATE", "Bandwidth of each link: 100mbit, 1gbit, or unlimited.")
    ] = "1gbit",
    cores: Annotated[
        int | None,
        opt("--cores N", "CPU cores of each node. Default: equal shares of this machine's cores."),
    ] = None,
    mtu: Annotated[
        int,
        opt(
            "--mtu BYTES",
            "Largest packet, in bytes. Small packets cost the delay line much CPU time.",
        ),
    ] = 65520,
    name: Name = tb.DEFAULT_NAME,
    json_out: JsonOut = None,
) -> None:
    """Start a testbed; a testbed that is up with the same properties stays."""
    properties = (parse_latency(latency), parse_rate(rate))
    check_testbed_name(name)
    with ExitStack() as turn:
        _take_lock(turn, waiting=True)
        running_testbed = tb.up(name, nodes, *properties, mtu, cores)
    if write_document(running_testbed, json_out):
        print_testbed(running_testbed)


@testbed.command("status")
def status(
    name: Annotated[
        str | None, opt("--name NAME", "Name of the testbed. Default: all that are up.")
    ] = None,
    measure: Annotated[
        bool | None,
        opt(
            "--measure/--no-measure",
            "Measure round trip, bandwidth and CPU time of the delay line. Default: only "
            "if the machine lock is free; --measure waits for it.",
            show_default=False,
        ),
    ] = None,
    json_out: JsonOut = None,
) -> None:
    """Show the testbeds that are up; measure round trip, bandwidth and delay-line cost.

    The exit code is 1 if a testbed is broken, or if the named testbed is not up.
    """
    names = [name] if name else tb.names()
    with ExitStack() as turn:
        can_measure = measure is not False and _take_lock(turn, waiting=bool(measure))
        states = [tb.status(one, can_measure) for one in names]
    if write_document(states, json_out):
        print_states(states)
    if any(one.state != "up" for one in states):
        raise typer.Exit(1)


@testbed.command("down")
def down(
    name: Annotated[
        str | None, opt("--name NAME", "Name of the testbed to take down. Default: all.")
    ] = None,
    json_out: JsonOut = None,
) -> None:
    """Stop testbeds, and remove what broken ones have left."""
    removals = [tb.down(one) for one in ([name] if name else tb.names())]
    if write_document(removals, json_out):
        print_removals(removals)


@testbed.command("run", context_settings={"ignore_unknown_options": True})
def run(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- mpirun ... | -- COMMAND",
            help="An mpirun line, or another command and its arguments.",
            show_default=False,
        ),
    ] = None,
    name: Name = tb.DEFAULT_NAME,
    json_out: JsonOut = None,
) -> None:
    """Run mpirun with its ranks on the nodes, or another command on the first node.

    The exit code is 1 if that of the command is not 0.
    """
    outcome = tb.run(name, tuple(command or ()))
    if json_out:
        write_json(outcome, json_out)
    if outcome.exit_code:
        raise typer.Exit(1)


def _take_lock(turn: ExitStack, waiting: bool) -> bool:
    """Take the machine lock, because measuring a testbed and measuring a program disturb each
    other.

    Returns False, with a message, if another process has the lock and ``waiting`` is false.
    """

    def say(news: LockNews) -> None:
        if waiting or news.code != "lock.waiting":
            print_message(news.words)

    try:
        turn.enter_context(MachineLock("exclusive", None if waiting else 0.0, say))
    except BusyError as problem:
        print_message(f"not measured (--measure waits): {problem}")
        return False
    return True
