"""``autotune apps`` and ``autotune cluster``: known applications and clusters."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ConfigDict, Field

from autotune.cli import completion
from autotune.cli.options import JsonOut, opt
from autotune.cli.requests import Mpi
from autotune.config.app import App, load_app
from autotune.config.cluster import (
    Cluster,
    cluster_file,
    cluster_names,
    is_wheel,
    load_cluster,
    read_cluster,
)
from autotune.config.find import is_shipped, list_configs, user_config
from autotune.config.validated import read_toml
from autotune.document import Document, LibraryName
from autotune.errors import UsageError
from autotune.files import write_text
from autotune.names import config_name
from autotune.targets.jobs import divide_cores
from autotune.targets.startup import startup
from autotune.terminal.clusters import cpus_words, print_app
from autotune.terminal.render import print_hanging, print_line, print_table, write_json
from autotune.wording import count, seconds
from runner.cpus import available_cpus, count_cores, cpu_list, parse_cpus
from runner.errors import RunnerError
from runner.files.paths import exists
from runner.machine import describe_machine
from runner.mpi.discover import find_library

cluster = typer.Typer(
    help="List, show and write cluster definitions (where programs run).", no_args_is_help=True
)


class ShownApp(App):
    """An application, as its file has it."""

    literal: bool = Field(default=False, exclude=True)


AppList = list[ShownApp]


class ClusterRow(Cluster):
    """A cluster definition and its file."""

    file: str
    """The definition."""


ClusterList = list[ClusterRow]


class ShownCluster(ClusterRow):
    """A cluster definition with one MPI library."""

    model_config = ConfigDict(serialize_by_alias=True)

    launch_options: tuple[str, ...] = Field(alias="options")
    """Launch options for this MPI library."""
    missing: str | None
    """Why the cluster cannot be used."""


class JobShare(Document):
    """The share of one MPI job."""

    cpus: str
    cores: int
    command: str


class DividedCores(Document):
    """The cores of this node divided among MPI jobs."""

    mpi: LibraryName
    """MPI library: family and version."""
    jobs: list[JobShare]
    left: str
    """CPUs that no job has."""


def apps(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Name of an application to show in detail. Default: list all.",
            autocompletion=completion.apps,
        ),
    ] = None,
    json_out: JsonOut = None,
) -> None:
    """List the applications that are known by name."""
    found = (
        [load_app(name)] if name else [read_toml(f.text, f.path, App) for f in list_configs("apps")]
    )
    if json_out:
        write_json([ShownApp.model_construct(**vars(one)) for one in found], json_out)
        return
    if name:
        print_app(found[0])
        return
    rows = [[a.name, ", ".join(a.inputs) or "-", a.description] for a in found]
    print_table("", ["name", "inputs", "description"], rows)
    print_line("\nTo tune one of them:  autotune search --app NAME --input I", whole=True)


@cluster.command("list")
def list_clusters(json_out: JsonOut = None) -> None:
    """List the cluster definitions and where they come from."""
    known = [(name, read_cluster(name)) for name in cluster_names()]
    if json_out:
        shown = [ClusterRow.model_construct(**vars(c), file=cluster_file(n).path) for n, c in known]
        write_json(shown, json_out)
        return
    rows = [[*_row(name, one), _origin(name)] for name, one in known]
    print_table("", ["name", ">nodes", "description", "from"], rows)
    print_line("\nFor details of one:  autotune cluster show NAME", whole=True)


def _origin(name: str) -> str:
    """The path of the definition, or "autotune" if it is shipped."""
    file = cluster_file(name)
    return "autotune" if is_shipped(file) else file.path


@cluster.command("show")
def show(
    name: Annotated[
        str,
        typer.Argument(
            help="Name of a cluster, or path of a cluster definition.",
            autocompletion=completion.clusters,
        ),
    ],
    mpi: Mpi = None,
    json_out: JsonOut = None,
) -> None:
    """Show a cluster: its file, nodes, launch options for this MPI, and what is not tuned."""
    file, known = cluster_file(name), read_cluster(name)
    missing = ""
    try:
        known = load_cluster(name)
    except RunnerError as problem:
        missing = str(problem)
    library = find_library(mpi)
    options = () if missing else known.options(library)
    if json_out:
        shown = ShownCluster.model_construct(
            **vars(known), file=file.path, launch_options=options, missing=missing or None
        )
        write_json(shown, json_out)
        return
    print_line(f"{known.name}: {known.description}")
    each = known.cores_per_node or describe_machine().cores
    cores = known.cores or each * known.nodes
    shared = " in all" + (", shared by the nodes" if cores < each * known.nodes else "")
    facts = [
        ("file", file.path + (" (comes with autotune)" if is_shipped(file) else "")),
        ("nodes", missing or f"{known.nodes}; {count(cores, 'core')}{shared}"),
        ("network", "" if missing else known.interconnect),
        ("CPUs", known.cpus),
        ("MPI", f"{library.family} {library.version} in {library.bin}"),
        ("starts with", "" if missing else shlex.join(options) or "no launch options"),
        ("why", next((e.why for e in known.launch if e.matches(library)), "")),
        ("searches", f"space {known.space(library)}"),
        *(("not tuned", f"{name}: {why}") for name, why in known.fixed.items()),
        *(("own process", name) for name in known.own_processes),
    ]
    for what, said in facts:
        if said:
            print_hanging(f"  {what:11}  ", said)


def _row(name: str, known: Cluster) -> list[str]:
    """A row of the list; the properties of a testbed are known only while it is up."""
    if known.testbed is None:
        return [name, str(known.nodes), known.description]
    try:
        up = load_cluster(name)
    except RunnerError:
        return [name, "-", f"{known.description}; not up"]
    return [name, str(up.nodes), f"A testbed that is up: {up.interconnect}"]


@cluster.command("init")
def init(
    name: Annotated[
        str,
        typer.Argument(
            help="Name of the new definition; it is written to configs/clusters/NAME.toml."
        ),
    ],
    mpi: Mpi = None,
    cpus: Annotated[
        str | None,
        opt(
            "--cpus LIST", 'Measure on these CPUs of the machine only, such as "0-3". Default: all.'
        ),
    ] = None,
    force: Annotated[bool, opt("--force", "Replace the file if it exists.")] = False,
) -> None:
    """Write a definition of this machine; its launch options are chosen by measuring start-up."""
    config_name(name, "the name of a cluster")
    chosen = _chosen_cpus(cpus)
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
    cores = machine.cores if chosen is None else count_cores(chosen)
    tried: dict[tuple[str, ...], float] = {}
    candidates: list[tuple[str, ...]] = [()]
    if "btl_ofi_mode" in library.params:
        candidates.append(("--mca", "btl", "^ofi"))
    for options in candidates:
        tried[options] = startup(library, options, runs=3, cpus=chosen).median
        print_line(
            f"start-up time with {' '.join(options) or 'no launch options'}: "
            f"{seconds(tried[options])}"
        )
    best, why = _launch_options(tried)
    if not best and why != NONE_NEEDED:
        print_line(f"no launch options: {why}")
    text = "\n".join(
        [
            f'name = "{name}"',
            f'description = "{_plain(machine.cpu_model)}, {count(cores, "core")}, one node"',
            "nodes = 1",
            f"cores_per_node = {cores}",
            *([] if chosen is None else [f'cpus = "{cpu_list(chosen)}"']),
            'interconnect = "shared memory"',
            "",
            f"# Measured with {library.family} {library.version}: two ranks start in",
            f"# {seconds(tried[()])} without options, in {seconds(tried[best])} with those below.",
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
    print_line(f"wrote {path}; to use it:  autotune search --cluster {name} ...", whole=True)
    place = user_config() / "clusters"
    said = (
        f"This definition is found from the present directory only. Move it to {place} "
        "to use it from every directory."
    )
    print_line(said)


NONE_NEEDED = "none needed"


def _launch_options(tried: dict[tuple[str, ...], float]) -> tuple[tuple[str, ...], str]:
    """The launch options to write, and why, from the start-up time in seconds with each."""
    best = min(tried, key=lambda o: (tried[o], len(o)))
    plain, saved = tried[()], tried[()] - tried[best]
    # A component is only left out for a very large gain, because it may be the interconnect.
    if plain >= 3 * tried[best] and saved >= 0.5:
        return best, f"saves {seconds(saved)} at every start"
    if saved < 0.1 * plain:
        return (), NONE_NEEDED
    left_out = f"{' '.join(best)} saves {seconds(saved)} at a start"
    return (), f"{left_out}, too little to leave out what may be the interconnect"


def _chosen_cpus(text: str | None) -> frozenset[int] | None:
    try:
        return None if text is None else parse_cpus(text)
    except ValueError as problem:
        raise UsageError(f"--cpus {text!r}: {problem}", code="cluster.cpus") from None


@cluster.command("split")
def split(
    jobs: Annotated[int, typer.Argument(help="Number of MPI jobs that run at once.", min=2)],
    mpi: Mpi = None,
    json_out: JsonOut = None,
) -> None:
    """Divide the cores of this node among several MPI jobs, and print a launcher line for each.

    Started as usual, each of them would bind its ranks from the first core on.
    """
    library = find_library(mpi)
    shares = divide_cores(jobs, library)
    used = frozenset().union(*(share.cpus for share in shares))
    left = available_cpus() - used
    if json_out:
        rows = [JobShare(cpus=cpu_list(s.cpus), cores=s.cores, command=s.line) for s in shares]
        named = LibraryName(name=library.family, version=library.version)
        write_json(DividedCores(mpi=named, jobs=rows, left=cpu_list(left)), json_out)
    if json_out == "-":
        return
    each = count(shares[0].cores, "core")
    print_line(f"{jobs} jobs with {each} each, started by {library.family} {library.version}:")
    for share in shares:
        print_line(f"  {cpus_words(share.cpus)}:  {share.line}", whole=True)
    if left:
        print_line(f"left over: {cpus_words(left)}")
    first = cpu_list(shares[0].cpus)
    print_line(f"To measure on such a set:  autotune cluster init NAME --cpus {first}", whole=True)


def _plain(text: str) -> str:
    return "".join(c for c in text if c.isalnum() or c in " .-()@").strip() or "unknown processor"
