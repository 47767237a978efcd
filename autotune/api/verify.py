"""Verification of published files: their states, new measurements of their gains, and renewals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from autotune.config.cluster import load_cluster
from autotune.errors import UsageError
from autotune.notes import Say, lock_notes
from autotune.publish.documents import FileRow, RecheckRow, RenewalRow, VerifiedFiles
from autotune.publish.probe import Prober
from autotune.publish.published_files import Verification
from autotune.publish.recheck import Recheck, Renewal
from autotune.publish.verify import FileState, cluster_of, look, published_header
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
    try:
        cluster = load_cluster("local") if header is None else cluster_of(header, path)
    except UsageError as problem:
        return FileState.of_refusal(path, header, problem)
    lock = MachineLock("shared", tell=lock_notes(say))
    with lock, Prober(library, cluster) as prober:
        return look(path, prober, spaces)


@dataclass(frozen=True)
class VerifyResult:
    """The outcome for all files."""

    states: Sequence[FileState]
    checks: Sequence[Recheck]
    renewals: Sequence[Renewal] = ()

    @property
    def lost(self) -> list[FileState]:
        """Files that are not what was proven, and were not renewed."""
        renewed_paths = {one.path for one in self.renewals if one.renewed}
        return [one for one in self.states if one.has_lost_proof and one.path not in renewed_paths]

    @property
    def ok(self) -> bool:
        """Whether no file is lost and no gain is shown to be gone."""
        return not self.lost and not any(check.failed for check in self.checks)

    @property
    def document(self) -> VerifiedFiles:
        """What ``--json`` writes."""
        return VerifiedFiles(
            ok=self.ok,
            files=[FileRow.model_validate(state.to_json()) for state in self.states],
            comparisons=[cast("RecheckRow", check.to_json()) for check in self.checks],
            renewals=[RenewalRow.model_validate(one.to_json()) for one in self.renewals],
        )

    def verifications(self) -> dict[Path, Verification]:
        """What the list of last verifications keeps of each file."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        gains: dict[str, list[str]] = {}
        for check in self.checks:
            words = f"{check.status}, {check.program}: {check.words}"
            gains.setdefault(check.source, []).append(words)
        return {
            state.path: Verification(
                now,
                state.in_force,
                state.why,
                state.expiry is not None,
                tuple(gains.get(state.header.evidence.source, ())) if state.header else (),
            )
            for state in self.states
        }
