"""A search study in a terminal: conducted, printed, and what is said when it is stopped."""

from __future__ import annotations

import shlex
from pathlib import Path

from autotune.cli.given import this_command
from autotune.cli.outcome import print_result
from autotune.cli.progress import Progress
from autotune.cli.render import console, error_console, write_json
from autotune.errors import AutotuneError
from autotune.publish import NotObeyed, write_tune_file
from autotune.publish.evidence import file_evidence, gain_words
from autotune.space import Setting
from autotune.store import Process, Store
from autotune.study.conduct import FINISHED, Conducting, Conductor, Request
from autotune.study.procedure import FinishedElsewhere
from autotune.study.result import Result
from autotune.words import UNGUARDED

PROVES_ELSEWHERE = "another worker proves what was found"


def study(request: Request, store: Store, params_file: Path | None, json_out: str | None) -> None:
    """Conduct a study and print it; exit code by what became of it."""
    quiet = json_out == "-"
    progress = Progress(request.plan.trials, request.plan.budget_s, quiet)
    request.watch = progress
    conducting = Conducting(request, store)
    if _known(conducting, json_out):
        return
    conductor: Conductor | None = None
    try:
        with conducting as conductor, progress:
            if conducting.finished() is not None:  # While this one waited for the machine.
                raise FinishedElsewhere
            result = conductor.run()
            _write_params(conductor, result, params_file)
        store.set_result(conducting.study.id, result.status, result.to_json())
    except FinishedElsewhere:
        if not _known(conducting, json_out):
            error_console().print(
                f"the search phase is over and {PROVES_ELSEWHERE}: autotune "
                f"status {conducting.study.hash[:12]}",
                markup=False,
                soft_wrap=True,
            )
        return
    except KeyboardInterrupt:
        if conductor is not None:
            _interrupted(conductor, store, json_out)
        raise
    except AutotuneError:
        if conductor is not None:
            _stopped(conductor, store, "failed", None)
        raise
    finally:
        if request.join:
            store.release(conducting.study.id)
    finish(result, json_out)


def _known(conducting: Conducting, json_out: str | None) -> bool:
    """Print the result that is stored already, where there is one."""
    stored = conducting.finished()
    if stored is not None:
        finish(stored, json_out, "this study is finished; its stored result:")
    return stored is not None


def _stopped(conductor: Conductor, store: Store, status: str, result: Result | None) -> None:
    """Store how a study stopped; a worker that stops leaves the answer of others as it is, and
    those who go on."""
    study = conductor.study.id
    if conductor.request.join:
        others = [w for w in store.workers(study) if not w.lost and w.owner != Process.here()]
        if others or store.get_study(study).status in FINISHED:
            return
    store.set_result(study, status, None if result is None else result.to_json())


def finish(result: Result, json_out: str | None, note: str = "") -> None:
    """Print an answer, and write it as JSON where that is wanted."""
    if json_out:
        write_json(result.to_json(), json_out)
    if json_out != "-":
        if note:
            console().print(note, markup=False)
        print_result(result, command=True)


def _write_params(conductor: Conductor, result: Result, path: Path | None) -> None:
    """The parameter file of a proven setting; a file that is not obeyed becomes a warning.

    Without the guard, of the one that looked better, and only where its place was named.
    """
    if result.status == "unguarded" and path is not None:
        claim = _unguarded_claim(result)
    else:
        claim = _proven_claim(result)
    if claim is None:
        return
    setting, proof = claim
    request = conductor.request
    place = path or Path(f"autotune-{_safe(result.app)}-{result.study[:8]}.conf")
    use = f"use: mpirun --tune {shlex.quote(place.name)} ...   undo: leave the option out"
    evidence = file_evidence(setting, [*proof, use], request.target, result.machine)
    try:
        written = write_tune_file(
            place, request.target, request.space, setting, evidence, conductor.runner
        )
    except NotObeyed as problem:
        result.warnings.append(str(problem))
        return
    result.params_file = str(written) if written else None


def _proven_claim(result: Result) -> tuple[Setting, list[str]] | None:
    """The proven setting, and what its file says of the proof."""
    if result.status != "recommended" or result.gain is None or result.gain_ci is None:
        return None
    said = f"gain over the default: {gain_words(result.gain, result.gain_ci)}"
    return result.recommended, [f"{said}, {_runs_words(result)}"]


def _unguarded_claim(result: Result) -> tuple[Setting, list[str]] | None:
    """The setting that looked better without the guard, and what its file says of that."""
    best = Setting((result.best or {}).get("setting", {}))
    rows = [f for f in result.finalists if f.verdict == "better" and f.setting == best]
    if not rows or rows[0].gain is None:
        return None
    seen = rows[0]
    said = f"looked faster than the default: {gain_words(seen.gain, (seen.lo, seen.hi))}"
    return best, [f"{UNGUARDED.upper()}, NOT PROVEN", f"{said}, {_runs_words(result)}"]


def _runs_words(result: Result) -> str:
    return f"{result.confirmation_runs} confirmation runs; study {result.study}"


def _interrupted(conductor: Conductor, store: Store, json_out: str | None) -> None:
    result = conductor.result("you stopped it")
    _stopped(conductor, store, "interrupted", result)
    if json_out:
        write_json(result.to_json(), json_out)
    error_console().print(
        f"\nInterrupted; every finished run is kept ({result.search_runs} search runs, "
        f"{result.confirmation_runs} confirmation runs).  Continue with:\n  {this_command()}",
        markup=False,
    )


def _safe(name: str) -> str:
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in name) or "program"
