"""Scripts that set environment variables: for sh and csh, Slurm jobs, Lmod (Lua) and Tcl modules.

The file's own interpreter runs each script to show which variables it sets.

A script sets nothing, and says so, where ``mpirun`` is of another version of the library than the
script was made for.  Where there is no ``mpirun`` yet, or one of another family, it sets the
variables: then nothing shows which library will be used.
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
    of_srun,
    policy_canaries,
    value_canaries,
    variables,
    with_rules,
)
from autotune.targets.setting_syntax import VERSION_CHECK
from runner.mpi.discover import adapter
from runner.mpi.library import Library

TIMEOUT_S = 20
_OF_SHELLS = frozenset({"PWD", "OLDPWD", "SHLVL", "_"}) | {
    "HOSTTYPE", "VENDOR", "OSTYPE", "MACHTYPE", "LOGNAME", "USER", "GROUP", "HOST", "NLSPATH",
}  # fmt: skip
"""Variables that shells set by themselves; the second line is tcsh's."""


class Script(Format):
    """A script that is loaded before ``mpirun``; it is read back by running it, not by parsing."""

    guards = True
    remark: ClassVar[str] = "#"
    """What begins a comment behind a statement."""
    interpreters: ClassVar[tuple[str, ...]]
    """Commands that read the format; the first one installed is used."""

    def obstacle(self, library: Library) -> str | None:
        why = super().obstacle(library)
        if why is None and self.interpreter() is None:
            return f"none of {', '.join(self.interpreters)}, which read it, is installed"
        return why

    def interpreter(self) -> str | None:
        return next((p for name in self.interpreters if (p := shutil.which(name))), None)

    def part(self, content: Content, library: Library) -> Content:
        launcher = adapter(library)
        # Placements without a variable in the launcher are left over, so that the command reports
        # them.
        placement = content.groups.get("placement", {})
        unsaid = {("placement", name) for name in placement if name not in launcher.placement_names}
        part = content.only(*launcher.kinds, "placement", "env").without(unsaid - of_srun(content))
        return with_rules(part, content, library)

    def body(self, content: Content, library: Library) -> str:
        assignments = sorted(variables(content, library).items())
        return "".join(self.line(name, value) for name, value in assignments)

    def with_version_check(self, body: str, library: Library) -> str:
        marker = adapter(library).version_marker
        if not marker:
            return body
        message = (
            f"autotune: settings not used: proven with {library.family} {library.version}, mpirun "
            "is of another version (autotune verify-published)"
        )
        before, after = self.version_check(marker, f"{marker}{library.version} ", message)
        if not before:
            return body
        remark = f"{self.remark} {VERSION_CHECK}\n"
        lines = [f"{line} {remark}" for line in before]
        lines += [f"  {line}" for line in body.splitlines(keepends=True)]
        return "".join(lines + [f"{line} {remark}" for line in after])

    def version_check(self, family: str, own: str, message: str) -> tuple[list[str], list[str]]:
        """The lines around the statements, which then have no effect under another version.

        Without such lines the file does not check the version.  The output of ``mpirun --version``,
        with single blanks, contains ``family`` if it is of the library's family, and ``own`` if it
        is of the right version.  ``message`` is the message otherwise.
        """
        return [], []

    @abstractmethod
    def line(self, name: str, value: str) -> str:
        """The statement that sets one variable, with its newline."""

    @abstractmethod
    def command(self, interpreter: str, path: Path) -> list[str]:
        """The command that loads the file at ``path`` and prints the environment like ``env
        -0``."""

    def canaries(self, content: Content, library: Library) -> list[Canary]:
        checks_values = adapter(library).checks_values
        return value_canaries(content) if checks_values else policy_canaries(content)

    def live(self, path: Path, library: Library) -> Loading:
        interpreter = self.interpreter()
        if interpreter is None:
            raise WorkError(
                f"none of {', '.join(self.interpreters)}, which read {path}, is installed",
                code="publish.no_interpreter",
            )
        # The check of the version asks the launcher of the library that is meant.
        paths = os.pathsep.join([library.bin, os.environ.get("PATH", os.defpath)])
        base = {"PATH": paths, "HOME": str(path.parent)}
        words = self.command(interpreter, path.absolute())
        return Loading(environment_after(words, base, path))


def environment_after(words: list[str], base: dict[str, str], path: Path) -> dict[str, str]:
    """Variables that the command ``words``, which loads ``path``, adds to the environment ``base``.

    Raises WorkError if the interpreter refuses the file.
    """
    try:
        process = subprocess.run(
            words, capture_output=True, env=base, timeout=TIMEOUT_S, check=False, cwd=path.parent
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise WorkError(
            f"{words[0]} could not read {path}: {problem}", code="published.unreadable"
        ) from None
    if process.returncode:
        last_line = process.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise WorkError(
            f"{words[0]} refuses {path}: {' '.join(last_line) or process.returncode}",
            code="publish.script_refused",
        )
    pairs = (item.partition("=") for item in process.stdout.decode(errors="replace").split("\0"))
    return {n: v for n, _, v in pairs if n and n not in _OF_SHELLS and base.get(n) != v}


class Sh(Script):
    """For Bourne shells."""

    name = "sh"
    summary = "environment script for sh, bash, zsh (. FILE)"
    suffix = ".sh"
    interpreters = ("sh",)

    def line(self, name: str, value: str) -> str:
        return f"export {name}='{value}'\n"

    def version_check(self, family: str, own: str, message: str) -> tuple[list[str], list[str]]:
        before = [
            "if case \"$(mpirun --version 2>/dev/null | tr -s '[:space:]' ' ')\" in",
            f"*'{own}'*) true ;;",
            f"*'{family}'*) false ;;",
            "*) true ;;",
            "esac; then",
        ]
        return before, ["else", f"echo '{message}' >&2", "fi"]

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

    def version_check(self, family: str, own: str, message: str) -> tuple[list[str], list[str]]:
        before = [
            "set autotune_said = \"`mpirun --version |& tr -s '[:space:]' ' '`\"",
            f'if ("$autotune_said " =~ *"{own}"* || ! ("$autotune_said " =~ *"{family}"*)) then',
        ]
        # A C shell cannot write to standard error alone.
        echo = f"sh -c 'echo \"{message}\" >&2'"
        return before, ["else", echo, "endif", "unset autotune_said"]

    def command(self, interpreter: str, path: Path) -> list[str]:
        # Without -f a C shell reads the user's own file first. The path is an argument, because no
        # quotes hold every character of a name.
        return [interpreter, "-f", "-c", "source $argv[1]:q && env -0", str(path)]


class SlurmLines(Sh):
    """``srun`` passes the environment on, but reads no PRRTE file: only variables work."""

    name = "slurm"
    summary = "lines for a Slurm job script, before srun or mpirun"
    suffix = ".slurm.sh"


_LUA = (
    "local env = {}; function setenv(n, v) env[n] = v end; function help() end; "
    'function whatis() end; function mode() return "load" end; '
    "function LmodMessage(m) io.stderr:write(m) end; "
    'function capture(c) local p = io.popen(c); local t = p:read("*a"); p:close(); return t end; '
    "dofile(arg[1]); "
    'for n, v in pairs(env) do io.write(n, "=", v, "\\0") end'
)
_TCL = (
    "proc setenv {n v} {set ::env($n) $v}; proc module-whatis {args} {}; "
    "proc module-info {args} {return 1}; source [lindex $argv 0]; "
    'foreach n [array names env] {puts -nonewline "$n=$env($n)\\0"}'
)


class Lmod(Script):
    """A module file of Lmod."""

    name = "lmod"
    summary = "module file for Lmod (Lua)"
    suffix = ".lua"
    comment = ("-- ", "")
    interpreters = ("lua", "lua5.4", "lua5.3", "lua5.1")
    remark = "--"

    def line(self, name: str, value: str) -> str:
        return f'setenv("{name}", "{value}")\n'

    def version_check(self, family: str, own: str, message: str) -> tuple[list[str], list[str]]:
        # An unload must undo what the load did, whatever the launcher is by then.
        before = [
            'local said = mode() == "load" and capture("mpirun --version 2>/dev/null") or ""',
            'said = said:gsub("%s+", " ") .. " "',
            f'if said:find("{own}", 1, true) or not said:find("{family}", 1, true) then',
        ]
        return before, ["else", f'LmodMessage("{message}")', "end"]

    def command(self, interpreter: str, path: Path) -> list[str]:
        return _driver_command(interpreter, _LUA, path)


class TclModule(Script):
    """A module file of Environment Modules, which Lmod reads too."""

    name = "tcl"
    summary = "module file for Environment Modules (Tcl)"
    suffix = ".tcl"
    prologue = "#%Module1.0\n"
    interpreters = ("tclsh",)
    remark = ";#"

    def line(self, name: str, value: str) -> str:
        return f"setenv {name} {{{value}}}\n"

    def version_check(self, family: str, own: str, message: str) -> tuple[list[str], list[str]]:
        # An unload must undo what the load did, whatever the launcher is by then.
        before = [
            'set said ""',
            "if {[module-info mode load]} {catch {set said [exec mpirun --version 2>/dev/null]}}",
            r'regsub -all {\s+} "$said " " " said',
            f'if {{[string first "{own}" $said] >= 0 || [string first "{family}" $said] < 0}} {{',
        ]
        return before, ["} else {", f'puts stderr "{message}"', "}"]

    def command(self, interpreter: str, path: Path) -> list[str]:
        return _driver_command(interpreter, _TCL, path)


def _driver_command(interpreter: str, driver: str, path: Path) -> list[str]:
    """The command that loads a module file.  ``driver`` comes through a pipe, so that no extra file
    is needed beside the module file."""
    pipe = 'printf "%s\\n" "$2" | "$1" /dev/stdin "$3"'
    return ["/bin/sh", "-c", pipe, "sh", interpreter, driver, str(path)]
