"""Programs and libraries that tests compile: each is built once and kept between runs.

A build is kept below the tests' cache by everything that goes into it: the compiler with its size
and date, the options, and the source text.  Delete the folder to have all of them built anew.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.mpi_environments import CACHE

BUILDS = CACHE / "programs"


def compiled(
    compiler: Sequence[str],
    source: str,
    target: Path,
    *options: str,
    suffix: str = ".c",
    env: Mapping[str, str] | None = None,
) -> Path:
    """``target``, a copy of what the compiler makes of a source text; options stand behind it.

    The source lies beside the target with this suffix.  Raises CalledProcessError if the compiler
    refuses it.
    """
    text = target.with_suffix(suffix)
    text.write_text(source)
    build = BUILDS / _key(compiler, source, suffix, *options)
    if not build.exists():
        BUILDS.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=BUILDS) as place:
            output = Path(place, "program")
            words = [*compiler, str(text), "-o", str(output), *options]
            subprocess.run(words, env=env, check=True, capture_output=True, text=True)
            output.rename(build)
    shutil.copy2(build, target)
    return target


def _key(compiler: Sequence[str], *texts: str) -> str:
    file = Path(shutil.which(compiler[0]) or compiler[0]).stat()
    inputs = (*compiler, f"{file.st_size}", f"{file.st_mtime_ns}", *texts)
    return hashlib.sha256("\0".join(inputs).encode()).hexdigest()[:32]
