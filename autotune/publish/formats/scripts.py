"""Scripts that set environment variables: for sh and csh, Slurm jobs, Lmod (Lua) and Tcl modules.

The file's own interpreter runs each script to show which variables it sets.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from abc import abstractmethod
from pathlib import Path
from typing import ClassVar

from autotune.errors import WorkError
from autotune.publish.content import Content
from autotune.publish.formats.base import (
    Canary,
    Format,
    Loading,
    policy_canaries,
    value_canaries,
    variables,
)
from runner.mpi.discover import adapter
from runner.mpi.library import Library

TIMEOUT_S = 20


class Script(Format):
    """A script that is loaded before ``mpirun``; it is read back by running it, not by parsing."""

    interpreters: ClassVar[tuple[str, ...]]
    """Commands that read the format; the first one installed is used."""

    def unobeyed(self, library: Library) -> str | None:
        why = super().unobeyed(library)
        if why is None and self.interpreter() is None:
            return f"none of {', '.join(self.interpreters)}, which read it, is installed"
        return why

    def interpreter(self) -> str | None:
        return next((p for name in self.interpreters if (p := shutil.which(name))), None)

    def part(self, content: Content, library: Library) -> Content:
        launcher = adapter(library)
        # Placements without a variable in the launcher are left over, so that the command reports
        # them.
        placed = content.groups.get("placement", {})
        unsaid = {("placement", name) for name in placed if name not in launcher.placement_names}
        return content.only(*launcher.kinds, "placement", "env").without(unsaid)

    def body(self, content: Content, library: Library) -> str:
        found = sorted(variables(content, library).items())
        return "".join(self.line(name, value) for name, value in found)

    @abstractmethod
    def line(self, name: str, value: str) -> str:
        """The statement that sets one variable, with its newline."""

    @abstractmethod
    def command(self, interpreter: str, path: Path) -> list[str]:
        """The command that loads the file at ``path`` and prints the environment like ``env
        -0``."""

    def canaries(self, content: Content, library: Library) -> list[Canary]:
        checked = adapter(library).checks_values
        return value_canaries(content) if checked else policy_canaries(content)

    def staged(self, text: str, place: Path, library: Library) -> Loading:
        path = place / f"file{self.suffix}"
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
        return self.live(path, library)

    def live(self, path: Path, library: Library) -> Loading:
        interpreter = self.interpreter()
        if interpreter is None:
            raise WorkError(
                f"none of {', '.join(self.interpreters)}, which read {path}, is installed"
            )
        base = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(path.parent)}
        words = self.command(interpreter, path.absolute())
        return Loading(environment_after(words, base, path))


def environment_after(words: list[str], base: dict[str, str], path: Path) -> dict[str, str]:
    """Variables that the command ``words``, which loads ``path``, adds to the environment ``base``.

    Raises WorkError if the interpreter refuses the file.
    """
    try:
        done = subprocess.run(
            words, capture_output=True, env=base, timeout=TIMEOUT_S, check=False, cwd=path.parent
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise WorkError(f"{words[0]} could not read {path}: {problem}") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise WorkError(f"{words[0]} refuses {path}: {' '.join(said) or done.returncode}")
    pairs = (item.partition("=") for item in done.stdout.decode(errors="replace").split("\0"))
    own = {"PWD", "OLDPWD", "SHLVL", "_"}
    return {n: v for n, _, v in pairs if n and n not in own and base.get(n) != v}


class Sh(Script):
    """For Bourne shells."""

    name = "sh"
    summary = "environment script for sh, bash, zsh (. FILE)"
    suffix = ".sh"
    interpreters = ("sh",)

    def line(self, name: str, value: str) -> str:
        return f"export {name}='{value}'\n"

    def command(self, interpreter: str, path: Path) -> list[str]:
        return [interpreter, "-euc", '. "$1"; env -0', "sh", str(path)]


class Csh(Script):
    """For C shells."""

    name = "csh"
    summary = "environment script for csh and tcsh (source FILE)"
    suffix = ".csh"
    interpreters = ("tcsh", "csh")

    def line(self, name: str, value: str) -> str:
        return f"setenv {name} '{value}'\n"

    def command(self, interpreter: str, path: Path) -> list[str]:
        # Without -f a C shell reads the user's own file first.
        return [interpreter, "-f", "-c", f"source '{path}' && env -0"]


class SlurmLines(Sh):
    """``srun`` passes the environment on, but reads no PRRTE file: only variables work."""

    name = "slurm"
    summary = "lines for a Slurm job script, before srun or mpirun"
    suffix = ".slurm.sh"


_LUA = (
    "local env = {}; function setenv(n, v) env[n] = v end; function help() end; "
    "function whatis() end; dofile(arg[1]); "
    'for n, v in pairs(env) do io.write(n, "=", v, "\\0") end'
)
_TCL = (
    "proc setenv {n v} {set ::env($n) $v}; proc module-whatis {args} {}; "
    "source [lindex $argv 0]; "
    'foreach n [array names env] {puts -nonewline "$n=$env($n)\\0"}'
)


class Lmod(Script):
    """A module file of Lmod."""

    name = "lmod"
    summary = "module file for Lmod (Lua)"
    suffix = ".lua"
    comment = ("-- ", "")
    interpreters = ("lua", "lua5.4", "lua5.3", "lua5.1")

    def line(self, name: str, value: str) -> str:
        return f'setenv("{name}", "{value}")\n'

    def command(self, interpreter: str, path: Path) -> list[str]:
        return _driven(interpreter, _LUA, path)


class TclModule(Script):
    """A module file of Environment Modules, which Lmod reads too."""

    name = "tcl"
    summary = "module file for Environment Modules (Tcl)"
    suffix = ".tcl"
    prologue = "#%Module1.0\n"
    interpreters = ("tclsh",)

    def line(self, name: str, value: str) -> str:
        return f"setenv {name} {{{value}}}\n"

    def command(self, interpreter: str, path: Path) -> list[str]:
        return _driven(interpreter, _TCL, path)


def _driven(interpreter: str, driver: str, path: Path) -> list[str]:
    """The command that loads a module file.  ``driver`` comes through a pipe, so that no extra file
    is needed beside the module file."""
    pipe = 'printf "%s\\n" "$2" | "$1" /dev/stdin "$3"'
    return ["/bin/sh", "-c", pipe, "sh", interpreter, driver, str(path)]
