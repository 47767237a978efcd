"""What a search gains under each MPI library: an exchange and a broadcast-bound program in C.

    python -m benchmarks.library_gains --mpi PLACE [--mpi PLACE ...] --budget 5m --store FILE

Each library gets a build of both programs and one ``autotune search`` of the same budget with the
guard on. The gain is the proof's: interleaved pairs with the library's own default on fresh runs.
The same command continues; finished searches are read from the results database.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.common import Answer, autotune, options, report, run_benchmark, store_at, table
from benchmarks.mpi_programs import NoCompiler, compiled_for
from runner.mpi.discover import find_library

SOURCES = Path(__file__).parent / "references"
PROGRAMS = {"exchange": ("65536", "40000"), "broadcast": ("262144", "10000")}
"""Name -> bytes and rounds."""
METRIC, VERIFY = r"time ([\d.e-]+) s", "VERIFIED"
TIMEOUT_S = 3600.0


def row_of(library: str, program: str, answer: Answer) -> dict[str, Any]:
    """One search as a row of the table; gains in percent."""
    found = answer.result
    if not found:
        said = answer.text.splitlines()[-1:] or [f"exit code {answer.code}"]
        return {
            "library": library, "program": program, "default_s": "-", "status": said[0][:60],
            "gain": "-", "runs": "-", "rejected": "-", "wall_s": round(answer.wall_s),
            "setting": "-",
        }  # fmt: skip
    gain, ends = found.get("gain"), found.get("gain_ci95") or []
    low_high = " .. ".join("?" if end is None else f"{100 * end:+.1f}" for end in ends)
    setting = (found.get("recommended") or {}).get("setting") or {}
    return {
        "library": library,
        "program": program,
        "default_s": f"{found['default']['median_s']:.4g}",
        "status": found["status"],
        "gain": "-" if gain is None else f"{100 * gain:+.1f} % ({low_high})",
        "runs": f"{found['search_runs']}+{found['confirmation_runs']}",
        "rejected": found["runs_rejected"],
        "wall_s": round(found["wall_s"]),
        "setting": ",".join(f"{name}={value}" for name, value in setting.items()) or "default",
    }


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--mpi", action="append", required=True, help="as in autotune --mpi")
    parser.add_argument("--ranks", default="2")
    parser.add_argument("--budget", default="5m")
    parser.add_argument("--program", choices=PROGRAMS, action="append")
    asked = parser.parse_args()
    rows = []
    with store_at(asked.store) as store:
        # The builds stay where the store is: their content is part of the studies.
        builds = Path(store).absolute().parent / "builds"
        for name in asked.program or PROGRAMS:
            for place in asked.mpi:
                library = find_library(place)
                title = f"{library.family} {library.version}"
                here = builds / title.replace(" ", "-")
                here.mkdir(parents=True, exist_ok=True)
                try:
                    program = compiled_for(library, SOURCES / f"{name}.c", here, ("-O2",))
                except NoCompiler as problem:
                    rows.append(row_of(title, name, Answer(1, {}, str(problem), 0.0)))
                    continue
                answer = autotune(
                    *("search", "--mpi", place, "--ranks", asked.ranks, "--budget", asked.budget),
                    *("--store", store, "--metric", METRIC, "--verify", VERIFY, *asked.guard),
                    *("--quiet", "--", str(program), *PROGRAMS[name]),
                    timeout_s=TIMEOUT_S,
                )
                rows.append(row_of(title, name, answer))
                print(f"{title} {name}: {rows[-1]['status']} {rows[-1]['gain']}", flush=True)
    table(rows)
    report(
        "library_gains", {"budget": asked.budget, "ranks": asked.ranks, "rows": rows}, asked.json
    )
    return 0


if __name__ == "__main__":
    run_benchmark(main)
