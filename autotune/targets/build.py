"""Builds: for which MPI library a program was built, and under which others it can run.

A program of Python gets the library from mpi4py, which loads any. A binary names its library by the
name of a file, which is that of a binary interface (:mod:`runner.mpi.abi`). Another library of the
same interface becomes the program's if its folder comes first where the loader looks.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from autotune.errors import UsageError
from autotune.notes import Note
from autotune.targets.mpi_need import MpiNeed, need_of
from runner.files.paths import exists
from runner.mpi.abi import (
    LOADER_PATH,
    STANDARD_ABI,
    NeededLibrary,
    missing_symbols,
    needed_by,
    needed_library,
)
from runner.mpi.discover import LAUNCHERS, adapter, launcher_of
from runner.mpi.library import Library
from runner.mpi.linkage import compatible, identify_file, installation_of

HOW = (
    "Programs of mpi4py, and programs built for the ABI of MPICH, run under several libraries; two "
    "builds are compared with autotune compare --program-b"
)


def linked_note(program: Sequence[str], library: Library) -> Note | None:
    """The warning if the program loads another MPI than ``library`` by itself; else None.

    mpi4py of a wheel is told which library to load, so nothing is said of it.
    """
    need = need_of(program)
    if need is None or not need.library.place or not (need.is_fixed or need.how == "script"):
        return None
    file = adapter(library).file_for(need.library.name)
    if file is not None and need.library.is_file(file):
        return None
    linkage = identify_file(need.library.place)
    if linkage is None or (linkage.family, linkage.version) == (library.family, library.version):
        return None
    message = (
        f"{need.title} is linked with {linkage.family} {linkage.version} "
        f"({linkage.place}) but started by {library.family} {library.version} "
        f"({library.bin})"
    )
    if need.is_fixed:
        message += " and given its library"
    own = launcher_of(linkage.family, linkage.version)
    if own is not None:
        message += f"; --mpi {own} selects the library it is linked with"
    data = {
        "linked": {"name": linkage.family, "version": linkage.version},
        "started_by": {"name": library.family, "version": library.version},
    }
    return Note("program.other_library", message, data)


def foreign_build(program: Sequence[str], library: Library) -> str | None:
    """Why a program cannot run under ``library``: it was built for another binary interface.

    None if it may run, or if this cannot be told. With the constants of another interface the
    launcher would start every rank as a world of its own.
    """
    need = need_of(program)
    own = adapter(library)
    if need is None or not need.is_fixed or own.abi is None:
        return None
    file, abi = need.library.name, need.library.abi
    if abi is None or own.can_run(file):
        return None
    return (
        f"{need.title} is built for {abi.title} ({file}), which does not share "
        f"{own.abi.title}'s binary interface: it cannot run under {title(library)}"
    )


def require_own_build(program: Sequence[str], library: Library, choice: str) -> None:
    """Raise UsageError, with what would work, if a program cannot run under ``library``.

    It has another binary interface, or one of a series for which the library has no file.
    ``choice`` is what named the library, an option or a launcher.
    """
    need = need_of(program)
    if need is None or not need.is_fixed:
        return
    wrong = foreign_build(program, library)
    if wrong is not None:
        raise UsageError(f"{wrong}.\n{_remedy(need, library, choice)}", code="program.other_abi")
    file, own = need.library.name, adapter(library)
    is_other_series = need.library.abi in (None, STANDARD_ABI) and own.file_for(file) is None
    if own.abi is not None and is_other_series:
        raise UsageError(
            f"{need.title} needs {file}, which {title(library)} does not have.\n"
            f"{_remedy(need, library, choice)}",
            code="program.abi_missing",
        )


def _remedy(need: MpiNeed, library: Library, choice: str) -> str:
    """The option that names a library under which a program runs."""
    own = installation_of(need.library) or compatible(need.library)
    if own is not None:
        value = own.bin if Path(own.launcher).name in LAUNCHERS else own.launcher
        return f"Give in place of {choice}:  --mpi {shlex.quote(value)}"
    return (
        "No launcher of its library is found: name its directory with --mpi, or build the program "
        f"with {_compiler(library)}"
    )


def library_folders(
    program: Sequence[str], library: Library, option: str = "--mpi"
) -> tuple[str, ...]:
    """The folders that must come first in the loader's path so that a program loads ``library``.

    ``option`` is what named the library, for messages.
    Empty if it loads the library anyway, or gets it in another way (mpi4py of a wheel). The loader
    is asked whether it really does, and whether the library has the program's functions of MPI.
    Raises UsageError for a program that cannot load the library, or needs one of a newer series.
    """
    need = need_of(program)
    if need is None or not need.is_fixed or need.library.abi is None:
        return ()
    if wrong := foreign_build(program, library):
        raise UsageError(
            f"{wrong}.\nFor that library build it with {_compiler(library)}. {HOW}",
            code="program.other_abi",
        )
    own = adapter(library)
    file = own.file_for(need.library.name)
    if file is None:
        raise UsageError(
            f"{need.title} needs {need.library.name} ({need.library.abi.title}), which "
            f"{title(library)} does not have; expected it in "
            f"{' or '.join(str(f) for f in library.folders[:2])}.\nChoose another --mpi, or build "
            f"the program with {_compiler(library)}",
            code="program.abi_missing",
        )
    if need.library.is_file(file):
        return ()
    folder = own.folder_for(need.library.name)
    actual = None if folder is None else needed_by(need.file, [str(folder)])
    if folder is None or actual is None or not actual.is_file(file):
        raise UsageError(
            _stays(need, library, file, actual or need.library, option),
            code="program.other_library",
        )
    if lacking := missing_symbols(need.file, [str(folder)]):
        names = ", ".join(lacking[:3]) + (", ..." if len(lacking) > 3 else "")
        raise UsageError(
            f"{need.title} is built for a newer series than {title(library)}, which does not have "
            f"{names}.\n{_remedy(need, library, option)}",
            code="program.other_series",
        )
    return (str(folder),)


def _stays(need: MpiNeed, library: Library, file: Path, actual: NeededLibrary, option: str) -> str:
    """The message for a program that loads one library whatever the environment says."""
    return (
        f"{need.title} does not load {file}, the library of {title(library)}, but "
        f"{actual.place or 'none'}, although {LOADER_PATH} names the former first: an RPATH in the "
        f"program comes before it.\nLink the program with -Wl,--enable-new-dtags, or without "
        f"-rpath; or choose the library that it loads. {_remedy(need, library, option)}"
    )


def title(library: Library) -> str:
    """Family, version and place of a library, for messages."""
    return f"{library.family} {library.version} ({library.bin})"


def _compiler(library: Library) -> str:
    """The compiler that builds for a library, as far as it is found."""
    own = Path(library.bin)
    names = (own / f"mpicc.{library.family}", own / "mpicc")
    compiler = next((path for path in names if exists(path)), None)
    return f"the compiler of {title(library)}" if compiler is None else str(compiler)


def names_library(program: Sequence[str]) -> bool:
    """Whether a program is a binary of a known interface, so that mpi4py is not asked."""
    need = needed_library(program)
    return need is not None and need.abi is not None
