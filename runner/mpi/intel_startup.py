"""What Intel MPI says while it starts (``I_MPI_DEBUG``): fabric, provider, and refused values.

Intel MPI aborts on a number that it cannot read. An algorithm, transport, fabric or tuning file
that it cannot use is replaced by another one, and only these lines say so. The library preloaded
into the ranks (:mod:`runner.mpi.control_variables`) writes them to a file.
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
"""The variable, and the level from which on the values in force are shown, but not libfabric's."""
SOURCE = "I_MPI_DEBUG"
FABRICS, PROVIDER, SHM = "I_MPI_FABRICS", "I_MPI_OFI_PROVIDER", "I_MPI_SHM"
TUNING_FILE = "I_MPI_TUNING_BIN"
_ADJUST = "I_MPI_ADJUST_"
_MOST_BYTES = 1 << 20
_SAID = re.compile(r"MPI startup\(\): (.*)")
_PROVIDER = re.compile(r"libfabric provider: (\S+)")
_IGNORED = re.compile(r"Incorrect (?:algorithm|adjust value): (\w+)=.*, will be ignored")
_OTHER_SHM = re.compile(r'"[^"]*" shm transport is not supported\. "(\w+)" shm transport will')
_NO_FABRIC = re.compile(r"\S+ fabric is unknown or has been removed")
_FALLBACK = re.compile(r"[Ff]allback to (\S+) fabric")
_LOADED = re.compile(r'Load tuning file: "([^"]*)"')
_NOT_LOADED = re.compile(
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
"""Words that a variable takes besides those that ``impi_info`` lists."""
_INT = 1 << 31


@dataclass(frozen=True)
class IntelStartup:
    """What the library said.

    ``fabric``: ``shm``, ``shm:ofi`` or ``ofi``; "" if it said nothing. ``provider``: libfabric's,
    "" if libfabric has no part. ``ignored`` are names of algorithm choices, ``unknown`` names of
    variables that the library does not have, ``used`` what it used in place of a value.
    """

    fabric: str = ""
    provider: str = ""
    ignored: frozenset[str] = frozenset()
    unknown: frozenset[str] = frozenset()
    used: Mapping[str, str] = field(default_factory=dict)

    @property
    def transport(self) -> str:
        """What carries the messages: ``shm``, ``ofi: tcp`` or ``shm:ofi: tcp``."""
        return f"{self.fabric}: {self.provider}" if self.provider else self.fabric

    def judged(self, name: str, back: ReadBack, info: ParamInfo | None) -> ReadBack:
        """The state of a value of which it was read that the library asked for it."""
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
        """What is in force in place of ``value``; None if nothing is known to be."""
        if name in self.ignored:
            return "(ignored)"
        if name in self.used and self.used[name] != value:
            return self.used[name]
        if name in (PROVIDER, "FI_PROVIDER") and self.provider:
            wanted = value.strip("^").split(",") if not value.startswith("^") else []
            parts = {self.provider, *self.provider.split(";")}
            return self.provider if wanted and not parts & set(wanted) else None
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
    """Those of ``names`` that do nothing under a transport, each with the reason.

    ``transport`` is a text of :attr:`IntelStartup.transport`.
    """
    fabric = transport.partition(": ")[0]
    if not fabric:
        return {}
    patterns = [_OF_SHM] if fabric == "ofi" else [_OF_OFI] if fabric == "shm" else []
    why = f"{fabric} alone carries the messages"
    return {n: why for n in names if n != SHM and any(p.fullmatch(n) for p in patterns)}


def read_startup(scratch: Path) -> IntelStartup:
    """What was said in a run; an empty answer if there is no file."""
    try:
        return parse_startup(files.read_text(scratch / FILE, _MOST_BYTES))
    except OSError:
        return IntelStartup()


def parse_startup(text: str) -> IntelStartup:
    """What the lines of ``I_MPI_DEBUG`` say; other lines are left out."""
    said = _SAID.findall(text)
    if not said:
        return IntelStartup()
    provider, fabric, tuning = "", "", ""
    ignored: set[str] = set()
    unknown: set[str] = set()
    used: dict[str, str] = {}
    for line in said:
        if found := _PROVIDER.search(line):
            provider = found[1]
        elif found := _IGNORED.search(line):
            ignored.add(_ADJUST + found[1])
        elif found := _OTHER_SHM.search(line):
            used[SHM] = found[1]
        elif _NO_FABRIC.search(line):
            used[FABRICS] = "ofi"
        elif found := _FALLBACK.search(line):
            used[FABRICS] = found[1]
        elif found := _NOT_LOADED.search(line):
            used[TUNING_FILE] = tuning = found[2]
        elif found := _LOADED.search(line):
            tuning = found[1]
        elif found := _UNKNOWN.search(line):
            unknown.add(found[1])
        elif (found := _VALUE.match(line)) and found[1] == FABRICS:
            fabric = found[2].strip()
    fabric = used.get(FABRICS, fabric) or _fabric_of(tuning, provider)
    return IntelStartup(fabric, provider, frozenset(ignored), frozenset(unknown), used)


def _fabric_of(tuning: str, provider: str) -> str:
    """The fabric that the library chose by itself; the name of its tuning file has it."""
    if not provider:
        return "shm"
    return "ofi" if re.match(r"tuning_[\w-]+_ofi\b", Path(tuning).name) else "shm:ofi"
