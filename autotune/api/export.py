"""Studies of the results database as cells of a dataset."""

from __future__ import annotations

from autotune.config.app import load_app
from autotune.config.cluster import load_cluster
from autotune.datasets.exchange import Source
from autotune.errors import UsageError
from autotune.space import load_space
from autotune.space.trust import check_config_name
from autotune.store import Study
from runner.mpi.discover import find, launcher_of


def source_of(study: Study, mpi: str | None) -> Source:
    """The study's space as it is here, under its own MPI; refused where it is another by now."""
    key = study.key
    mpi = mpi or launcher_of(key.mpi.family, key.mpi.version)
    origin = f"study {study.hash[:12]}"
    cluster = load_cluster(check_config_name("clusters", key.cluster, origin))
    facts = {"ranks": key.ranks, "cores": cluster.total_cores, "nodes": cluster.nodes}
    try:
        name = check_config_name("apps", key.app.name, origin)
        told = dict(load_app(name).input(key.app.input).facts)
    except UsageError:
        told = {}  # A program of the command line tells nothing about its input.
    name = check_config_name("spaces", key.space_name, origin)
    space = load_space(name, library=find(mpi), facts=facts, app_facts=told)
    if space.hash != key.space_hash:
        raise UsageError(
            f"study {study.hash[:12]} searched another version of space {key.space_name} "
            "than the present one: the file, the MPI library or the cluster has changed "
            "(--mpi chooses the MPI)"
        )
    return Source(study, space)
