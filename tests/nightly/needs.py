"""What the long parts need beside the locked packages, and how to get it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

from tests.servers import missing_for_postgres, missing_for_slurm


@dataclass(frozen=True)
class Need:
    """Something that may be missing here; ``apt`` and ``pip`` are packages that bring it."""

    what: str
    there: Callable[[], bool]
    apt: tuple[str, ...] = ()
    pip: tuple[str, ...] = ()


def _program(*names: str) -> Callable[[], bool]:
    return lambda: any(shutil.which(name) for name in names)


def _module(name: str) -> Callable[[], bool]:
    return lambda: importlib.util.find_spec(name) is not None


NEEDS = (
    Need("root (testbed, Slurm, full disk, another host name)", lambda: os.geteuid() == 0),
    Need("a C compiler", _program("cc"), apt=("gcc", "libc6-dev")),
    Need("ip and tc", _program("tc"), apt=("iproute2",)),
    Need("PostgreSQL", lambda: missing_for_postgres() is None, apt=("postgresql",)),
    Need("Slurm", lambda: missing_for_slurm() is None, apt=("slurm-wlm", "munge")),
    Need("torch (strategy gp)", _module("torch"), pip=("torch",)),
    Need("atheris (fuzzing guided by coverage)", _module("atheris"), pip=("atheris",)),
)


def missing() -> list[Need]:
    """What is not here."""
    return [need for need in NEEDS if not need.there()]


def commands(needs: list[Need]) -> list[list[str]]:
    """Command lines that bring what is missing."""
    apt = [package for need in needs for package in need.apt]
    pip = [package for need in needs for package in need.pip]
    found = []
    if apt:
        found += [["apt-get", "update"], ["apt-get", "install", "-y", *apt]]
    if pip:
        found.append([sys.executable, "-m", "pip", "install", *pip])
    return found


def install(needs: list[Need]) -> None:
    """Run these; raises ValueError naming the first that fails, or that root is needed."""
    wanted = commands(needs)
    if any(command[0] == "apt-get" for command in wanted) and os.geteuid() != 0:
        raise ValueError("--install runs apt-get: start it as root, or install by hand")
    for command in wanted:
        print(f"+ {' '.join(command)}", flush=True)
        if subprocess.run(command, check=False).returncode:
            raise ValueError(f"this failed: {' '.join(command)}")
