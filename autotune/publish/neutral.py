"""Takes published files out of force while a default is measured (docs/explanation/design.md,
"Names").

Otherwise published settings would be part of the default that they are compared with.  Lines of a
site in the same files stay in force: launches read copies without autotune's part.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from autotune.errors import WorkError
from autotune.publish.block import without_block
from autotune.publish.formats import find
from autotune.publish.formats.base import HomeFile, variables
from autotune.publish.formats.mca_conf import (
    SYSTEM_FILE,
    InstallationFile,
    PrteSystemConf,
    SystemConf,
    UserConf,
)
from autotune.publish.formats.scripts import Script
from autotune.publish.header import Header
from autotune.publish.install import load_text
from autotune.publish.published_files import published
from autotune.targets.target import Surroundings
from runner import files
from runner.files.paths import entries, is_file, is_folder, real_path
from runner.files.private_files import make_folder, private_folder, write_private
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.mpi.openmpi.parameters import system_folder

_INSTALLED: tuple[InstallationFile, ...] = (SystemConf(), PrteSystemConf())
_PARAM_FILES = "OMPI_MCA_mca_base_param_files"
_USER = (".openmpi", ".prte", ".pmix")
_LARGEST = 1 << 28


@dataclass(frozen=True)
class NeutralLaunch:
    """How launches are made independent of published files.

    ``unset`` are variables to remove from this process's environment.  ``files`` are the files that
    are out of force.
    """

    surroundings: Surroundings = field(default_factory=Surroundings)
    unset: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.files)

    @contextmanager
    def environment(self) -> Iterator[None]:
        """This process without the variables of :attr:`unset`."""
        before = {name: os.environ.pop(name) for name in self.unset if name in os.environ}
        try:
            yield
        finally:
            os.environ.update(before)


def neutral(
    library: Library, environment: Mapping[str, str], further: Iterable[Path] = ()
) -> NeutralLaunch:
    """What makes launches under ``environment`` independent of the files that this user has
    published, and of ``further`` files, which somebody else may have published.

    Raises UsageError or WorkError for a damaged list of files or a file that cannot be read.
    """
    files: list[Path] = []
    unset: set[str] = set()
    user: dict[str, str] = {}
    system: dict[Path, dict[str, str]] = {}
    for path in dict.fromkeys([*published(), *further]):
        text = load_text(path)
        header = None if text is None else text.header
        if text is None or header is None:
            continue
        fmt = find(header.format)
        if isinstance(fmt, HomeFile):
            if _takes_part(fmt, path, library, environment):
                others = without_block(text.main)
                if isinstance(fmt, InstallationFile):
                    system.setdefault(fmt.folder(library), {})[fmt.file] = others
                else:
                    user[fmt.relative] = others
                files.append(path)
        elif isinstance(fmt, Script) and (
            script_variables := _set_by(header, library, environment)
        ):
            unset |= script_variables
            files.append(path)
    env: dict[str, str] = {}
    options: list[str] = []
    stand_ins: list[tuple[str, str]] = []
    texts = (item for folder in system.values() for item in folder.items())
    place = _place([*user.items(), *texts])
    if user or system:
        _own(place)
    if user:
        real = environment["HOME"]
        home = _home(place / "home", Path(real), user)
        # The launcher reads the copies.  The program keeps its HOME and gets the paths of the
        # copies.
        env["HOME"] = str(home)
        if library.family == UserConf.family:
            env[_PARAM_FILES] = _param_files(home, library)
        options += adapter(library).rank_environment({"HOME": real})
        stand_ins.append((str(home), real))
    for number, (real_etc, changed) in enumerate(system.items()):
        etc = _etc(place / f"etc{number or ''}", real_etc, changed)
        formats = [fmt for fmt in _INSTALLED if fmt.folder(library) == real_etc]
        places = {fmt.variable: str(etc) for fmt in formats}
        env |= places
        options += adapter(library).rank_environment(places)
        if user and SystemConf.variable in places:
            env[_PARAM_FILES] = f"{place / 'home'}/.openmpi/mca-params.conf,{etc / SYSTEM_FILE}"
        stand_ins.append((str(etc), str(real_etc)))
    around = Surroundings(env, tuple(options), tuple(stand_ins))
    return NeutralLaunch(around, tuple(sorted(unset)), tuple(files))


def _takes_part(fmt: HomeFile, path: Path, library: Library, env: Mapping[str, str]) -> bool:
    """Whether launches of this library in this environment read the file at ``path``."""
    if fmt.obstacle(library) is not None or _PARAM_FILES in env or "HOME" not in env:
        return False
    if isinstance(fmt, InstallationFile):
        return real_path(path.parent) == real_path(fmt.folder(library))
    return real_path(path) == real_path(Path(env["HOME"]) / fmt.relative)


def _set_by(header: Header, library: Library, environment: Mapping[str, str]) -> set[str]:
    """The variables in the environment that a script with this header has set."""
    settings = variables(header.content, library)
    same = {name for name, value in settings.items() if environment.get(name) == value}
    return same if same == set(settings) else set()


def _place(texts: list[tuple[str, str]]) -> Path:
    """The folder of the copies: equal texts give the same folder.  Only messages show its name."""
    digest = hashlib.sha256(
        "\0".join(f"{n}\0{t}" for n, t in texts).encode(errors="surrogateescape")
    )
    return files.cache("neutral", digest.hexdigest()[:16])


def _home(home: Path, real: Path, texts: Mapping[str, str]) -> Path:
    for name in _USER:
        if is_folder(real / name):
            shutil.copytree(real / name, home / name, copy_function=_copy, dirs_exist_ok=True)
    for name, text in texts.items():
        if _says_something(text):
            _write(home / name, text)
        else:
            (home / name).unlink(missing_ok=True)
    return home


def _says_something(text: str) -> bool:
    """Whether a file has more than comments; without, Intel MPI's launcher crashes."""
    lines = (line.strip() for line in text.splitlines())
    return any(line and not line.startswith("#") for line in lines)


def _etc(etc: Path, real: Path, texts: Mapping[str, str]) -> Path:
    make_folder(etc)
    for file in entries(real):
        if is_file(file) and os.access(file, os.R_OK):
            _copy(file, etc / file.name)
    for name, text in texts.items():
        _write(etc / name, text)
    return etc


def _own(place: Path) -> None:
    """Make the folder; raises WorkError unless it is this user's alone."""
    try:
        private_folder(place)
    except OSError as problem:
        raise WorkError(
            f"cannot write {place}: {problem.strerror}", code="published.unwritable"
        ) from None


def _copy(source: str | Path, target: str | Path) -> None:
    write_private(Path(target), files.read_bytes(Path(source), _LARGEST))


def _write(path: Path, text: str) -> None:
    write_private(path, text.encode(errors="surrogateescape"))


def _param_files(home: Path, library: Library) -> str:
    return f"{home}/.openmpi/mca-params.conf,{system_folder(library) / SYSTEM_FILE}"
