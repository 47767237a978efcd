"""Several commands of this Python whose processes share one start and what it imports."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

START = """
import gc, json, os, runpy, sys
{prelude}
gc.freeze()
codes = []
for number, (module, *words) in enumerate(json.loads(sys.argv[2])):
    child = os.fork()
    if child == 0:
        for stream, name in ((1, "out"), (2, "err")):
            file = os.open(f"{{sys.argv[1]}}/{{number}}.{{name}}", os.O_WRONLY | os.O_CREAT, 0o600)
            os.dup2(file, stream)
            os.close(file)
        sys.argv = [module, *words]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        sys.exit(0)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(json.dumps(codes))
"""
Done = subprocess.CompletedProcess[str]


def several(
    lines: Sequence[Sequence[str]], output: Path, prelude: str, **options: str | Mapping[str, str]
) -> list[Done]:
    """What ``python -m LINE`` does, line by line; ``prelude`` is run once, before all of them.

    Their output goes to files in ``output``; ``options`` are those of ``subprocess.run``.
    """
    words = [sys.executable, "-c", START.format(prelude=prelude), str(output), json.dumps(lines)]
    process = subprocess.run(words, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    assert process.returncode == 0, process.stderr
    results = []
    for number, (line, code) in enumerate(zip(lines, json.loads(process.stdout), strict=True)):
        printed, errors = ((output / f"{number}.{name}").read_text() for name in ("out", "err"))
        results.append(Done(line, code, printed, errors))
    return results
