"""Start lines: how a user starts the program with the files that a search wrote."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

from autotune.study.search_result import Result
from autotune.targets.target import Target
from runner.files.paths import is_file, is_folder


def set_start_lines(
    result: Result, target: Target, launch_line: Callable[[str | None], str]
) -> None:
    """Set the lines of a result for those of its files that are there.

    ``launch_line`` is the launch with a parameter file in place of the parameters; None: with them.
    """
    file = result.params_file
    if file is not None and not is_file(file):
        file = None
    result.mpirun_with_file = "" if file is None else launch_line(file)
    result.start_line = None
    folder = result.input_folder
    # In a copy of the user's directory the program needs what else is there.
    if folder is None or not is_folder(folder) or target.fresh_copy:
        return
    steps = [["cd", folder], target.before]
    lines = [shlex.join(words) for words in steps if words]
    from_folder = None if file is None else str(Path(file).absolute())
    result.start_line = " && ".join([*lines, launch_line(from_folder)])
