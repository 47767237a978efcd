"""A ``--tune`` file: ``--mca name value`` lines, the only form that 4.1 and 5.0 both read."""

from __future__ import annotations

from pathlib import Path

from autotune.publish.content import Content
from autotune.publish.formats.base import Format, Loading
from runner.mpi.library import Library


class Tune(Format):
    """For one program or one class of jobs; 5.0's user file beats it."""

    name = "tune"
    summary = "a file for mpirun --tune FILE"
    suffix = ".tune"
    family = "openmpi"

    def part(self, content: Content, library: Library) -> Content:
        return content.only("mca")

    def body(self, content: Content, library: Library) -> str:
        values = content.groups.get("mca", {})
        return "".join(f"--mca {name} {value}\n" for name, value in sorted(values.items()))

    def staged(self, text: str, place: Path, library: Library) -> Loading:
        path = place / "file.tune"
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
        return self.live(path, library)

    def live(self, path: Path, library: Library) -> Loading:
        return Loading(options=("--tune", str(path.absolute())))
