"""Terminal output of testbeds."""

from __future__ import annotations

from collections.abc import Sequence

from autotune.terminal.render import note_line, print_line, print_table
from autotune.wording import percent, seconds
from runner import testbed as tb

USEFUL_ERROR = 0.1
"""If the measured round trip differs from the requested one by more than this share, the testbed
does not have that latency."""


def _properties(testbed: tb.Testbed) -> str:
    return (
        f"{len(testbed.nodes)} nodes, {seconds(testbed.latency_s)} each way, "
        f"{_rate(testbed.rate_bps)} (shaped by: {testbed.shaper}), MTU {testbed.mtu}"
    )


def _rate(bits: float | None) -> str:
    if bits is None:
        return "-"
    return f"{bits / 1e6:.4g} Mbit/s" if bits else "unlimited"


def _print_nodes(testbed: tb.Testbed) -> None:
    rows = [[n.name, n.address, ",".join(map(str, n.cpus))] for n in testbed.nodes]
    print_table("", ["node", "address", "CPUs"], rows)
    if testbed.shared_cpus:
        print_line(
            note_line(
                "testbed.shared_cpus",
                "the nodes share CPUs; ranks are started as oversubscribed and yield",
            )
        )


def _print_uses(name: str) -> None:
    """Print the commands that use the testbed, as they are typed."""
    option = "" if name == tb.DEFAULT_NAME else f" --name {name}"
    for words in (
        f"search --cluster {name} --ranks 2 -- PROGRAM ARGS",
        f"testbed status{option}",
        f"testbed run{option} -- mpirun -n 2 PROGRAM",
        f"testbed down{option}",
    ):
        print_line(f"  autotune {words}", whole=True)


def _print_status(status: tb.Status) -> None:
    if status.testbed is None or status.state != "up":
        advice = "autotune testbed down" if status.state == "broken" else "autotune testbed up"
        print_line(f"testbed {status.name} is {status.state}:  {advice} --name {status.name}")
        return
    print_line(f"testbed {status.name} is up: {_properties(status.testbed)}")
    _print_nodes(status.testbed)
    if status.round_trip_s is not None:
        print_table("", ["measured now", ">", ""], _figures(status))
        _print_doubts(status)


def _figures(status: tb.Status) -> list[list[str]]:
    target_s = status.asked_round_trip_s or 0.0
    trip = status.round_trip_s or 0.0
    off = (
        f"asked {_micro(target_s)}, {percent(trip / target_s - 1)}"
        if target_s
        else "no latency asked"
    )
    spread = f"a quarter below {_micro(status.round_trip_low_s)}, 5 % above "
    return [
        ["round trip of 8 bytes", _micro(trip), off],
        ["", "", spread + _micro(status.round_trip_high_s)],
        ["bandwidth", _rate(status.bandwidth_bps), f"asked {_asked_rate(status)}"],
        ["delay line, idle", _share(status.line_cpu_idle), "of a CPU"],
        [
            "delay line, round trips",
            _share(status.line_cpu_pingpong),
            _interrupts(status.irq_pingpong),
        ],
        ["delay line, stream", _share(status.line_cpu_stream), _interrupts(status.irq_stream)],
        ["delivered late by", _micro(status.late_s), f"{status.dropped} packets dropped since up"],
    ]


def _micro(value: float | None) -> str:
    """Microseconds, because errors here are smaller than what :func:`seconds` shows."""
    return "-" if value is None else f"{value * 1e6:.0f} us"


def _asked_rate(status: tb.Status) -> str:
    return _rate(status.testbed.rate_bps if status.testbed else None)


def _share(cpus: float | None) -> str:
    return "-" if cpus is None else f"{cpus * 100:.1f} %"


def _interrupts(cpus: float | None) -> str:
    return f"of a CPU; interrupts {_share(cpus)}"


def _print_doubts(status: tb.Status) -> None:
    target_s, trip = status.asked_round_trip_s, status.round_trip_s
    if target_s and trip and abs(trip / target_s - 1) > USEFUL_ERROR:
        print_line(
            note_line(
                "testbed.latency",
                "the round trip differs from the latency asked for; is the machine busy?",
            )
        )
    if not status.realtime:
        print_line(
            note_line(
                "testbed.priority",
                "the delay line has no real-time priority, so ranks can delay it",
            )
        )


def print_testbed(testbed: tb.Testbed) -> None:
    """Print a testbed that is up, and how to use it."""
    print_line(f"testbed {testbed.name} is up: {_properties(testbed)}")
    _print_nodes(testbed)
    _print_uses(testbed.name)


def print_states(states: Sequence[tb.Status]) -> None:
    """Print the states of testbeds."""
    if not states:
        print_line("no testbed is up; to start one:  autotune testbed up --nodes 2", whole=True)
    for one in states:
        _print_status(one)


def print_removals(removals: Sequence[tb.Removal]) -> None:
    """Print the testbeds that were taken down."""
    for one in removals:
        words = f"down, {one.processes} processes ended" if one.found else "was not up"
        print_line(f"testbed {one.name}: {words}")
    if not removals:
        print_line("no testbed is up")
