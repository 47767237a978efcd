"""The programs on which predictions are reported: read from a file, and built.

``reporting_programs.toml`` says which they are; ``reporting/*.c`` are their sources. A program has
up to four cells: 2 and 4 ranks, on one node and on the testbed.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from autotune.config.validated import read_toml
from benchmarks.common import ROOT
from benchmarks.mpi_programs import FASTEST, NoCompiler, compiled_for, python
from benchmarks.program_cells import Cell, Place
from runner.files import cache, write_atomically
from runner.machine import describe_machine
from runner.mpi.library import Library

FILE = ROOT / "benchmarks" / "reporting_programs.toml"
SOURCES = ROOT / "benchmarks" / "reporting"
CELLS: dict[str, tuple[Place, int]] = {
    "node-2": ("node", 2),
    "node-4": ("node", 4),
    "testbed-2": ("testbed", 2),
    "testbed-4": ("testbed", 4),
}
BLOCK = 80
"""Rows of a block of HPL and PTRANS."""
METRIC, VERIFY = "json:seconds", "json:verified"
"""All programs end with one line of JSON, or are run by a module that prints it."""
HPCC_OUTPUT = "hpccoutf.txt"


class Reporting(BaseModel):
    """One program of the file; exactly one of ``source`` and ``hpcc`` is given."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"[a-z0-9-]+")
    description: str
    source: str | None = None
    hpcc: str | None = None
    unit: Literal["us-of", "rate-of"] | None = None
    arguments: dict[str, str]
    """The words of each of its cells."""

    @model_validator(mode="after")
    def _whole(self) -> Reporting:
        if (self.source is None) == (self.hpcc is None) or (self.hpcc is None) != (
            self.unit is None
        ):
            raise ValueError("expected either source, or hpcc with unit")
        if not self.arguments or set(self.arguments) - set(CELLS):
            raise ValueError(f"arguments: expected some of the cells {', '.join(CELLS)}")
        return self


class ReportingFile(BaseModel):
    """The whole file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    program: tuple[Reporting, ...]

    @model_validator(mode="after")
    def _distinct(self) -> ReportingFile:
        names = [program.name for program in self.program]
        if len(set(names)) < len(names):
            raise ValueError("expected programs with different names")
        return self


def reporting_programs() -> tuple[Reporting, ...]:
    """The programs in the order of the file; raises UsageError with its mistakes."""
    return read_toml(FILE.read_text(encoding="utf-8"), str(FILE), ReportingFile).program


def reporting_cells(library: Library, folder: Path | None = None) -> list[Cell]:
    """All cells, built for this library in ``folder``; None: a directory of the user's cache.

    Raises :class:`NoCompiler` if a program cannot be built or is not installed.
    """
    place = folder or built_folder(library)
    place.mkdir(parents=True, exist_ok=True)
    return [
        cell
        for program in reporting_programs()
        for cell in cells_of(program, build(program, library, place), place)
    ]


def built_folder(library: Library) -> Path:
    """The directory of the programs as they are now, for this library and processor."""
    processor = describe_machine().cpu_model
    digest = hashlib.sha256(f"{library.bin} {library.version} {FASTEST} {processor}".encode())
    for path in sorted(SOURCES.iterdir()):
        digest.update(path.read_bytes())
    return cache("reporting", digest.hexdigest()[:16])


def build(program: Reporting, library: Library, folder: Path) -> Path:
    """The program's file; a source is compiled unless that was done before.

    Raises :class:`NoCompiler`.
    """
    if program.source is not None:
        source = SOURCES / program.source
        built = folder / source.stem
        return built if built.exists() else compiled_for(library, source, folder, FASTEST, ["-lm"])
    found = shutil.which("hpcc")
    if found is None:
        raise NoCompiler("HPCC is not installed: apt-get install hpcc", code="compiler.refuses")
    if library.family != "openmpi":
        raise NoCompiler(
            f"Debian's HPCC is built for Open MPI, not for {library.family}",
            code="compiler.refuses",
        )
    return Path(found)


def cells_of(program: Reporting, path: Path, folder: Path) -> list[Cell]:
    """The cells of a program at ``path``; input files are written into ``folder``."""
    found = []
    for cell, arguments in program.arguments.items():
        place, ranks = CELLS[cell]
        words = arguments.split()
        line = (str(path), *words)
        if program.hpcc is not None:
            size, amount = words
            given = folder / f"{program.name}-{cell}" / "hpccinf.txt"
            given.parent.mkdir(exist_ok=True)
            write_atomically(given, hpcc_input(int(size), ranks))
            line = (
                *python("runner.micro.brought", "--figure", rf"^{program.hpcc}=([0-9.e+-]+)$"),
                *(f"--{program.unit}", amount, "--valid", "^Success=1$"),
                *("--files", HPCC_OUTPUT, "--given", str(given), "--", str(path)),
            )
        found.append(Cell(program.name, ranks, place, line, None, None, METRIC, VERIFY))
    return found


def hpcc_input(size: int, ranks: int) -> str:
    """The input file of HPCC for a matrix of ``size`` rows; 4 ranks form a square, fewer a row.

    The parts take their sizes from that of HPL; PTRANS has half of the rows.
    """
    rows = 2 if ranks == 4 else 1
    head = [
        "HPLinpack benchmark input file",
        "Innovative Computing Laboratory, University of Tennessee",
        "HPL.out output file name",
        "8 device out",
    ]
    numbers = [
        (1, "# of problem sizes"), (size, "Ns"), (1, "# of NBs"), (BLOCK, "NBs"),
        (0, "PMAP"), (1, "# of process grids"), (rows, "Ps"), (ranks // rows, "Qs"),
        (16.0, "threshold"), (1, "# of panel fact"), (2, "PFACTs"),
        (1, "# of recursive stopping criterium"), (4, "NBMINs"), (1, "# of panels in recursion"),
        (2, "NDIVs"), (1, "# of recursive panel fact."), (1, "RFACTs"), (1, "# of broadcast"),
        (1, "BCASTs"), (1, "# of lookahead depth"), (1, "DEPTHs"), (2, "SWAP"),
        (64, "swapping threshold"), (0, "L1 in transposed form"), (0, "U in transposed form"),
        (1, "Equilibration"), (8, "memory alignment in double"),
    ]  # fmt: skip
    tail = [
        "##### separator #####",
        "0 Number of additional problem sizes for PTRANS",
        "1200 values of N",
        "0 number of additional blocking sizes for PTRANS",
        "40 values of NB",
    ]
    return "\n".join([*head, *(f"{value} {meaning}" for value, meaning in numbers), *tail, ""])
