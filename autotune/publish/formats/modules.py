"""Environment modules: Lmod (Lua) and Tcl (field.md G5)."""

from __future__ import annotations

from pathlib import Path

from autotune.publish.formats.scripts import Script

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
    """``driver`` comes through a pipe, so that no file of ours lies beside the module file."""
    pipe = 'printf "%s\\n" "$2" | "$1" /dev/stdin "$3"'
    return ["/bin/sh", "-c", pipe, "sh", interpreter, driver, str(path)]
