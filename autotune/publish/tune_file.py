"""A study's setting as a ``--tune`` file of Open MPI, proven by a run that loads it.

The format is one ``--mca name value`` in each line, the only form that both 4.1 and 5.0 read.  In
5.0 a single dash, or blanks around an equals sign, stop the job.  Such a file cannot express
mapping and binding: they stay options of the command line.
"""

from __future__ import annotations

import dataclasses
import datetime
from pathlib import Path

from autotune.errors import WorkError
from autotune.space import Setting, Space
from autotune.targets.target import Target
from runner.files import atomic_file
from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.types import LIBRARY, RunRecord


class NotObeyed(WorkError):
    """The library did not take a value from the file; the file was not written."""


def write_tune_file(
    path: Path, target: Target, space: Space, setting: Setting, evidence: list[str], runner: Runner
) -> Path | None:
    """Write the library parameters of ``setting`` to ``path`` after a run has obeyed them.

    ``evidence`` are comment lines.  Returns None if the setting has no parameter that such a file
    can hold, or if the library reads no such files.  Raises NotObeyed if a run does not obey the
    file, and WorkError if it cannot be written.
    """
    values = space.launched(setting).get("mca", {})
    option = adapter(target.library).tune_option
    if not values or not option:
        return None
    text = tune_text(values, evidence)
    try:
        with atomic_file(path, 0o644) as stream:
            stream.write(text.encode("ascii", errors="replace"))
            stream.flush()
            loading = (option, str(Path(stream.name).absolute()))
            _prove(loading, target, space, setting, values, runner)
    except OSError as problem:
        raise WorkError(
            f"cannot write the parameter file {path}: {problem.strerror}",
            code="published.unwritable",
        ) from None
    return path


def tune_text(values: dict[str, str], evidence: list[str]) -> str:
    """The text of the file.  Raises NotObeyed for a value that could not be one word of a line."""
    lines = [f"# {' '.join(line.split())}" for line in evidence]
    lines.append(f"# written {datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC")
    for name, value in sorted(values.items()):
        if any(c.isspace() for c in name + value):
            raise NotObeyed(
                f"{name} = {value!r} cannot be written to a --tune file: it has a blank",
                code="publish.blank_in_value",
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
    file_spec = dataclasses.replace(
        spec,
        parameters=spec.parameters | {LIBRARY: {}},
        expected=values,
        launch_options=(*spec.launch_options, *loading),
        metric=None,
    )
    record = runner.run(file_spec)
    if record.state == "foreign_load":
        # The test does not depend on how fast the run was.
        record.state = "ok"
    wrong = _disobedience_words(record)
    if record.state != "ok" or wrong:
        raise NotObeyed(
            "the parameter file was not written, because this MPI did not obey it: "
            + (wrong or f"{record.state}: {record.reason}"),
            code="publish.not_obeyed",
        )


def _disobedience_words(record: RunRecord) -> str:
    return "; ".join(
        f"{name} = {r.requested} became {r.effective}"
        for name, r in record.read_back.items()
        if r.state in ("altered", "unknown")
    )
