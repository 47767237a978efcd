"""Values that Open MPI shows after MPI_Init (``mpi_show_mca_params``), and their meaning.

They show if a parameter took effect, which values were inherited, and if the ranks loaded the
launcher's library.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from runner.files.paths import real_path
from runner.mpi.library import POLICIES, Library, ParamInfo, placement_of, same_value
from runner.mpi.openmpi.parameters import SYSTEM_VARIABLE
from runner.mpi.openmpi.traffic import deselection_reason, lacks_component, same_transfers
from runner.types import LaunchSpec, ReadBack

RunValues = dict[str, tuple[str, str]]
"""Value and source of each parameter by its name."""

SHOW_FILE = "mca-params.txt"
SHOW_PARAMETER = "mpi_show_mca_params_file"
_SIZE = re.compile(r"\(out of a total of (\d+)\)")
# The launcher sets these for its own processes, and 4.1 passes them on like a user's; they are not
# settings.
_LAUNCHER_OWN = re.compile(
    r"^(orte_|ess$|ess_|pmix$|prte_|mpi_show_mca_params|mpi_oversubscribe$|plm_|rmaps_)"
)


def parse_run_values(text: str) -> tuple[int | None, RunValues]:
    """World size and ``{name: (value, source)}`` from a file written by ``mpi_show_mca_params``."""
    size = None
    values: RunValues = {}
    for line in text.splitlines():
        if line.startswith("#"):
            match = _SIZE.search(line)
            if match:
                size = int(match[1])
            continue
        if (entry := _shown_line(line)) is not None:
            values[entry[0]] = entry[1]
    return size, values


# About 500 lines follow every run; nearly all equal those of the previous run.
@lru_cache(maxsize=4096)
def _shown_line(line: str) -> tuple[str, tuple[str, str]] | None:
    """Name, value and source in ``name=value (source)``; None for any other line."""
    name, equals, rest = line.partition("=")
    rest = rest.rstrip()
    # The source may itself hold parentheses: "(file (PATH:LINE))".
    at = rest.rfind(" (file (") if rest.endswith("))") else rest.rfind(" (")
    if equals and at >= 0 and rest.endswith(")"):
        return name.strip(), (rest[:at], rest[at + 2 : -1])
    return None


def world_size(own_count: int | None, run_values: RunValues) -> int | None:
    """The number of ranks of the job.

    5.0 counts all. 4.1 counts only those on its own node, but its launcher reports the number.
    """
    reported_size = run_values.get("orte_ess_num_procs", ("", ""))[0]
    return int(reported_size) if re.fullmatch("[0-9]{1,9}", reported_size) else own_count


def inherited_values(
    run_values: RunValues,
    ours: Mapping[str, str],
    spec: LaunchSpec,
    params: Mapping[str, ParamInfo],
) -> dict[str, str]:
    """Values that the launch did not set itself (``ours``), each with its source."""
    settings = {
        name: f"{value} ({_place(source)})"
        for name, (value, source) in run_values.items()
        if source != "default" and name not in ours and not _LAUNCHER_OWN.match(name)
    }
    if not spec.clean_env:
        settings = {k: v for k, v in settings.items() if not _is_synonym(k, ours, params)}
    # The launcher passes a requested placement on under the parameter's own name.
    policies = {p for p in POLICIES if p in spec.placement or _option(p) in spec.launch_options}
    return {k: v for k, v in settings.items() if placement_of(k) not in policies}


def _is_synonym(name: str, ours: Mapping[str, str], params: Mapping[str, ParamInfo]) -> bool:
    """True if a name is a synonym of a parameter that the launch itself sets."""
    info = params.get(name)
    own = info.synonym_of if info else None
    if own in ours:
        return True
    # Two components register one parameter under two names; the library lists only one of them.
    words = name.split("_")[-2:]
    if any(key not in params and key.split("_")[-2:] == words for key in ours):
        return True
    return any((other := params.get(key)) is not None and other.synonym_of == name for key in ours)


def state_of(
    name: str, value: str, run_values: RunValues, params: Mapping[str, ParamInfo]
) -> ReadBack:
    """The read-back state of a requested value."""
    info = params.get(name)
    key = info.synonym_of if info and name not in run_values and info.synonym_of else name
    if key in run_values:
        effective, source = run_values[key]
        same = same_value(value, effective, info) or same_transfers(name, value, effective)
        state = "in force" if same else "altered"
        return ReadBack(state, value, effective, source)  # type: ignore[arg-type]
    # The library knows it, but its component was not opened in this run.
    if info or lacks_component(name, run_values):
        return ReadBack("inactive", value)
    selections = {n: p.default for n, p in params.items() if "_" not in n}
    why = deselection_reason(name, run_values, selections)
    return ReadBack("inactive", value, source=why) if why else ReadBack("unknown", value)


def mismatch_of(
    library: Library, prefix: Path, run_values: RunValues, spec: LaunchSpec
) -> str | None:
    """How the ranks' library differs from the launcher's; None if they are the same.

    ``prefix`` is the folder of the launcher's installation.
    """
    mpi_parameters = {n for n in run_values if n.startswith("mpi_")}
    unknown = sorted(mpi_parameters - library.params.keys())
    if unknown and SHOW_PARAMETER in library.params:
        # The list is complete. The file below proves nothing if the launcher was moved (a wheel):
        # it then changes the paths of any Open MPI that it starts.
        return f"it has the parameter {unknown[0]}, which {library.version} does not have"
    info = library.params.get("mca_base_param_files")
    if info is None or spec.clean_env or "mca_base_param_files" not in run_values:
        return None
    theirs, source = run_values["mca_base_param_files"]
    system = Path(theirs.split(",")[-1])
    # A relocated library (the wheel) reports its present path; its ompi_info reports the build
    # path.
    same = system == Path(info.default.split(",")[-1]) or real_path(system).is_relative_to(prefix)
    if folder := spec.env.get(SYSTEM_VARIABLE):
        # The launch reads copies of the system's files.
        same = same or system.parent == Path(folder)
    if source != "default" or same:
        return None
    return f"its system parameter file is {theirs}, the launcher's is {info.default}"


def _place(source: str) -> str:
    """``file PATH:LINE`` for ``file (PATH:LINE)``; the result is put in parentheses."""
    return re.sub(r"^file \((.*)\)$", r"file \1", source)


def _option(policy: str) -> str:
    """The launcher's option for a policy: ``--bind-to`` for ``bind_to``."""
    return "--" + policy.replace("_", "-")
