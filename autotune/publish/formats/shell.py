"""Environment scripts: sh, csh, a Slurm job's lines, and MPICH's variables."""

from __future__ import annotations

from pathlib import Path

from autotune.publish.content import Content
from autotune.publish.formats.scripts import Script
from runner.mpi.library import Library


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


class Slurm(Sh):
    """``srun`` hands the environment on, but reads no PRRTE file: variables are the way."""

    name = "slurm"
    summary = "lines for a Slurm job script, before srun or mpirun"
    suffix = ".slurm.sh"


class MpichEnv(Sh):
    """MPICH and its derivatives; values cannot be read back from outside."""

    name = "mpich-env"
    summary = "environment script with MPIR_CVAR_ variables of MPICH"
    suffix = ".mpich.sh"
    family = "mpich"

    def part(self, content: Content, library: Library) -> Content:
        names = content.groups.get("mca", {})
        own = {n: v for n, v in names.items() if n.startswith("MPIR_CVAR_")}
        return Content({"mca": own} if own else {})

    def body(self, content: Content, library: Library) -> str:
        found = sorted(content.groups.get("mca", {}).items())
        return "".join(self.line(name, value) for name, value in found)
