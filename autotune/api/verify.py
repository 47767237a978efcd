"""Published files looked at again, and their gains measured again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from autotune.config.cluster import Cluster, load_cluster
from autotune.errors import UsageError
from autotune.publish.probe import Prober
from autotune.publish.recheck import Recheck, recheck
from autotune.publish.verify import FileState, cluster_of, look, publications, published_header
from autotune.store import Store
from autotune.study.events import Watcher, silent
from runner.lock import MachineLock
from runner.mpi.library import Library


def look_at(
    path: Path, library: Library, spaces: Sequence[str], on_wait: Callable[..., None]
) -> FileState:
    """Whether a file is untouched and obeyed; it is loaded under the cluster that it is for.

    ``spaces`` are further ones whose parameters it may have; ``on_wait`` is told who holds the
    machine.
    """
    try:
        header = published_header(path)
    except UsageError:
        header = None  # One that is gone needs no cluster.
    cluster: Cluster
    try:
        cluster = load_cluster("local") if header is None else cluster_of(header, path)
    except UsageError as problem:
        return FileState(path, False, f"refused: {problem}", header, refused=True)
    lock = MachineLock("shared", on_wait=on_wait)
    with lock, Prober(library, cluster) as prober:
        return look(path, prober, spaces)


def existing_publications(states: Sequence[FileState]) -> list[FileState]:
    """Files of publications that can be compared: none of the same source is not in force."""
    broken = {s.header.evidence.source for s in states if s.header and s.in_force is False}
    return [s for s in states if s.header and s.header.evidence.source not in broken]


def compare_again(
    states: Sequence[FileState],
    library: Library,
    store: Store,
    *,
    pairs: int,
    budget_s: float | None,
    guard: bool,
    recorded: bool,
    watch: Watcher = silent,
) -> list[Recheck]:
    """Every whole publication against the default, on the programs of its evidence.

    ``recorded``: programs that only the file names are run as well.  ``budget_s`` is for each.
    """
    found: list[Recheck] = []
    looked = existing_publications(states)
    clusters = {s.header.evidence.source: (s.header, s.path) for s in looked if s.header}
    for source, (evidence, content) in publications(looked).items():
        found += recheck(
            evidence,
            content,
            cluster_of(*clusters[source]),
            library,
            store,
            pairs=pairs,
            budget_s=budget_s,
            guard=guard,
            recorded=recorded,
            watch=watch,
        )
    return found
