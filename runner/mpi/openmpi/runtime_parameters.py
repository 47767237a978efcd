"""The parameters of PRRTE and PMIx, which start the ranks of Open MPI 5.

``prte_info`` prints them for people only; ``pmix_info`` prints rows as ``ompi_info`` does. The two
and the library know nothing of each other: a parameter that is given to the wrong one of the three
is silently ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from runner.mpi.library import ParamInfo
from runner.mpi.openmpi.parameters import parse_ompi_info
from runner.mpi.output import output_of

PRTE_COMMAND, PMIX_COMMAND = "prte_info", "pmix_info"
_ENTRY = re.compile(r'^ *MCA (\w+): (?="\w+" \()')
_PARAMETER = re.compile(
    r'"(?P<name>\w+)" \(current value: "?(?P<value>.*?)"?, data source: (?P<source>.*?), '
    r"type: (?P<type>\w+)(?P<more>(?:, [^()]*(?:\([^()]*\))?)*)\) ?(?P<help>.*)"
)
_SYNONYM = re.compile(r"synonym of: (\w+)")
UNLISTED = {
    f"hwloc_{name}": kind
    for name, kind in {
        "default_binding_policy": "string",
        "default_cpu_list": "string",
        "default_mem_alloc_policy": "string",
        "default_mem_bind_failure_action": "string",
        "default_use_hwthreads_as_cpus": "bool",
        "use_hwthreads_as_cpus": "bool",
        "use_topo_file": "string",
        "base_verbose": "int",
    }.items()
}
"""Parameters that PRRTE 3 obeys although ``prte_info`` does not list them, with their types."""


def read_prte(folder: Path) -> dict[str, ParamInfo]:
    """The parameters of PRRTE whose commands are in ``folder``; {} if it does not list them."""
    listed = parse_prte_info(output_of((str(folder / PRTE_COMMAND), "--all")))
    if not listed:
        return {}
    others = {name: ParamInfo(name, kind, "", "hwloc") for name, kind in UNLISTED.items()}
    # Those of PMIx are listed, too, but are not PRRTE's.
    return others | {name: info for name, info in listed.items() if info.framework != "pmix"}


def read_pmix(folder: Path) -> dict[str, ParamInfo]:
    """The parameters of PMIx whose commands are in ``folder``; {} if it does not list them."""
    return parse_ompi_info(output_of((str(folder / PMIX_COMMAND), "--all", "--parsable")))


def parse_prte_info(text: str) -> dict[str, ParamInfo]:
    """Parameters by name from the output of ``prte_info --all``; malformed entries are skipped."""
    return {info.name: info for entry in _entries(text) if (info := _info(*entry)) is not None}


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """The framework and the text of each entry; the command breaks lines at blanks."""
    framework, words = "", list[str]()
    for line in text.splitlines():
        begin = _ENTRY.match(line)
        if begin or not line.startswith("        "):
            if framework:
                yield framework, " ".join(words)
            framework, words = (begin[1], []) if begin else ("", [])
            line = line[begin.end() :] if begin else ""
        words.append(line.strip())
    if framework:
        yield framework, " ".join(words)


def _info(framework: str, text: str) -> ParamInfo | None:
    match = _PARAMETER.match(text)
    if match is None:
        return None
    synonym = _SYNONYM.search(match["more"])
    return ParamInfo(
        name=match["name"],
        type="unsigned" if match["type"].startswith("u") else match["type"],
        default=match["value"],
        framework=framework,
        help=match["help"],
        source=match["source"],
        synonym_of=synonym[1] if synonym else None,
        deprecated="deprecated" in match["more"],
    )
