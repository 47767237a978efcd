"""The state of a finished execution; if several reasons apply, their fixed order decides."""

from __future__ import annotations

import contextlib
import math
import shlex
import signal as signals
from collections.abc import Sequence
from dataclasses import dataclass

from runner.figure.metric import metric_fault
from runner.mpi.base import Probe
from runner.outcome.failure_message import (
    WITHOUT_MESSAGE,
    FailureMessage,
    failure_message,
    joined_exit_code,
    reports_start_failure,
)
from runner.supervise import ExecResult
from runner.supervise.messages import ABSENT, VERIFY
from runner.types import LaunchSpec, RunRecord, RunState

WAITS_FOR_INPUT = (
    "the program waits for standard input, which is empty; give the input with "
    "--stdin FILE (with --stdin /dev/null the program reads an empty file)"
)
READS_INPUT = " (it reads standard input, which is empty; give the input with --stdin FILE)"
"""Text added to the reason of a program that reached the end of an empty input."""
Outcome = tuple[RunState, str, bool | None]


@dataclass(frozen=True)
class RunFault:
    """Why a run does not count; ``code`` as in docs/reference/codes.md."""

    code: str
    words: str


STOPPED_SUPERVISOR = RunFault(
    code="run.stopped",
    words="the supervising process was stopped during the run (SIGSTOP), so its times do not "
    "count; the program, or somebody else, sends signals to its parents",
)

STUCK_LAUNCHER = RunFault(
    code="run.launcher_stuck",
    words="the launcher did not end after its ranks, and was ended",
)


def classify(
    spec: LaunchSpec,
    result: ExecResult,
    probe: Probe,
    record: RunRecord,
    refusals: tuple[str, ...],
    guard: bool,
) -> Outcome:
    """State, reason, and True if the result is verified (None: not requested or not reached).

    Certain facts about the program (it failed, timed out, did not start MPI) come first. Foreign
    load comes next, before judgements that it could have caused. Sets ``record.code``, and removes
    an unusable metric.
    """
    has_foreign_load = guard and result.foreign.exceeded
    if result.interrupted:
        return "interrupted", "stopped by the user", None
    if result.inner_launcher:
        return "launcher_inside", inside_words(spec, result.inner_launcher), None
    if result.waits_for_input:
        return "failed", WAITS_FOR_INPUT, None
    if result.launcher_stuck:
        record.code = STUCK_LAUNCHER.code
        why = failure_message(result.stderr, result.stdout_tail).words
        before = f"; before: {why}" if why else ""
        return "failed", f"{STUCK_LAUNCHER.words}{before}", None
    if result.timed_out:
        if has_foreign_load:
            return "foreign_load", load_words(result), None
        why = probe.complaint or _start_words(result, probe)
        words = f"stopped at its time limit of {spec.timeout_s:g} s"
        return "timeout", f"{words}; {why}" if why else words, None
    if result.exit_code not in spec.exit_codes or result.signal is not None:
        return _failure(spec, result, probe, refusals)
    if spec.require_mpi:
        problem = _mpi_problem(spec, probe)
        if problem:
            return problem
    mismatches = [
        f"{name}={r.requested} became {r.effective}"
        if r.state == "altered"
        else f"{name} is not known to this MPI"
        for name, r in record.read_back.items()
        if r.state in ("altered", "unknown")
    ]
    if mismatches:
        return "not_read_back", "; ".join(mismatches), None
    verdict = _verdict(spec, result)
    if verdict is False:
        return "unverified", _unverified_words(spec, result), False
    if result.stops:
        record.code = STOPPED_SUPERVISOR.code
        return "foreign_load", STOPPED_SUPERVISOR.words, verdict
    if has_foreign_load:
        return "foreign_load", load_words(result), verdict
    fault = metric_fault(spec, result)
    if fault is not None:
        record.code = fault.code
        record.metric_s = None  # It does not count as a figure.
        return "no_metric", fault.words, verdict
    return "ok", "", verdict


def _start_words(result: ExecResult, probe: Probe) -> str:
    """Why the library did not start, if the launcher then never ended; else ""."""
    if probe.is_initialised or not reports_start_failure(result.stderr):
        return ""
    return f"before: {failure_message(result.stderr).words}"


def inside_words(spec: LaunchSpec, line: Sequence[str]) -> str:
    """Why a run with a launcher below a rank does not count, and what to type instead.

    ``line`` is the command line of that launcher.
    """
    command = shlex.join(line)
    jobs = f"{spec.ranks} whole jobs" if spec.ranks > 1 else "a job inside a job"
    return (
        f"the program starts {line[0]} itself, so that {jobs} would be measured; give autotune "
        f"that line in place of {shlex.join(spec.program[:2])}, with its variables before "
        f"autotune and without --ranks: -- {command}"
    )


def _verdict(spec: LaunchSpec, result: ExecResult) -> bool | None:
    if ABSENT in result.matches:
        return False
    if spec.verify is None:
        return None  # Missing words do not show that the result is right.
    if spec.verify.startswith("json:"):
        return says_yes((result.json_line or {}).get(spec.verify[5:]))
    return VERIFY in result.matches


def _unverified_words(spec: LaunchSpec, result: ExecResult) -> str:
    if wrong := result.matches.get(ABSENT):
        return f"the output has {spec.verify_absent!r}, in the line {wrong.line.strip()[:200]!r}"
    words = f"the output does not match the verification {spec.verify!r}"
    key = (spec.verify or "").removeprefix("json:")
    if key == spec.verify or key not in (result.json_line or {}):
        return words
    return (
        f"{words}: its value is {(result.json_line or {})[key]!r:.40}; expected true, a number "
        'other than 0, or a text such as "yes"'
    )


YES = frozenset(
    {"true", "yes", "y", "ok", "pass", "passed", "success", "successful", "verified", "1"}
)
"""Texts by which a program confirms its result, in upper or lower case."""


def says_yes(value: object) -> bool:
    """True if a JSON value confirms a result: true, a finite number other than 0, or a text of
    :data:`YES`. A missing value does not."""
    if isinstance(value, str):
        return value.strip().casefold() in YES
    if isinstance(value, float):
        return value != 0 and math.isfinite(value)
    return isinstance(value, int) and value != 0


def signal_name(number: int) -> str:
    """SIGTERM, SIGRTMIN+6, or the number of a signal without a name."""
    with contextlib.suppress(ValueError):
        return signals.Signals(number).name
    if signals.SIGRTMIN <= number <= signals.SIGRTMAX:
        return f"SIGRTMIN+{number - signals.SIGRTMIN}"
    return str(number)


def _failure(
    spec: LaunchSpec, result: ExecResult, probe: Probe, refusals: tuple[str, ...]
) -> Outcome:
    message = failure_message(result.stderr, result.stdout_tail)
    text = result.stderr + result.stdout_tail
    is_refused = bool(probe.start_problem) or any(r in text for r in refusals)
    if not probe.is_initialised and not result.ranks and is_refused:
        words = message.words or probe.start_problem or "the launcher refused the command line"
        return "launch_error", words, None
    code = joined_exit_code(text)
    how = _exit_words(result.exit_code if code is None else code, message)
    if result.signal is not None:
        how = f"ended by signal {signal_name(result.signal)}"
    words = f"{probe.complaint} ({message.words})" if probe.complaint else message.words
    words += _input_words(spec, message) + _network_words(text)
    if result.signal is None and result.exit_code is not None and _verdict(spec, result):
        codes = ",".join(map(str, (*spec.exit_codes, result.exit_code)))
        words += f"; the result is right: --exit-codes {codes} takes this for a success"
    return "failed", f"{how}: {words}", None


def _exit_words(code: int | None, message: FailureMessage) -> str:
    """The exit code; without a message also the signal after which shells and launchers have it."""
    number = (code or 0) - 128
    if message.words.startswith(WITHOUT_MESSAGE) and 0 < number <= signals.SIGRTMAX:
        return f"exit code {code} (as after signal {number}, {signal_name(number)})"
    return f"exit code {code}"


def _input_words(spec: LaunchSpec, message: FailureMessage) -> str:
    """What to do about standard input if the program complains about it."""
    if not message.about_input:
        return ""
    return READS_INPUT if spec.stdin is None else f" (its standard input is {spec.stdin})"


def _network_words(text: str) -> str:
    """What to do if no network interface is up, as in an empty network namespace."""
    if "unable to find network interfaces" not in text:
        return ""
    return "; the launcher needs one that is up, and lo suffices: ip link set lo up"


def _mpi_problem(spec: LaunchSpec, probe: Probe) -> Outcome | None:
    if probe.is_initialised is False and spec.read_back:
        return "no_mpi", "the program ended without calling MPI_Init of this MPI", None
    if probe.library_mismatch:
        words = (
            "the MPI library inside the ranks is not the launcher's: "
            f"{probe.library_mismatch}; start the program with its own MPI (--mpi); mpi4py "
            "loads the one that MPI4PY_LIBMPI names"
        )
        return "launch_error", words, None
    if probe.world_size is not None and probe.world_size != spec.ranks:
        words = (
            f"the ranks did not find each other ({spec.ranks} processes with a world of "
            f"size {probe.world_size}): the program was built for another MPI than the "
            "launcher's (name its own with --mpi), or it starts mpirun itself (then give the "
            "line with mpirun, not the script around it)"
        )
        return "singletons", words, None
    return None


NAMELESS = 0.1
"""The reason mentions the foreign load without a process if its share is larger than this."""


def load_words(result: ExecResult) -> str:
    """Why a run was rejected: the processes that used the machine, and how much."""
    foreign = result.foreign
    if 2 * foreign.steal_s > foreign.cpu_s:
        # No process of this machine caused it, so naming processes would mislead the reader.
        return (
            f"the host of this virtual machine took {foreign.steal_s:.2f} s of CPU time "
            f"during the run (steal); the limit is {foreign.limit_s:.2f} s"
        )
    suspects = result.culprits[:3]
    parts = [f"{c.name} {c.cpu_s:.2f} s" for c in suspects]
    rest = foreign.cpu_s - sum(c.cpu_s for c in suspects)
    if rest > NAMELESS * foreign.cpu_s:
        parts.append(f"other processes and those that have ended, {rest:.2f} s")
    who = f" ({', '.join(parts)})" if suspects else " (all of them have ended)"
    return (
        f"other processes used {foreign.cpu_s:.2f} s of CPU time during the run{who}; "
        f"the limit is {foreign.limit_s:.2f} s"
    )
