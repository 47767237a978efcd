"""Intel MPI's startup messages (``I_MPI_DEBUG``): fabric, provider, and refused values.

Intel MPI aborts on a number that it cannot read. It replaces an unusable algorithm, transport,
fabric or tuning file, and only these lines say so. The library preloaded into the ranks
(:mod:`runner.mpi.control_variables`) writes them to a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from runner import files
from runner.mpi.intel_info import words_of
from runner.mpi.library import ParamInfo
from runner.types import ReadBack

FILE = "startup.txt"
"""The file's name in the folder of the read-back files."""
FILE_VARIABLE = "AUTOTUNE_STARTUP_OUTPUT"
DEBUG, LEVEL = "I_MPI_DEBUG", 5
"""The variable, and the lowest level that shows the values in force except libfabric's."""
SOURCE = "I_MPI_DEBUG"
FABRICS, PROVIDER, SHM = "I_MPI_FABRICS", "I_MPI_OFI_PROVIDER", "I_MPI_SHM"
TUNING_FILE = "I_MPI_TUNING_BIN"
_ADJUST = "I_MPI_ADJUST_"
_MOST_BYTES = 1 << 20
_STARTUP_LINE = re.compile(r"MPI startup\(\): (.*)")
_PROVIDER = re.compile(r"libfabric provider: (\S+)")
_IGNORED_VALUE = re.compile(r"Incorrect (?:algorithm|adjust value): (\w+)=.*, will be ignored")
_OTHER_SHM = re.compile(r'"[^"]*" shm transport is not supported\. "(\w+)" shm transport will')
_NO_FABRIC = re.compile(r"\S+ fabric is unknown or has been removed")
_FALLBACK = re.compile(r"[Ff]allback to (\S+) fabric")
_TUNING_LOAD = re.compile(r'Load tuning file: "([^"]*)"')
_TUNING_FALLBACK = re.compile(
    r'Tuning file "([^"]*)" was not loaded! Load default tuning file: "([^"]*)"'
)
_UNKNOWN = re.compile(r"(\w+) environment variable is not supported")
_VALUE = re.compile(r"(I_MPI_\w+)=(.*)")
_OF_SHM = re.compile(r"I_MPI_SHM(_\w+)?|I_MPI_COLL_(INTRANODE|SHM_\w+)")
_OF_OFI = re.compile(r"I_MPI_OFI_\w+|FI_\w+")
_WORDS = {
    "I_MPI_PIN_DOMAIN": frozenset({"omp", "auto"}),
    "I_MPI_COLL_INTRANODE": frozenset({"pt2pt", "shm"}),
}
"""Words that a variable accepts besides those that ``impi_info`` lists."""
_INT = 1 << 31


@dataclass(frozen=True)
class IntelStartup:
    """The library's startup messages.

    ``fabric``: ``shm``, ``shm:ofi`` or ``ofi``; "" if it was not reported. ``provider``:
    libfabric's, "" if libfabric is not used. ``ignored_names`` are names of algorithm choices,
    ``unknown`` names of variables that the library does not have, ``effective`` the values used
    instead of the requested ones.
    """

    fabric: str = ""
    provider: str = ""
    ignored_names: frozenset[str] = frozenset()
    unknown: frozenset[str] = frozenset()
    effective: Mapping[str, str] = field(default_factory=dict)

    @property
    def transport(self) -> str:
        """What carries the messages: ``shm``, ``ofi: tcp`` or ``shm:ofi: tcp``."""
        return f"{self.fabric}: {self.provider}" if self.provider else self.fabric

    def judge(self, name: str, back: ReadBack, info: ParamInfo | None) -> ReadBack:
        """The state of a requested value, given a read-back which says that the library read it."""
        if name in self.unknown:
            return ReadBack("unknown", back.requested, source=SOURCE)
        if back.state != "in force":
            return back
        effective = self._other(name, back.requested, info)
        if effective is not None:
            return ReadBack("altered", back.requested, effective, SOURCE)
        why = idle_under([name], self.transport).get(name)
        return back if why is None else ReadBack("inactive", back.requested, back.effective, why)

    def _other(self, name: str, value: str, info: ParamInfo | None) -> str | None:
        """The value in force instead of ``value``; None if no other one is known to be."""
        if name in self.ignored_names:
            return "(ignored)"
        if name in self.effective and self.effective[name] != value:
            return self.effective[name]
        if name in (PROVIDER, "FI_PROVIDER") and self.provider:
            providers = value.strip("^").split(",") if not value.startswith("^") else []
            parts = {self.provider, *self.provider.split(";")}
            return self.provider if providers and not parts & set(providers) else None
        if info is None:
            return None
        words = words_of(info) | _WORDS.get(name, frozenset())
        if words and value.isalpha() and name not in (SHM, FABRICS) and value not in words:
            return "(ignored)"
        number = value.lstrip("-")
        if info.type == "int" and number.isdigit() and not -_INT <= int(value) < _INT:
            return "(too large a number)"
        return None


def idle_under(names: Iterable[str], transport: str) -> dict[str, str]:
    """The variables in ``names`` that have no effect under a transport, each with the reason.

    ``transport`` is a text of :attr:`IntelStartup.transport`.
    """
    fabric = transport.partition(": ")[0]
    if not fabric:
        return {}
    patterns = [_OF_SHM] if fabric == "ofi" else [_OF_OFI] if fabric == "shm" else []
    why = f"{fabric} alone carries the messages"
    return {n: why for n in names if n != SHM and any(p.fullmatch(n) for p in patterns)}


def read_startup(scratch: Path) -> IntelStartup:
    """The startup messages of a run; an empty result if there is no file."""
    try:
        return parse_startup(files.read_text(scratch / FILE, _MOST_BYTES))
    except OSError:
        return IntelStartup()


def parse_startup(text: str) -> IntelStartup:
    """The content of the lines of ``I_MPI_DEBUG``; other lines are left out."""
    lines = _STARTUP_LINE.findall(text)
    if not lines:
        return IntelStartup()
    provider, fabric, tuning = "", "", ""
    ignored_names: set[str] = set()
    unknown: set[str] = set()
    effective: dict[str, str] = {}
    for line in lines:
        if match := _PROVIDER.search(line):
            provider = match[1]
        elif match := _IGNORED_VALUE.search(line):
            ignored_names.add(_ADJUST + match[1])
        elif match := _OTHER_SHM.search(line):
            effective[SHM] = match[1]
        elif _NO_FABRIC.search(line):
            effective[FABRICS] = "ofi"
        elif match := _FALLBACK.search(line):
            effective[FABRICS] = match[1]
        elif match := _TUNING_FALLBACK.search(line):
            effective[TUNING_FILE] = tuning = match[2]
        elif match := _TUNING_LOAD.search(line):
            tuning = match[1]
        elif match := _UNKNOWN.search(line):
            unknown.add(match[1])
        elif (match := _VALUE.match(line)) and match[1] == FABRICS:
            fabric = match[2].strip()
    fabric = effective.get(FABRICS, fabric) or _fabric_of(tuning, provider)
    return IntelStartup(fabric, provider, frozenset(ignored_names), frozenset(unknown), effective)


def _fabric_of(tuning: str, provider: str) -> str:
    """The fabric that the library chose by itself, taken from the name of its tuning file."""
    if not provider:
        return "shm"
    return "ofi" if re.match(r"tuning_[\w-]+_ofi\b", Path(tuning).name) else "shm:ofi"
