"""Workers of a search: jobs of a scheduler, waiting for the result, and the request of a worker.

The first part submits workers and waits.  The second part is one worker's side: what the study asks
of it, and whether that may be carried out.
"""

from __future__ import annotations

import os
import time
import uuid
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import Field

from autotune.config.scheduler import find_scheduler
from autotune.document import Document
from autotune.errors import UsageError, WorkError
from autotune.notes import Note, Say
from autotune.store import OwnerProcess, Store, StudyRecord
from autotune.store.location import VARIABLE
from autotune.study.search_result import Result
from autotune.study.search_study import SearchStudy
from autotune.study.study_request import Crew, SearchRequest
from autotune.study.study_status import JOB_VARIABLE, SESSION
from autotune.wording import count, remaining
from autotune.workers.worker_trust import judge_request
from runner import files
from runner.errors import RunnerError
from runner.files.json_text import parse_json
from runner.own_python import OWN_PYTHON
from runner.scheduler import Job, Scheduler, State

POLL_S = 2.0
BEGINNING_S = 5.0
"""Seconds without a message while no worker runs yet."""
EXTRA_WORKERS = 3
"""How often workers are started again if all have ended before the study has a result."""
LEAVING_S = 20.0
"""Seconds for a worker to print its result and end by itself."""
PATIENCE = 10
UNANSWERED_S = 30.0
_SHOWN_LINES = 5
LOG_BYTES = 1 << 20
"""The end of a worker's log that is read."""


def work(crew: Crew, search: SearchStudy, url: str | None, say: Say) -> Result:
    """Submit the workers of a search and wait for its result; ``url`` is that of its database.

    Raises WorkError if they end without a result.  If interrupted, it cancels them; no run is lost.
    """
    jobs = _Jobs(find_scheduler(str(crew.scheduler)), crew, search, url, say)
    try:
        for _ in range(crew.workers):
            jobs.submit()
        worker_words = count(crew.workers, "worker")
        words = f"{worker_words} submitted to {crew.scheduler}: {', '.join(jobs.ids)}"
        say(Note("workers.submitted", words, {"jobs": [*jobs.ids]}))
        answer = jobs.wait()
    except BaseException:
        with suppress(RunnerError):  # The user sees the first error, not that of the cancellation.
            jobs.scheduler.cancel(jobs.ids)
        raise
    with suppress(RunnerError):
        jobs.dismiss()
    return answer


@dataclass
class _Jobs:
    """The jobs of one study."""

    scheduler: Scheduler
    crew: Crew
    search: SearchStudy
    url: str | None
    say: Say
    ids: list[str] = field(default_factory=list)
    logs: list[Path] = field(default_factory=list)
    _states: dict[str, State] = field(default_factory=dict)
    _marks: dict[str, str] = field(default_factory=dict)
    """What each job writes into its sessions, by which its process is known."""
    _reported_jobs: set[str] = field(default_factory=set)
    """Jobs that have ended, as was already reported."""
    _limit: str = ""
    """The time limit that ended a worker; empty if none did."""

    def submit(self) -> None:
        study, mark = self.search.study, uuid.uuid4().hex
        log = Path.cwd() / f"autotune-{study.hash[:8]}-worker{len(self.ids)}.log"
        words = [*OWN_PYTHON, "-m", "autotune", "worker", study.hash[:16]]
        words += ["--json", str(_report(log))]
        job = Job(
            words=tuple(words),
            name=f"autotune-{study.hash[:8]}",
            log=log,
            nodes=self.crew.nodes,
            time_s=self.crew.time_s,
            options=self.crew.job_options,
            cwd=str(Path.cwd()),
            # The URL is not among the arguments: every user can see these, and it may hold a
            # password.
            env={JOB_VARIABLE: mark} | ({} if self.url is None else {VARIABLE: self.url}),
        )
        self.ids.append(self.scheduler.submit(job))
        self.logs.append(log)
        self._marks[self.ids[-1]] = mark

    def wait(self) -> Result:
        """Wait until the study has its result; raises WorkError if no worker can give it."""
        began, last_line, extra_count = time.monotonic(), "", 0
        store, say = self.search.store, self.say
        while True:
            self._look()
            states = Counter(self._states.values())
            # This comes after the states: a job that had ended by then has stored its result.
            answer = self.search.followed_answer()
            if answer is not None:
                return answer
            self._report_ends()
            if not states["running"] and not states["pending"]:
                if extra_count == EXTRA_WORKERS:
                    raise WorkError(self._in_vain(), code="worker.all_ended")
                extra_count += 1
                self.submit()
                words = "all workers have ended; starting one more, which continues"
                say(Note("workers.again", words))
            trials = store.trials(store.follow_moved(store.get_study(self.search.study.id)).id)
            trials_done = sum(t.state != "running" for t in trials)
            line = (
                f"{count(states['running'], 'worker')} running, {states['pending']} waiting; "
                f"{trials_done} trials done, {len(trials) - trials_done} running"
            )
            elapsed_s = time.monotonic() - began
            if line != last_line and (states["running"] or elapsed_s > BEGINNING_S):
                data = {
                    "running": states["running"],
                    "waiting": states["pending"],
                    "trials_done": trials_done,
                    "trials_running": len(trials) - trials_done,
                }
                say(Note("workers.progress", f"after {remaining(elapsed_s)}: {line}", data))
                last_line = line
            time.sleep(POLL_S)

    def _look(self) -> None:
        """Ask for the state of every job.  A scheduler that does not answer is asked again."""
        for _ in range(PATIENCE):
            try:
                self._states = self.scheduler.states(self.ids)
                return
            except RunnerError as problem:
                self.say(Note("scheduler.again", f"{problem}; trying again"))
                time.sleep(UNANSWERED_S)
        self._states = self.scheduler.states(self.ids)

    def _report_ends(self) -> None:
        """Report every worker that ended before the study had its result, and how it ended."""
        for job, log in zip(self.ids, self.logs, strict=True):
            if self._states.get(job) != "ended" or job in self._reported_jobs:
                continue
            self._reported_jobs.add(job)
            give_up_job(self.search.store, self.search.study, self._marks[job])
            if _is_proof_by_other(log):
                words = f"worker {job} has ended: another worker runs the proof"
                self.say(Note("worker.ended", words, {"job": job}))
                continue
            self.say(self._loss(job, log))

    def _loss(self, job: str, log: Path) -> Note:
        """The note on a worker that ended before the study had its result."""
        end = self.scheduler.end_of(job)
        stored = "Its finished runs are stored; its last trial is measured again"
        if end is not None and end.cause == "time_limit":
            self._limit = end.limit or "that of the scheduler"
            return Note(
                "worker.time_limit",
                f"worker {job} was ended by the time limit of its job, {self._limit}.  {stored}.  "
                "A longer limit: --walltime",
                {"job": job, "log": str(log), "limit": end.limit},
            )
        lines = _lines(log)
        last = f"its last line: {lines[-1]}" if lines else "it printed nothing"
        scheduler_words = "" if end is None else f" ({end.words})"
        return Note(
            "worker.lost",
            f"worker {job} is lost{scheduler_words}: {last} ({log.name}).  {stored}",
            {"job": job, "log": str(log), "cause": None if end is None else end.cause},
        )

    def _in_vain(self) -> str:
        log = self.logs[-1]
        lines = _lines(log)
        longer = (
            f"\nThe time limit of the jobs ended them ({self._limit}): give a longer one with "
            "--walltime, and the same command continues the study"
            if self._limit
            else ""
        )
        last_lines = "".join(f"\n  | {line}" for line in lines[-_SHOWN_LINES:])
        return (
            "all workers have ended without a result.  Nothing is lost: the same command "
            f"continues.{longer}\nTheir output is in "
            f"{log.name.rpartition('worker')[0]}worker*.log"
            + (f"; the last one ended with:{last_lines}" if last_lines else "")
        )

    def dismiss(self) -> None:
        """The study has its result: waiting workers are cancelled, the others are about to end."""
        try:
            self._dismiss()
        finally:
            for log in self.logs:  # The result is in the database, and was printed.
                _report(log).unlink(missing_ok=True)

    def _dismiss(self) -> None:
        end = time.monotonic() + LEAVING_S
        while True:
            states = self.scheduler.states(self.ids)
            self.scheduler.cancel([n for n, state in states.items() if state == "pending"])
            if "running" not in states.values():
                return
            if time.monotonic() > end:
                self.scheduler.cancel(self.ids)
                return
            time.sleep(POLL_S / 4)


def give_up_job(store: Store, study: StudyRecord, mark: str) -> None:
    """Free the trial and the roles of a worker whose job has ended, so that others go on at once.

    Its last signs of life would else hold them for a lease, because no other host sees its process.
    """
    measured = store.follow_moved(store.get_study(study.id))
    for session in store.documents(measured.id, SESSION).values():
        if session.get("job") == mark:
            with suppress(KeyError, TypeError):  # Others may write to the database.
                store.give_up(measured.id, OwnerProcess(**session["owner"]))


def _lines(log: Path) -> list[str]:
    """The non-empty lines that a worker printed; none if its log does not exist (yet)."""
    try:
        text = files.read_tail(log, LOG_BYTES)
    except OSError:
        return []
    return [line for line in text.splitlines() if line.strip()]


def _report(log: Path) -> Path:
    """The file in which a worker reports how it ended."""
    return log.with_suffix(".json")


def _is_proof_by_other(log: Path) -> bool:
    """Whether a worker ended because another one runs the proof."""
    try:
        report = parse_json(files.read_text(_report(log), files.MIB))
    except (OSError, ValueError):
        return False
    return isinstance(report, dict) and report.get("status") == PROOF_BY_OTHER


PROOF_BY_OTHER: Literal["proving_elsewhere"] = "proving_elsewhere"
"""The status of a worker whose search phase is over while another one runs the proof."""


class ProofByOther(Document):
    """What such a worker writes."""

    schema_: Literal["autotune-worker-1"] = Field(default="autotune-worker-1", alias="schema")
    status: Literal["proving_elsewhere"] = PROOF_BY_OTHER
    study: str
    """Study: its hash."""


def request_of(
    store: Store, study: StudyRecord, *, trust: bool, guard: bool | None
) -> SearchRequest:
    """What a study asks its workers to do; this process changes to the directory of the study.

    ``trust``: accept the request whoever wrote it.  ``guard``: the worker's own option, None if not
    given.  Raises UsageError for a study without a request, for a request that is not trusted, for
    another guard than the study's, and for a directory that does not exist here.
    """
    name = study.hash[:12]
    verdict = judge_request(store, study)
    if verdict is None:
        raise UsageError(
            f"study {name} was not begun for several workers; begin one with autotune "
            "search --join, or with --scheduler",
            code="worker.study_not_shared",
        )
    if not (verdict.trusted or trust):
        raise UsageError(
            f"the request of study {name} is not trusted: {verdict.why}.\nNothing was "
            f"run.  A worker would run{verdict.words}\nIf that is what you want: autotune "
            f"worker {name} --trust   (docs/explanation/security.md explains when requests "
            "are trusted without it)",
            code="worker.untrusted_request",
        )
    if guard is not None and guard != study.key.has_guard:
        raise UsageError(_other_guard(name, study.key.has_guard), code="worker.other_guard")
    place = verdict.request.cwd
    try:
        os.chdir(place)
    except OSError as problem:
        raise UsageError(
            f"cannot change to {place}, where the study was begun: {problem.strerror}",
            code="worker.directory",
        ) from None
    return verdict.request.search


def _other_guard(name: str, study_has_guard: bool) -> str:
    """The message for a worker whose guard option differs from that of the study."""
    if study_has_guard:
        return (
            f"study {name} is measured with the guard, and a worker without it would make "
            "the proof invalid; leave --no-guard out"
        )
    return (
        f"study {name} was begun with --no-guard, and all of its workers measure "
        "without the guard; leave --guard out, or begin a new study"
    )
