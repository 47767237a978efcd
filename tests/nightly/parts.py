"""The parts of a nightly run: each is one command of some minutes that is not run twice."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.mpi_environments import ALL

ROOT = Path(__file__).parents[2]
CHAOS = "tests/chaos/"
KILLS = "200"
"""How often the tuner is killed; the plain chaos suite does it 20 times."""
TRIES = 100_000
"""Damaged inputs for each parser, and the seconds after which a slow parser ends."""
FUZZ_S = 60
COVERED_S = 20
SIMULATIONS = {
    "study_simulation": ["--studies", "100", "--candidates", "40", "--power-studies", "300"],
    "main_simulation": ["--studies", "100"],
    "stats_simulation --coverage": ["--coverage"],
    "stats_simulation --null": ["--null"],
    "stats_simulation --power": ["--power"],
    "stats_simulation --racing": ["--racing"],
    "anova_null": ["--series", "100"],
}
"""Those that no slow test carries out; false winners among 1,000 studies are slow tests."""


@dataclass(frozen=True)
class Part:
    """One command; ``row`` is the line of the table that it counts in."""

    name: str
    row: str
    kind: str
    """``pytest``, ``fuzz``, ``covered`` or ``simulation``: how its output is read."""
    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def slug(self) -> str:
        """A file name for its result: readable, and different for different names."""
        number = sum((i + 1) * ord(c) for i, c in enumerate(self.name)) % 1_000_003
        return f"{re.sub(r'[^A-Za-z0-9.-]+', '_', self.name)[:120]}.{number}"


def all_parts(nodes: list[str]) -> list[Part]:
    """Every part; ``nodes`` are the names of the tests that are marked slow or chaos."""
    from tests.fuzz.parsers import PARSERS

    chaos = [node for node in nodes if node.startswith(CHAOS)]
    parts = [_tests(node, "chaos") for node in _functions(chaos)]
    # A slow test is long by itself: each set of parameters is a part.
    parts += [_tests(node, "slow") for node in nodes if node not in chaos]
    parts += _libraries()
    for name, options in SIMULATIONS.items():
        command = [sys.executable, "-m", f"benchmarks.{name.split()[0]}", *options]
        parts.append(Part(f"simulation {name}", f"benchmarks {name}", "simulation", (*command,)))
    for name in PARSERS:
        options = ["--only", name, "--tries", str(TRIES), "--seconds", str(FUZZ_S)]
        command = [sys.executable, "-m", "tests.fuzz.long", *options]
        parts.append(Part(f"fuzz {name}", "fuzzing, damaged inputs", "fuzz", (*command,)))
    for name in PARSERS:
        command = [sys.executable, "-m", "tests.fuzz.covered", name, "--seconds", str(COVERED_S)]
        row = "fuzzing, guided by coverage"
        parts.append(Part(f"covered {name}", row, "covered", (*command,)))
    return parts


def _tests(node: str, mark: str) -> Part:
    command = [sys.executable, "-m", "pytest", "-q", "-rfEs", "-p", "no:cacheprovider"]
    command += ["-m", "slow or chaos", node]
    environment = {"AUTOTUNE_CHAOS_KILLS": KILLS} if mark == "chaos" else {}
    row = f"{mark} {node.split('::')[0]}"
    return Part(f"{mark} {node}", row, "pytest", tuple(command), environment)


def _libraries() -> list[Part]:
    """The contract on each MPI library; the large ones are installed."""
    from tests.nightly.mpi_library import classes

    return [
        Part(
            f"MPI libraries {kind.name}",
            f"MPI libraries {kind.name}",
            "pytest",
            (sys.executable, "-m", "tests.nightly.mpi_library", name),
            {ALL: "all"},
        )
        for name, kind in classes().items()
    ]


def collected() -> list[str]:
    """Names of the tests that are marked slow or chaos.

    Raises ValueError with what pytest said where it cannot collect the tests.
    """
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "-m", "slow or chaos"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 5):
        raise ValueError(f"pytest cannot collect the tests:\n{done.stdout[-2000:]}{done.stderr}")
    return [line for line in done.stdout.splitlines() if "::" in line]


def _functions(nodes: list[str]) -> list[str]:
    """The test functions of nodes, each once."""
    return list(dict.fromkeys(node.split("[")[0] for node in nodes))
