"""Rank layouts: the CPUs of each rank, as a launcher plans them without starting the program.

Two launches whose layouts are equal put the same ranks on the same CPUs of the same nodes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from runner.cpus import available_cpus, count_cores, cpus_of

RankLayout = tuple[str, ...]
"""A text for each rank, in order: its node and its CPUs."""

ALL, UNBOUND = "all", "unbound"
"""CPUs of a rank: all of the machine; or those that it inherits, if these are not all."""

_PROCESS = re.compile(r"proc: \[[^\n]*,(\d+)\]\s*$")
_NODE = re.compile(r"Data for node: (\S+)")
_OVERLOAD = re.compile(r"Oversubscribed: (\w+)")
_BINDING = re.compile(r"\s*Binding: ?(.*?)\s*$")
_OF_PRRTE = re.compile(r"(package\[\d+\]\[(core|hwt):L[\d,-]+\] ?)+")
_OF_ORTE = re.compile(r"(\[[B./]+\])*")
_CORES = re.compile(r"core:L([\d,-]+)")
_HYDRA = re.compile(r"^process (\d+) binding: ([01]+)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Topology:
    """What a layout needs to know of the nodes: their cores, and the CPUs of an unbound rank.

    ``is_whole``: an unbound rank may use all CPUs of its node.
    """

    cores: int
    is_whole: bool = True

    @classmethod
    def here(cls) -> Topology:
        """The topology of this machine, as this process may use it."""
        available = available_cpus()
        return cls(count_cores(available), available <= os.sched_getaffinity(0))

    @property
    def unbound(self) -> str:
        """The CPUs of an unbound rank."""
        return ALL if self.is_whole else UNBOUND


@dataclass(frozen=True)
class LayoutQuery:
    """A command that prints a launcher's plan, and the variables that it needs besides."""

    words: list[str]
    variables: Mapping[str, str] = field(default_factory=dict)
    fails: bool = False
    """True if the command ends with an error even where it has printed the plan."""


def open_mpi_layout(output: str, ranks: int, topology: Topology) -> RankLayout | None:
    """The layout in the job map of Open MPI 4.1 (ORTE) or 5.0 (PRRTE).

    None if it lacks a rank, or has a binding in a form that is not known.
    """
    is_orte = "Locale:" in output
    layout: dict[int, str] = {}
    node, rank = "", None
    for line in output.splitlines():
        if match := _NODE.search(line):
            node = match[1]
        elif match := _OVERLOAD.search(line):
            node = f"{node} {match[1].lower()}" if match[1].upper() == "TRUE" else node
        elif match := _PROCESS.search(line):
            rank = int(match[1])
        elif rank is not None and (match := _BINDING.match(line)):
            cpus = _cpus_of_orte(match[1]) if is_orte else _cpus_of_prrte(match[1], topology)
            cpus = topology.unbound if match[1] == "UNBOUND" else cpus
            if cpus is None:
                return None
            layout[rank], rank = f"{node}: {cpus}", None
    return _in_order(layout, ranks)


def hydra_layout(output: str, ranks: int, topology: Topology, is_bound: bool) -> RankLayout | None:
    """The layout in the lines of ``HYDRA_TOPO_DEBUG``; None if they lack a rank.

    Hydra prints no line for ranks that are not bound: ``is_bound`` says whether they should be.
    """
    masks = {int(rank): mask for rank, mask in _HYDRA.findall(output)}
    if not masks and not is_bound:
        return (topology.unbound,) * ranks
    return _in_order({r: m if "0" in m else ALL for r, m in masks.items()}, ranks)


def _in_order(layout: Mapping[int, str], ranks: int) -> RankLayout | None:
    return tuple(layout[r] for r in range(ranks)) if set(layout) == set(range(ranks)) else None


def _cpus_of_orte(text: str) -> str | None:
    """The CPUs of a binding such as ``[B/.][./.]``; ORTE writes nothing for all CPUs."""
    return (text or ALL) if _OF_ORTE.fullmatch(text) else None


def _cpus_of_prrte(text: str, topology: Topology) -> str | None:
    """The CPUs of a binding such as ``package[0][core:L0-1]``."""
    if not _OF_PRRTE.fullmatch(text):
        return None
    cores = cpus_of(",".join(_CORES.findall(text)))
    return ALL if "hwt:" not in text and len(cores) == topology.cores else text
