"""A cluster definition of this machine; its launch options are chosen by measuring start-up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from autotune.config.cluster import is_wheel, load_cluster
from autotune.errors import UsageError
from autotune.files import write_text
from autotune.names import config_name
from autotune.targets.startup import startup
from autotune.wording import count, seconds
from runner.cpus import count_cores, cpu_list, parse_cpus
from runner.files.paths import exists
from runner.machine import describe_machine
from runner.mpi.discover import find_library
from runner.mpi.library import Library


def define_cluster(
    name: str, mpi: str | None, cpus: str | None, force: bool, tell: Callable[[str], None]
) -> Path:
    """Measure start-up, write ``configs/clusters/NAME.toml``, and return its path.

    ``tell`` gets a line on each measurement. Raises UsageError for a wrong name or CPUs, and if the
    file exists without ``force`` or cannot be written.
    """
    config_name(name, "the name of a cluster")
    cpu_set = _chosen_cpus(cpus)
    path = Path("configs") / "clusters" / f"{name}.toml"
    if exists(path) and not force:
        raise UsageError(
            f"{path} exists already; --force replaces it, another NAME keeps it", code="file.exists"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise UsageError(
            f"cannot write {path}: {problem.strerror}: {problem.filename}; change to a "
            "directory in which you may write",
            code="file.unwritable",
        ) from None
    library = find_library(mpi)
    machine = describe_machine()
    cores = machine.cores if cpu_set is None else count_cores(cpu_set)
    times: dict[tuple[str, ...], float] = {}
    for options in ((), *without_ofi(library)):
        times[options] = startup(library, options, runs=3, cpus=cpu_set).median
        tell(
            f"start-up time with {' '.join(options) or 'no launch options'}: "
            f"{seconds(times[options])}"
        )
    best, why = launch_options(times)
    text = "\n".join(
        [
            f'name = "{name}"',
            f'description = "{_plain(machine.cpu_model)}, {count(cores, "core")}, one node"',
            "nodes = 1",
            f"cores_per_node = {cores}",
            *([] if cpu_set is None else [f'cpus = "{cpu_list(cpu_set)}"']),
            'interconnect = "shared memory"',
            "",
            f"# Measured with {library.family} {library.version}: two ranks start in",
            f"# {seconds(times[()])} without options, in {seconds(times[best])} with those below.",
            "[[launch]]",
            f'mpi = "{library.family}=={".".join(map(str, library.version_tuple[:2]))}"',
            f"wheel = {str(is_wheel(library)).lower()}",
            f"options = [{', '.join(repr(w).replace(chr(39), chr(34)) for w in best)}]",
            f'why = "{why}"',
            "",
        ]
    )
    write_text(path, text)
    load_cluster(str(path))
    return path


NO_OPTIONS = "none needed"


def without_ofi(library: Library) -> list[tuple[str, ...]]:
    """Options that leave out btl/ofi, which is idle on one node; empty if it is not used anyway.

    Exclusions of the site stay: an option replaces the whole value.
    """
    if "btl_ofi_mode" not in library.params or "btl" not in library.params:
        return []
    components = library.params["btl"].default
    excluded = components.removeprefix("^").split(",") if components else []
    if "ofi" in excluded or (components and not components.startswith("^")):
        return []
    return [("--mca", "btl", "^" + ",".join([*excluded, "ofi"]))]


def launch_options(times: dict[tuple[str, ...], float]) -> tuple[tuple[str, ...], str]:
    """The launch options to write, and why, from the start-up time in seconds with each.

    The definition has one node, whose ranks use shared memory: what saves 10 % and 50 ms counts.
    """
    best = min(times, key=lambda o: (times[o], len(o)))
    gain_s = times[()] - times[best]
    if gain_s < max(0.1 * times[()], 0.05):
        return (), NO_OPTIONS
    return best, f"saves {seconds(gain_s)} at every start, and one node does not need it"


def _chosen_cpus(text: str | None) -> frozenset[int] | None:
    try:
        return None if text is None else parse_cpus(text)
    except ValueError as problem:
        raise UsageError(f"--cpus {text!r}: {problem}", code="cluster.cpus") from None


def _plain(text: str) -> str:
    return "".join(c for c in text if c.isalnum() or c in " .-()@").strip() or "unknown processor"
