"""The bytes of published files: of every format and library, and of a study that is published."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path

from autotune.collective_rules import Rule
from autotune.errors import UsageError
from autotune.publish.block import BEGIN
from autotune.publish.content import Content
from autotune.publish.formats import ALL, Format
from autotune.publish.install import Text
from autotune.publish.plan import plan_files
from autotune.publish.source import PublicationSource
from autotune.testing import format as contract
from runner.mpi.library import Library
from tests.witness.commands import autotune, filled
from tests.witness.plain import plain, write_document, write_lines

LIBRARIES = (contract.OLD, contract.NEW, contract.MPICH, contract.IMPI)
EVIDENCE = contract.evidence(gain=0.08, gain_ci=(0.05, 0.11), runs=54, date="2026-11-20")
CONTENTS = {
    "all": contract.FULL,
    "values": contract.FULL.only("mca", "env"),
    "placement": contract.FULL.only("placement"),
    "rules": Content(rules=(Rule("bcast", 2, 0, "3"), Rule("bcast", 2, 4096, "4", 2, 1024))),
    "trees": contract.TREES,
}
"""Of the first few libraries can hold everything."""
REALLY = ("html", "openmpi-system", "openmpi-user", "prte-user", "sh", "slurm", "spack", "tune")
"""Formats for which nothing but Open MPI and a shell is needed; two of them are refused."""
OTHERS = "# lines of the administrator\nbtl_base_warn_component_unused = 0\n"
_DATA = re.compile(r"data: (\{.*?\})(?: -->)?$")


def record(name: str, out: Path, place: Path) -> None:
    """Write the files that would be published, and those that are, verified and removed again."""
    for fmt, library in itertools.product(ALL, LIBRARIES):
        for title, content in CONTENTS.items():
            if fmt.family in ("", library.family):
                lines = _planned(fmt, content, library, place)
                write_lines(out / title / f"{fmt.name}.{library.family}-{library.version}", lines)
    filled(place, (("cg-W", "auto"),))
    for format_name in REALLY:
        _really(format_name, out / "really", place)


def bare(text: Text, place: Path) -> Iterator[str]:
    """The lines; of the header only its data and whether all is as autotune would write it."""
    inside = False
    for line in text.whole.splitlines():
        inside = inside or BEGIN in line
        if not inside:
            yield line.replace(str(place), "(place)")
        elif data := _DATA.search(line):
            yield json.dumps(plain(json.loads(data[1]), place), sort_keys=True)
        elif "checksum: sha256:" in line:  # data
            yield f"checksum is right: {not contract.edited(place, text)}"
            inside = False


def _planned(fmt: Format, content: Content, library: Library, place: Path) -> list[str]:
    try:
        source = PublicationSource(fmt.part(content, library), EVIDENCE, (), True)
        (one,) = plan_files(source, [fmt], contract.CLUSTER, library, place / "f", unproven=True)
        return list(bare(one.text(one.content, library, "seen"), place))
    except UsageError:
        return ["refused"]


def _really(name: str, out: Path, place: Path) -> None:
    """Publish by test runs into a file of somebody else, verify, and unpublish."""
    folder = place / name
    folder.mkdir()
    file = folder / "file"
    file.write_text(OTHERS)
    words = ["--from", "study:1", "--force", "--format", name, "-o", f"{file}"]
    steps = [autotune(place, "publish", *words)]
    for one in sorted(folder.iterdir()):
        write_lines(out / f"{name}.{one.name}", bare(Text(one.read_text()), place))
    steps += [autotune(place, "verify-published", "--no-compare", f"{file}")]
    steps += [autotune(place, "unpublish", f"{file}")]
    left = {one.name: one.read_text() == OTHERS for one in folder.iterdir()}
    write_document(out / f"{name}.json", {"steps": steps, "restored": left}, place)
