"""The delay line's program, compiled on first use into the user's cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from importlib import resources
from pathlib import Path

from runner import places
from runner.errors import RunnerError
from runner.private import refuse_others

FLAGS = ("-O2", "-std=gnu11")


def cache_dir() -> Path:
    """``$XDG_CACHE_HOME/autotune/testbed``, or below ``~/.cache``."""
    return places.cache("testbed")


def program() -> Path:
    """The compiled program.

    Raises RunnerError if it cannot be compiled or stored, or others may write it.
    """
    sources = _sources()
    place = cache_dir() / f"testbed-{_digest(sources)}"
    refuse_others(place.parent, place)
    if place.is_file() and os.access(place, os.X_OK):
        return place
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent) as work:
            _compile(sources, Path(work))
            # Two builders at once make the same program: the later one replaces it whole.
            (Path(work) / "program").replace(place)
    except OSError as error:
        raise RunnerError(
            f"the testbed's program cannot be stored in {place.parent}: {error.strerror}; "
            "expected a directory that can be written (XDG_CACHE_HOME sets another)"
        ) from None
    return place


def _sources() -> dict[str, str]:
    native = resources.files("runner.testbed") / "native"
    return {
        entry.name: entry.read_text(encoding="utf-8")
        for entry in sorted(native.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith((".c", ".h"))
    }


def _digest(sources: dict[str, str]) -> str:
    digest = hashlib.sha256(" ".join(FLAGS).encode())
    for name, text in sources.items():
        digest.update(f"\0{name}\0{text}".encode())
    return digest.hexdigest()[:16]


def _compile(sources: dict[str, str], work: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        raise RunnerError("no C compiler (cc) on PATH: the testbed's program cannot be compiled")
    for name, text in sources.items():
        (work / name).write_text(text, encoding="utf-8")
    files = [name for name in sources if name.endswith(".c")]
    done = subprocess.run(
        [compiler, *FLAGS, "-o", "program", *files],
        cwd=work,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
        check=False,
    )
    if done.returncode:
        raise RunnerError(
            f"{compiler} cannot compile the testbed's program:\n{done.stderr.strip()[:2000]}"
        )
