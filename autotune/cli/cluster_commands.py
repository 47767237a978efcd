"""``autotune apps`` and ``autotune cluster``: known applications and clusters."""

from __future__ import annotations

from typing import Annotated

import typer

from autotune.api.cluster_definition import define_cluster
from autotune.api.clusters import ClusterState, app_list, cluster_list, divided_cores
from autotune.cli import completion
from autotune.cli.options import Force, JsonOut, opt
from autotune.cli.requests import Mpi
from autotune.config.app import App, load_app
from autotune.config.cluster import (
    cluster_names,
    read_cluster,
)
from autotune.config.find import list_configs, user_config
from autotune.config.site import VARIABLE
from autotune.config.validated import read_toml
from autotune.targets.jobs import divide_cores
from autotune.terminal.clusters import (
    print_app,
    print_apps,
    print_cluster,
    print_clusters,
    print_shares,
)
from autotune.terminal.render import print_line, write_document, write_json
from runner.cpus import available_cpus
from runner.mpi.discover import find_library

cluster = typer.Typer(
    help="List, show and write cluster definitions (where programs run).", no_args_is_help=True
)


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
    applications = (
        [load_app(name)] if name else [read_toml(f.text, f.path, App) for f in list_configs("apps")]
    )
    if json_out:
        write_json(app_list(applications), json_out)
    elif name:
        print_app(applications[0])
    else:
        print_apps(applications)


@cluster.command("list")
def list_clusters(json_out: JsonOut = None) -> None:
    """List the cluster definitions and where they come from."""
    clusters = {name: read_cluster(name) for name in cluster_names()}
    if json_out:
        write_json(cluster_list(clusters), json_out)
    else:
        print_clusters(clusters)


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
    state = ClusterState.of(name, find_library(mpi))
    if json_out:
        write_json(state.document, json_out)
    else:
        print_cluster(state)


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
    force: Force = False,
) -> None:
    """Write a definition of this machine; its launch options are chosen by measuring start-up."""
    path = define_cluster(name, mpi, cpus, force, print_line)
    print_line(f"wrote {path}; to use it:  autotune search --cluster {name} ...", whole=True)
    place = user_config() / "clusters"
    advice = (
        f"This definition is found from the present directory only. Move it to {place} to use it "
        f"from every directory; for all users, move it to ${VARIABLE}/clusters."
    )
    print_line(advice)


@cluster.command("split")
def split(
    jobs: Annotated[int, typer.Argument(help="Number of MPI jobs that run at once.", min=2)],
    mpi: Mpi = None,
    json_out: JsonOut = None,
) -> None:
    """Divide the cores of this node among several MPI jobs, and print a launcher line for each.

    Without these lines each job would bind its ranks from the first core on.
    """
    library = find_library(mpi)
    shares = divide_cores(jobs, library)
    job_cpus = frozenset().union(*(share.cpus for share in shares))
    left = available_cpus() - job_cpus
    if write_document(divided_cores(shares, library, left), json_out):
        print_shares(shares, library, left)
