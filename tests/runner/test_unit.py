"""Units and words beside a figure: times, rates, and what is neither."""

from __future__ import annotations

import pytest

from runner.figure.unit import LABEL, Unit, unit_around, unit_in_header, unit_of_key
from tests.case_table import case_table


def unit(line: str) -> Unit:
    """The unit of the number at the sign @."""
    at = line.index("@")
    return unit_around(line[:at][-LABEL:], line[at + 1 :][:LABEL])


@case_table(
    "line",
    [
        "Performance: @ ns/day, 9 hours/ns, 3 timesteps/s",
        "Performance: 12.3 ns/day, 1.2 hours/ns, @ timesteps/s, 7 katom-step/s",
        "Performance: 12.3 ns/day, 1.2 hours/ns, 3.1 timesteps/s, @ katom-step/s",
        "FOM                  =  @ (z/s)",
        "FOM = @ Gflop/s",
        "HPCG result is VALID with a GFLOP/s rating of=@",
        "HPCG 2.4 rating for historical reasons is=@",
        "Grid : Message : 0.960572 s :  mflop/s =   @",
        "Comparison point     result: @ Mflop/s per node",
        " Mop/s total     =                @",
        "Rate (MB/s): @",
        "Best Rate MB/s  @",
        "bandwidth @ GB/s",
        "average bandwidth: @",
        "Time 3.2 Gflops @",
        "Iterations per second: @",
        "@ iterations per second",
        "Number of timesteps per second @",
        "throughput: @ it/s",
        "@ steps/s",
        "MLUPS: @",
        "@ MLUP/s",
        "GUPS = @",
        "@ events/sec",
        "harmonic_mean_TEPS: @",
        "Speedup: @",
        "simulated years per day: @",
        "Transfer rate: @",
    ],
)
def test_rates(line: str) -> None:
    assert unit(line).kind == "rate"


@case_table(
    "line",
    [
        "Loop time of @ on 2 procs for 250 steps with 4000 atoms",
        "Performance: 12.3 ns/day, @ hours/ns, 3 timesteps/s",
        "Total wall time: @",
        "ExecutionTime = @ s  ClockTime = 17 s",
        "ExecutionTime = 5.13 s  ClockTime = @ s",
        "Elapsed time         = @ (s)",
        "Grind time (us/z/c)  =  @ (per dom)  (  2.1 overall)",
        "execution time (sec) is=@",
        "| Total wallclock time elapsed |      @s |",
        "Grid : Message : @ s : ====",
        "Time in seconds =                     @",
        "Time @ Gflops 16.3",
        "seconds per iteration: @",
        "@ seconds per iteration",
        "Time per step: @",
        "error rate of 3: time @",
        "took @",
    ],
)
def test_times(line: str) -> None:
    assert unit(line).kind == "time"


@case_table(
    "line",
    [
        "rate of convergence = @",
        "convergence rate: @",
        "miss rate: @",
        "Effective bandwidth time @",
        "Time spent in rate evaluation: @",
        "Loop rate at time 7: @",
        "energy @",
        "Result = @",
        "Memory: @ MB",
        "CPU use @ %",
        "Total @",
        "ring of 3 ranks: @",
    ],
)
def test_neither(line: str) -> None:
    assert unit(line).kind == ""


@case_table(
    ("line", "scale"),
    [
        ("elapsed @ ms", 1e-3),
        ("Time (ms): @", 1e-3),
        ("Time [us] = @", 1e-6),
        ("latency_us=@", 1e-6),
        ("Completed in @ minutes", 60),
        ("time @ min", 60),
        ("Wall-clock (h): @", 3600),
        ("time min/max/avg: @ min 7 max", 1),
        ("time @ s", 1),
        ("bandwidth @ MB/s", 1e6),
        ("bandwidth @ GiB/s", 2.0**30),
        ("@ it/s", 1),
    ],
)
def test_scales(line: str, scale: float) -> None:
    assert unit(line).scale == pytest.approx(scale)


@case_table(
    ("key", "kind", "scale"),
    [
        ("solver_s", "time", 1),
        ("seconds", "time", 1),
        ("elapsed_ms", "time", 1e-3),
        ("elapsedMs", "time", 1e-3),
        ("time_min", "time", 1),
        ("gflops", "rate", 1e9),
        ("bandwidth", "rate", 1),
        ("timesteps_per_second", "rate", 1),
        ("GB/s", "rate", 1e9),
        ("energy", "", 1),
    ],
)
def test_keys(key: str, kind: str, scale: float) -> None:
    found = unit_of_key(key)
    assert (found.kind, found.scale) == (kind, pytest.approx(scale))


HPL = [
    "T/V                N    NB     P     Q               Time                 Gflops",
    "-" * 80,
    "WR02R2C4        2000   152     1     2              12.34             1.2345e+01",
]


def test_the_header_of_a_table() -> None:
    assert unit_in_header(HPL, 2, HPL[2].index("12.34")).kind == "time"
    assert unit_in_header(HPL, 2, HPL[2].index("1.2345")).kind == "rate"
    assert unit_in_header(HPL, 2, HPL[2].index("152")).kind == ""
    assert unit_in_header(HPL[2:], 0, HPL[2].index("1.2345")).kind == ""
