"""A study's setting as a ``--tune`` file of Open MPI, proven by a run that loads it.

Format: one ``--mca name value`` a line, the only form that 4.1 and 5.0 both read (field.md G1); in
5.0 a single dash or blanks round an equals sign stop the job.  Mapping and binding cannot be said
in this file: they stay words of the command line.
"""

from __future__ import annotations

import dataclasses
import datetime
from pathlib import Path

from autotune.errors import WorkError
from autotune.space import Setting, Space
from autotune.study.target import Target
from runner.launch import Runner
from runner.mpi.families import adapter
from runner.types import LIBRARY, RunRecord
from runner.whole import whole


class NotObeyed(WorkError):
    """The library did not take a value from the file; the file was not written."""


def write_tune_file(
    path: Path, target: Target, space: Space, setting: Setting, evidence: list[str], runner: Runner
) -> Path | None:
    """Write the library parameters of ``setting`` to ``path`` after a run has obeyed them.

    ``evidence`` are comment lines.  Returns None where the setting has no parameter that such a
    file can hold, or the library reads no such files.  Raises NotObeyed, and WorkError where the
    file cannot be written.
    """
    values = space.launched(setting).get("mca", {})
    option = adapter(target.library).tune_option
    if not values or not option:
        return None
    text = tune_text(values, evidence)
    try:
        with whole(path, 0o644) as staged:
            staged.write_text(text, encoding="ascii", errors="replace")
            loading = (option, str(staged.absolute()))
            _prove(loading, target, space, setting, values, runner)
    except OSError as problem:
        raise WorkError(f"cannot write the parameter file {path}: {problem.strerror}") from None
    return path


def tune_text(values: dict[str, str], evidence: list[str]) -> str:
    """The file's text; newlines cannot get into it from a value or a comment."""
    lines = [f"# {' '.join(line.split())}" for line in evidence]
    lines.append(f"# written {datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC")
    for name, value in sorted(values.items()):
        if any(c.isspace() for c in name + value):
            raise NotObeyed(
                f"{name} = {value!r} cannot be written to a --tune file: it has a blank"
            )
        lines.append(f"--mca {name} {value}")
    return "\n".join(lines) + "\n"


def _prove(
    loading: tuple[str, str],
    target: Target,
    space: Space,
    setting: Setting,
    values: dict[str, str],
    runner: Runner,
) -> None:
    spec = target.spec(space, setting)
    loaded = dataclasses.replace(
        spec,
        parameters=spec.parameters | {LIBRARY: {}},
        expected=values,
        launch_options=(*spec.launch_options, *loading),
        metric=None,
    )
    record = runner.run(loaded)
    if record.state == "foreign_load":
        # Obedience does not depend on how fast the run was.
        record.state = "ok"
    wrong = _disobeyed(record)
    if record.state != "ok" or wrong:
        raise NotObeyed(
            "the parameter file was not written, because this MPI did not obey it: "
            + (wrong or f"{record.state}: {record.reason}")
        )


def _disobeyed(record: RunRecord) -> str:
    return "; ".join(
        f"{name} = {r.requested} became {r.effective}"
        for name, r in record.read_back.items()
        if r.state in ("altered", "unknown")
    )
