"""Several command lines, run one after the other by the ranks of one job.

    mpirun -n RANKS python -m tests.apps.commands '[["runner.programs.apps.ring", "--laps", "3"],
    ...]'

The first word of each is a module, which is run as the program that it is.  Only MPI is started
once, with all threads.  :func:`ended` reads what each line has printed, and its exit code.

A program that imports :func:`main` may break something for some of the lines: each of these begins
with ``broken:NAME``.
"""

from __future__ import annotations

import io
import json
import runpy
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from types import MappingProxyType
from typing import Any

Change = Sequence[tuple[Any, str, Any]]
"""Objects, each with the name of an attribute and its other value."""

MODULE = "tests.apps.commands"
BROKEN = "broken:"
MARK = "a command has ended: "

Process = subprocess.CompletedProcess[str]


def ended(job: Process, lines: Sequence[Sequence[str]]) -> list[Process]:
    """What each line did: the outputs of all ranks, and the exit code, which is that of all."""
    assert job.returncode == 0, job.stdout + job.stderr
    found = [text.removeprefix(MARK) for text in job.stdout.splitlines() if text.startswith(MARK)]
    assert len(found) == len(lines), job.stdout + job.stderr
    every = []
    for line, text in zip(lines, found, strict=True):
        codes, outs, errors = json.loads(text)
        assert len(set(codes)) == 1, f"{line}: exit codes {codes}"
        every.append(Process(line, codes[0], "".join(outs), "".join(errors)))
    return every


class _Errors(io.StringIO):
    """Kept, and passed on: who reads the output of a job that was aborted wants to know why."""

    def write(self, text: str) -> int:
        sys.__stderr__.write(text)  # type: ignore[union-attr]
        return super().write(text)


def _run(words: list[str]) -> tuple[int, str, str]:
    """Exit code and outputs of this rank."""
    sys.argv, code = words, 0
    out, errors = io.StringIO(), _Errors()
    with redirect_stdout(out), redirect_stderr(errors):
        try:
            runpy.run_module(words[0], run_name="__main__", alter_sys=True)
        except SystemExit as end:
            code = int(end.code or 0)
    return code, out.getvalue(), errors.getvalue()


def main(changes: Mapping[str, Change] = MappingProxyType({})) -> None:
    from runner.programs.apps.common.mpi import single_threaded_blas, start

    single_threaded_blas()
    lines, comm = json.loads(sys.argv[1]), start("multiple")
    for words in lines:
        if words[0].startswith(BROKEN):
            with _changed(changes[words[0].removeprefix(BROKEN)]):
                own = _run(words[1:])
        else:
            own = _run(words)
        seen = comm.gather(own)
        if comm.rank == 0:
            print(MARK + json.dumps(list(zip(*seen, strict=True))), flush=True)


@contextmanager
def _changed(change: Change) -> Iterator[None]:
    plain = [(owner, name, getattr(owner, name)) for owner, name, _ in change]
    for owner, name, value in change:
        setattr(owner, name, value)
    yield
    for owner, name, value in plain:
        setattr(owner, name, value)


if __name__ == "__main__":
    main()
