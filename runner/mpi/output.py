"""The output of a command that queries an installation; no output is an answer, too."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence

PATIENCE_S = 10


def output_of(
    words: Sequence[str],
    environment: Mapping[str, str] | None = None,
    *,
    timeout_s: float = PATIENCE_S,
    whatever_code: bool = False,
    cwd: str | None = None,
) -> str:
    """What a command prints; "" if it cannot be started, hangs, or exits with a nonzero code.

    ``whatever_code``: any exit code is accepted. ``environment`` and ``cwd`` None: those
    of this process.
    """
    try:
        process = subprocess.run(
            list(words),
            env=None if environment is None else dict(environment),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout_s,
            check=False,
            cwd=cwd,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stdout if whatever_code or not process.returncode else ""
