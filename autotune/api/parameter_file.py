"""The files of a search: the proven setting with its evidence, and the program's input for it."""

from __future__ import annotations

import shlex
from pathlib import Path

from autotune.measurement.result_checks import checks_words
from autotune.notes import Note
from autotune.publish.evidence_lines import file_evidence, gain_words
from autotune.publish.tune_file import NotObeyed, write_tune_file
from autotune.space import Setting
from autotune.space.library_choice import MPI
from autotune.study.search_result import Result
from autotune.study.search_study import SearchStudy
from autotune.targets.input_files import write_input_folder
from autotune.wording import UNGUARDED
from runner.errors import RunnerError


def write_result_files(search: SearchStudy, result: Result, params_file: str | None) -> None:
    """Write the parameter file of a proven setting, and the program's input files for it.

    A file that is not obeyed, and input that is not written, become warnings. The input files lie
    in a folder beside the parameter file.

    Without the guard the file has the setting that only looked better, and is written only if the
    user gave its path (``params_file``).
    """
    path = None if params_file is None else Path(params_file)
    if result.status == "unguarded" and path is not None:
        claim = _unguarded_claim(result)
    else:
        claim = _proven_claim(result)
    if claim is None:
        return
    setting, proof = claim
    place = path or Path(f"autotune-{_safe(result.app)}-{result.study[:8]}.conf")
    _write_input_files(search, result, setting, place.with_name(f"{place.stem}-input"))
    side, bare = search.evaluator.side(setting), setting.without(MPI)
    use = f"use: mpirun --tune {shlex.quote(place.name)} ...   undo: leave the option out"
    checks = [] if result.checks is None else [f"checks: {checks_words(result.checks)}"]
    evidence = file_evidence(setting, [*proof, *checks, use], side.target, result.machine)
    try:
        file = write_tune_file(place, side.target, side.space, bare, evidence, side.runner)
    except NotObeyed as problem:
        result.warnings.append(Note(problem.code, str(problem)))
        file = None
    if file is not None:
        result.params_file = str(file)
    search.set_file_lines(result, setting)


def _write_input_files(search: SearchStudy, result: Result, setting: Setting, folder: Path) -> None:
    """Write the input files of the application with the values of the setting, if it has any."""
    side = search.evaluator.side(setting)
    texts = side.target.spec(side.space, setting.without(MPI)).files
    if not texts:
        return
    try:
        result.input_folder = str(write_input_folder(folder, texts))
    except (OSError, RunnerError) as problem:
        words = f"the input files of the setting were not written: {problem}"
        result.warnings.append(Note("work.input_unwritten", words, {"folder": str(folder)}))


def _proven_claim(result: Result) -> tuple[Setting, list[str]] | None:
    """The proven setting, and what its file says about the proof."""
    if result.status != "recommended" or result.gain is None or result.gain_ci is None:
        return None
    gain_text = f"gain over the default: {gain_words(result.gain, result.gain_ci)}"
    return result.recommended, [f"{gain_text}, {_runs_words(result)}"]


def _unguarded_claim(result: Result) -> tuple[Setting, list[str]] | None:
    """The setting that looked better without the guard, and what its file says about that."""
    best = Setting({} if result.best is None else result.best["setting"])
    rows = [f for f in result.finalists if f.verdict == "better" and f.setting == best]
    if not rows or rows[0].gain is None:
        return None
    finalist = rows[0]
    gain_text = f"apparent gain over the default: {gain_words(finalist.gain, finalist.gain_ci)}"
    return best, [f"{UNGUARDED.upper()}, NOT PROVEN", f"{gain_text}, {_runs_words(result)}"]


def _runs_words(result: Result) -> str:
    return f"{result.confirmation_runs} confirmation runs; study {result.study}"


def _safe(name: str) -> str:
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in name) or "program"
