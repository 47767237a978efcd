"""Terminal output of applications, clusters, and the cores of jobs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from autotune.api.clusters import ClusterState
from autotune.config.app import App
from autotune.config.cluster import Cluster, cluster_file, load_cluster
from autotune.config.find import is_shipped
from autotune.targets.jobs import Share
from autotune.terminal.render import print_hanging, print_line, print_table
from autotune.wording import count
from runner.cpus import cpu_list
from runner.errors import RunnerError
from runner.machine import describe_machine
from runner.mpi.library import Library


def print_app(app: App) -> None:
    """Print an application with its inputs."""
    print_line(f"{app.name}: {app.description}")
    print_line(f"  command  {' '.join(app.command)}")
    several = f" ({app.metric_choice} of several)" if app.metric_choice else ""
    print_line(f"  metric   {app.metric or 'wall time'}{several}")
    print_line(f"  verify   {app.verify or 'exit code'}")
    rows = [
        [f"{key}{' *' if key == app.usual_input else ''}", case.description]
        for key, case in app.inputs.items()
    ]
    print_table("", ["input (* default)", "description"], rows)
    for key, form in app.fidelity.items():
        print_line(f"  cheap form of {key} (--fidelity): {form}")


def _cpus_words(cpus: frozenset[int]) -> str:
    return f"{'CPU' if len(cpus) == 1 else 'CPUs'} {cpu_list(cpus)}"


def print_apps(apps: Sequence[App]) -> None:
    """Print the list of applications."""
    rows = [[a.name, ", ".join(a.inputs) or "-", a.description] for a in apps]
    print_table("", ["name", "inputs", "description"], rows)
    print_line("\nTo tune one of them:  autotune search --app NAME --input I", whole=True)


def print_clusters(clusters: Mapping[str, Cluster]) -> None:
    """Print the list of clusters, by name."""
    rows = [[*_row(name, cluster), _origin(name)] for name, cluster in clusters.items()]
    print_table("", ["name", ">nodes", "description", "from"], rows)
    print_line("\nFor details of one:  autotune cluster show NAME", whole=True)


def _origin(name: str) -> str:
    """The path of the definition, or "autotune" if it is shipped."""
    file = cluster_file(name)
    return "autotune" if is_shipped(file) else file.path


def _row(name: str, cluster: Cluster) -> list[str]:
    """A row of the list; the properties of a testbed are cluster only while it is up."""
    if cluster.testbed is None:
        return [name, str(cluster.nodes), cluster.description]
    try:
        up = load_cluster(name)
    except RunnerError:
        return [name, "-", f"{cluster.description}; not up"]
    return [name, str(up.nodes), f"A testbed that is up: {up.interconnect}"]


def print_cluster(state: ClusterState) -> None:
    """Print what is known of a cluster."""
    file, cluster, library, missing = (
        cluster_file(state.name),
        state.cluster,
        state.library,
        state.missing,
    )
    print_line(f"{cluster.name}: {cluster.description}")
    each = cluster.cores_per_node or describe_machine().cores
    cores = cluster.cores or each * cluster.nodes
    total_words = " in all" + (", shared by the nodes" if cores < each * cluster.nodes else "")
    facts = [
        ("file", file.path + (" (comes with autotune)" if is_shipped(file) else "")),
        ("nodes", missing or f"{cluster.nodes}; {count(cores, 'core')}{total_words}"),
        ("network", "" if missing else cluster.interconnect),
        ("CPUs", cluster.cpus),
        ("MPI", f"{library.family} {library.version} in {library.bin}"),
        ("starts with", "" if missing else shlex.join(state.options) or "no launch options"),
        ("why", next((e.why for e in cluster.launch if e.matches(library)), "")),
        ("searches", f"space {cluster.space(library)}"),
        *(("not tuned", f"{parameter}: {why}") for parameter, why in cluster.fixed.items()),
        *(("own process", process) for process in cluster.own_processes),
    ]
    for title, text in facts:
        if text:
            print_hanging(f"  {title:11}  ", text)


def print_shares(shares: Sequence[Share], library: Library, left: frozenset[int]) -> None:
    """Print the cores and the launcher line of each job, and the CPUs that are left."""
    jobs = len(shares)
    each = count(shares[0].cores, "core")
    print_line(f"{jobs} jobs with {each} each, started by {library.family} {library.version}:")
    for share in shares:
        print_line(f"  {_cpus_words(share.cpus)}:  {share.line}", whole=True)
    if left:
        print_line(f"left over: {_cpus_words(left)}")
    first = cpu_list(shares[0].cpus)
    print_line(f"To measure on such a set:  autotune cluster init NAME --cpus {first}", whole=True)
