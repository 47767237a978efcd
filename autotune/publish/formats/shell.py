"""Environment scripts: sh, csh, and a Slurm job's lines."""

from __future__ import annotations

from pathlib import Path

from autotune.publish.formats.scripts import Script


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
