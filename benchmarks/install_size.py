"""Size of an environment: what each installed package takes on disk.

Without arguments it is the environment of this interpreter.  With ``--extras`` the present wheel is
built and installed with these extras (``""`` is what a user who only tunes gets) into a new
environment, each in turn, which downloads packages.  The goal is 220 MB for ``""`` without
compiled Python files.

Usage: python -m benchmarks.install_size [--extras "" all] [--largest 12] [--json FILE]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from benchmarks.common import ROOT, options, report, run_benchmark, table

MB = 10**6
GOAL_MB = 220


def sizes(place: Path) -> dict[str, int]:
    """Bytes of each distribution in a ``site-packages`` folder, with its compiled Python files."""
    found: dict[str, int] = {}
    for one in distributions(path=[str(place)]):
        files = [Path(f"{one.locate_file(file)}") for file in one.files or ()]
        found[one.metadata["Name"]] = sum(f.stat().st_size for f in files if f.is_file())
    return found


def whole(place: Path) -> int:
    """Bytes of everything below a folder, links not followed."""
    return sum(f.lstat().st_size for f in place.rglob("*") if f.is_file() or f.is_symlink())


def installed(wheel: Path, extra: str, folder: Path) -> Path:
    """A new environment in ``folder`` with the wheel and an extra; its ``site-packages``.

    Like one of ``uv tool install`` it has no pip and no setuptools of its own.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    wanted = f"{wheel}[{extra}]" if extra else f"{wheel}"
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
    subprocess.run([*pip, "install", "-q", "--no-compile", wanted], check=True)
    return next(folder.glob("lib/python*/site-packages"))


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--extras", nargs="*", metavar="EXTRA")
    parser.add_argument("--largest", type=int, default=12)
    given = parser.parse_args()
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        if given.extras is None:
            here = next(Path(sys.prefix).glob("lib/python*/site-packages"))
            figures["this environment"] = (whole(Path(sys.prefix)), sizes(here))
        else:
            build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", scratch, ROOT]
            subprocess.run(build, check=True)
            wheel = next(Path(scratch).glob("*.whl"))
            for extra in given.extras:
                folder = Path(scratch) / f"env-{extra or 'tune'}"
                place = installed(wheel, extra, folder)
                figures[extra or "tune only"] = (whole(folder), sizes(place))
        for name, (total, packages) in figures.items():
            print(f"{name}: {total / MB:.0f} MB")
            largest = sorted(packages.items(), key=lambda item: -item[1])[: given.largest]
            table([{"package": key, "MB": f"{size / MB:.1f}"} for key, size in largest])
            print()
    totals = {f"{name} (MB)": round(total / MB) for name, (total, _) in figures.items()}
    packages = {name: found for name, (_, found) in figures.items()}
    report("install_size", totals | {"goal (MB)": GOAL_MB, "packages": packages}, given.json)


if __name__ == "__main__":
    run_benchmark(main)
