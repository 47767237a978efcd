"""A hook of EasyBuild: variables of the module that it generates for the MPI package."""

from __future__ import annotations

from pathlib import Path

from autotune.publish.content import Content
from autotune.publish.formats.scripts import Script
from runner.mpi.library import Library

_PACKAGES = {"openmpi": "OpenMPI", "mpich": "MPICH"}
"""Names of easyconfigs by family; other families keep their names."""
_DRIVER = (
    "import runpy, sys; hook = runpy.run_path(sys.argv[1]); "
    "Package = type('Package', (dict,), dict(name=hook['PACKAGE'], version=hook['VERSION'])); "
    "package = Package(modextravars={}); hook['parse_hook'](package); "
    "sys.stdout.write(''.join(f'{n}={v}\\0' for n, v in package['modextravars'].items()))"
)
"""Calls the hook as EasyBuild does, with an easyconfig of the package, and prints the variables."""


class EasyBuildHook(Script):
    """A hook for ``eb --hooks FILE``.  It changes one version of one package: EasyBuild then writes
    the variables into its module."""

    name = "easybuild"
    summary = "hook for EasyBuild (eb --hooks FILE): variables of the MPI module"
    suffix = ".eb-hooks.py"
    interpreters = ("python3",)
    guards = False  # The hook itself names the version.

    def body(self, content: Content, library: Library) -> str:
        package = _PACKAGES.get(library.family, library.family)
        return (
            f'PACKAGE, VERSION = "{package}", "{library.version}"\n'
            f"VARIABLES = {{\n{super().body(content, library)}}}\n\n\n"
            "def parse_hook(ec, *args, **kwargs):\n"
            '    """The module of this version of the package sets the variables."""\n'
            "    if (ec.name, ec.version) == (PACKAGE, VERSION):\n"
            '        ec["modextravars"] = {**ec["modextravars"], **VARIABLES}\n'
        )

    def line(self, name: str, value: str) -> str:
        return f'    "{name}": "{value}",\n'

    def command(self, interpreter: str, path: Path) -> list[str]:
        return [interpreter, "-I", "-c", _DRIVER, str(path)]
