"""Verification of published files: their states, new measurements of their gains, and renewals."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from autotune.api.publication_requests import VerifyRequest
from autotune.config.cluster import load_cluster
from autotune.errors import UsageError
from autotune.measurement.events import Watcher
from autotune.notes import Say, lock_notes
from autotune.publish.documents import FileRow, RecheckRow, RenewalRow, VerifiedFiles
from autotune.publish.probe import Prober
from autotune.publish.published_files import Verification, remember_verifications
from autotune.publish.recheck import Recheck, Renewal, recheck, renew
from autotune.publish.source_place import files_by_library
from autotune.publish.verify import FileState, cluster_of, look, publications, published_header
from autotune.store import Store
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


class FileVerification:
    """The check of published files: first their states, then new measurements of their gains.

    Files of several libraries are checked each with its own, unless the request names one.
    """

    def __init__(self, request: VerifyRequest, say: Say) -> None:
        """``say`` gets notes on the machine lock. Raises UsageError for options that contradict."""
        if request.renewing and not request.compare:
            raise UsageError(
                "--renew needs the comparison; expected it without --no-compare",
                code="usage.not_applicable",
            )
        self._request = request
        self._say = say
        self._states: list[tuple[Library, list[FileState]]] = []

    def check_files(self, paths: Sequence[Path]) -> list[FileState]:
        """The states of the files, each seen by launches. Raises RunnerError without a library."""
        groups = files_by_library(paths, self._request.mpi)
        for library, own in groups:
            states = [look_at(path, library, self._request.spaces, self._say) for path in own]
            self._states.append((library, states))
        return [state for _, states in self._states for state in states]

    def measure(self, store: str | None, watch: Watcher) -> VerifyResult:
        """The comparisons and renewals that the request asks for.

        Raises MachineBusy, and UsageError for a damaged entry or a program that root must not run.
        """
        request = self._request
        checks: list[Recheck] = []
        renewals: list[Renewal] = []
        compared = [row for row in self._states if request.compare and publications(row[1])]
        with Store.open(store) if compared else nullcontext() as database:
            for library, states in compared:
                assert database is not None
                checks += recheck(
                    states,
                    library,
                    database,
                    pairs=request.pairs,
                    budget_s=request.budget_s,
                    guard=request.guard,
                    run_recorded=request.run_recorded,
                    watch=watch,
                )
        states = [state for _, own in self._states for state in own]
        remember_verifications(VerifyResult(states, checks).verifications())
        if request.renewing:
            for library, own in self._states:
                renewals += renew(own, checks, library, self._say)
        return VerifyResult(states, checks, renewals)


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
