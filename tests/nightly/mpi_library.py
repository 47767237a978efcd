"""The contract of one MPI library, by the name of its class; its version is the first line."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.contract import test_mpi_library_contract as contract

PREFIX = "library: "
OWN = "tests/contract/test_mpi_library_contract.py"


def classes() -> dict[str, type[contract.OfTests]]:
    """Those that pytest collects, by name, in the order of the file."""
    return {
        name: kind
        for name, kind in vars(contract).items()
        if name.startswith("Test") and issubclass(kind, contract.OfTests)
    }


def said(kind: type[contract.OfTests]) -> str:
    """The version and the place of its library, or why there is none."""
    try:
        library = kind.find()
    except pytest.skip.Exception as missing:
        return f"{PREFIX}{missing}"
    return f"{PREFIX}{library.family} {library.version} in {library.bin}"


def version(log: Path) -> str | None:
    """What :func:`said` printed; None in the log of another part."""
    with log.open(errors="replace") as lines:
        first = next(lines, "")
    return first.strip() if first.startswith(PREFIX) else None


if __name__ == "__main__":
    print(said(classes()[sys.argv[1]]), flush=True)
    words = [sys.executable, "-m", "pytest", "-q", "-rfEs", "-p", "no:cacheprovider"]
    os.execv(words[0], [*words, f"{OWN}::{sys.argv[1]}"])
