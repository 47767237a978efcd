"""Provenance: directory, environment and files of a measured program, to run it again the same way.

A relative path on a command line, a module found by ``PYTHONPATH`` or a library found by
``LD_LIBRARY_PATH`` cannot be found without them, for example in a cron job.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from autotune.errors import UsageError
from autotune.targets.rows import Origin
from runner.files.paths import is_file, is_folder

_NAMES = frozenset(
    {
        # Variables that decide what is found.
        *("PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME"),
        *("VIRTUAL_ENV", "CONDA_PREFIX", "OPAL_PREFIX", "PMIX_PREFIX", "PRTE_PREFIX", "I_MPI_ROOT"),
        # Variables that change how a program behaves.
        *("PYTHONHASHSEED", "PYTHONOPTIMIZE", "MPI4PY_LIBMPI", "LANG", "LC_ALL", "LC_NUMERIC"),
        *("VECLIB_MAXIMUM_THREADS", "JULIA_NUM_THREADS", "TZ", "TMPDIR"),
    }
)
_FAMILIES = (
    *("OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "BLIS_", "GOTO_", "NUMBA_", "NUMEXPR_"),
    *("MALLOC_", "GLIBC_", "UCX_", "FI_", "PSM2_", "PSM3_", "CUDA_", "HIP_", "ROCR_", "NCCL_"),
)
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASS|CRED|AUTH", re.IGNORECASE)
_NAME = re.compile(r"[A-Z_][A-Z0-9_]{0,99}")
_MOST, _LONGEST = 200, 32 << 10
_READ = 256 << 20
"""A file that is larger, in bytes, is identified by its size only."""


@dataclass(frozen=True)
class Provenance:
    """Directory, environment and files from which a program was measured.

    ``files`` maps the absolute paths of the program, of files among its words and of the files that
    its ranks ran to their content: a SHA-256, or ``N bytes`` for a large file.
    """

    cwd: str
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> Origin:
        """The published and stored form."""
        return Origin(cwd=self.cwd, env=dict(self.env), files=dict(self.files))

    @classmethod
    def from_json(cls, data: object, where: str) -> Provenance:
        """Inverse of :meth:`to_json`.

        Raises UsageError, which begins with ``where``, for anything else, including a variable that
        is never stored.
        """
        try:
            provenance = cls(data["cwd"], dict(data["env"]), dict(data["files"]))  # type: ignore[index]
            if provenance._is_sound():
                return provenance
        except (LookupError, TypeError, ValueError):
            pass
        raise UsageError(
            f"{where}: the description of how its program was run is not understood; "
            "expected cwd (an absolute path), env (variables that change a run) and files "
            "(path to digest)",
            code="published.program_unknown",
        )

    def _is_sound(self) -> bool:
        texts = [self.cwd, *self.env, *self.env.values(), *self.files, *self.files.values()]
        return (
            len(texts) <= 4 * _MOST
            and all(isinstance(text, str) and "\0" not in text for text in texts)
            and max(map(len, texts)) <= _LONGEST
            and all(Path(path).is_absolute() for path in (self.cwd, *self.files))
            and all(_matters(name) for name in self.env)
        )

    def changes(self) -> list[str]:
        """What has changed since, in words; empty if the program can be run as it was."""
        differences = []
        if not is_folder(self.cwd):
            differences.append(f"its directory {self.cwd} does not exist any more")
        for path, before in self.files.items():
            now = _content(Path(path))
            if now is None:
                differences.append(f"{path} does not exist any more")
            elif now != before:
                differences.append(f"{path} has changed since it was measured")
        return differences

    @contextmanager
    def environment(self) -> Iterator[None]:
        """This process with the stored variables and without any that were not set then."""
        before = _environment()
        try:
            _replace(self.env)
            yield
        finally:
            _replace(before)


def provenance_of(
    program: tuple[str, ...],
    cwd: str,
    stdin: str | None = None,
    executables: Sequence[str] = (),
) -> Provenance:
    """The provenance of a program that runs in ``cwd`` with this environment and ``stdin``.

    ``executables`` are absolute paths of the files that its ranks ran.
    """
    place = shutil.which(program[0]) if "/" not in program[0] else None
    paths = [Path(cwd, place or program[0]), *(Path(cwd, word) for word in program[1:] if word)]
    paths += [] if stdin is None else [Path(cwd, stdin)]
    paths += [Path(path) for path in executables[:_MOST]]
    content_by_path = {str(path): _content(path) for path in paths}
    files = {path: content for path, content in content_by_path.items() if content is not None}
    return Provenance(cwd, _environment(), files)


def _environment() -> dict[str, str]:
    variables = {n: v for n, v in os.environ.items() if _matters(n) and len(v) <= _LONGEST}
    return dict(sorted(variables.items())[:_MOST])


def _matters(name: str) -> bool:
    """Whether a variable changes what is run, or how, and holds no secret."""
    if not _NAME.fullmatch(name) or _SECRET.search(name):
        return False
    return name in _NAMES or name.startswith(_FAMILIES)


def _replace(variables: Mapping[str, str]) -> None:
    for name in _environment():
        if name not in variables:
            del os.environ[name]
    os.environ.update(variables)


def _content(path: Path) -> str | None:
    """The content of a file as it is compared; None if there is no readable file."""
    try:
        if not is_file(path):
            return None
        size = path.stat().st_size
        if size > _READ:
            return f"{size} bytes"
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
