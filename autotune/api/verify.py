"""Verification of published files, and new measurements of their gains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune.config.cluster import Cluster, load_cluster
from autotune.errors import AutotuneError, UsageError
from autotune.notes import Say, lock_notes
from autotune.publish.probe import Prober
from autotune.publish.publication import publish_files
from autotune.publish.recheck import Recheck, not_renewable, recheck, renewal
from autotune.publish.verify import FileState, cluster_of, look, publications, published_header
from autotune.store import Store
from autotune.study.events import Watcher, silent
from runner.lock import MachineLock
from runner.mpi.library import Library


def look_at(path: Path, library: Library, spaces: Sequence[str], say: Say) -> FileState:
    """Whether a file is unchanged and obeyed; it is loaded with the cluster that it is for.

    ``spaces`` are further spaces whose parameters it may have.  ``say`` gets notes on
    the machine lock.  A file that must not be loaded is reported in the state, not
    raised.
    """
    try:
        header = published_header(path)
    except UsageError:
        header = None  # A missing file needs no cluster.
    cluster: Cluster
    try:
        cluster = load_cluster("local") if header is None else cluster_of(header, path)
    except UsageError as problem:
        return FileState.of_refusal(path, header, problem)
    lock = MachineLock("shared", tell=lock_notes(say))
    with lock, Prober(library, cluster) as prober:
        return look(path, prober, spaces)


def existing_publications(states: Sequence[FileState]) -> list[FileState]:
    """Files of publications that can be compared: no file of the same source is out of force."""
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
    """Compare every whole publication with the default, on the programs of its evidence.

    ``recorded``: command lines that only the file contains are run, too.  ``budget_s`` is for each
    program.
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


@dataclass(frozen=True)
class Renewal:
    """What became of an expired file: renewed, or why not."""

    path: Path
    renewed: bool
    words: str

    def to_json(self) -> dict[str, Any]:
        return {"path": str(self.path), "renewed": self.renewed, "words": self.words}


def renew(
    states: Sequence[FileState],
    checks: Sequence[Recheck],
    library: Library,
    say: Say,
) -> list[Renewal]:
    """Renew the expired files of publications whose gain was seen again with ``library``.

    All files of a publication are renewed, or none.
    """
    found: list[Renewal] = []
    expired = [s for s in states if s.expiry is not None and s.header is not None]
    sources = dict.fromkeys(s.header.evidence.source for s in expired if s.header)
    for source in sources:
        own = [s for s in expired if s.header and s.header.evidence.source == source]
        again = [check for check in checks if check.source == source]
        why = next((why for s in own if (why := not_renewable(s, again))), "")
        if not why:
            why = _published_again(own, again, library, say)
        words = why or f"proven with {library.family} {library.version}"
        found += [Renewal(state.path, not why, words) for state in own]
    return found


def _published_again(
    states: Sequence[FileState],
    checks: Sequence[Recheck],
    library: Library,
    say: Say,
) -> str:
    """Write the files with their new evidence; why that failed, "" if it did not."""
    first = states[0]
    assert first.header is not None
    lock = MachineLock("shared", tell=lock_notes(say))
    try:
        with lock, Prober(library, cluster_of(first.header, first.path)) as prober:
            planned = [renewal(state.path, library, checks) for state in states]
            publish_files(planned, prober, lambda words: None)
    except AutotuneError as problem:
        return str(problem)
    return ""
