"""Programs that fill centres: what a search finds; each proven setting published, seen, undone.

    python -m benchmarks.centre_programs --keep DIR [--apps lammps cp2k:tiny] [--spaces own hybrid]
                                         [--strategies ga auto] [--budget 10m] [--json FILE]
                                         [--cluster NAME --ranks N]

Each row is one ``autotune search --app NAME --input INPUT``. Space ``own`` has the parameters of
MPI and of the program, ``hybrid`` also ranks x threads, ``mpi`` those of MPI alone, ``network``
those and the ones of TCP (only if asked for: a cluster of one node has no network). What is proven
is published in a home folder of its own, checked by ``verify-published``, and taken back. Values
that belong to the program cannot be published; such a setting is compared with the default again.

Each finished row is stored in DIR as JSON and not run again; remove its file to measure it anew.
The searches store their runs in DIR/results.db, so that an interrupted one (Ctrl-C, a kill)
continues with the same command. ``--table`` prints the finished rows and runs nothing.
"""

from __future__ import annotations

import argparse
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from autotune.config.app import load_app
from autotune.config.cluster import load_cluster
from autotune.config.find import list_configs
from autotune.publish.plan import publish_options
from autotune.publish.source_place import cluster_of_source, library_of_source
from autotune.store import Store
from autotune.wording import Metric, parse_duration
from benchmarks.common import autotune, options, report, run_benchmark, table
from benchmarks.harness.cells import Cell, Cells, Row
from benchmarks.harness.searches import answer, is_decided, outcome
from runner import files

PROGRAMS = ("lammps", "gromacs", "quantum-espresso", "cp2k", "hpl", "imb")
SPACES = {
    "own": "openmpi+{app}",
    "hybrid": "openmpi+hybrid+{app}",
    "mpi": "openmpi",
    "network": "openmpi+openmpi-tcp",
}
OWN = ("own", "hybrid")
"""Spaces with parameters of the program."""
THREADS = "openmp"
"""What spaces may tune of an application that has threads."""


@dataclass(frozen=True)
class ProgramSearch:
    """A row of the table: an input of an application, a kind of space, and a strategy.

    ``cluster`` and ``ranks``: None for those of a plain ``autotune search``.
    """

    app: str
    input: str
    kind: str
    strategy: str
    cluster: str | None = None
    ranks: int | None = None

    @property
    def space(self) -> str:
        """The name of the space."""
        return SPACES[self.kind].format(app=self.app)

    @property
    def words(self) -> tuple[str, ...]:
        """Options of a command that name program and space."""
        place = {"--cluster": self.cluster, "--ranks": self.ranks}
        options = [(word, f"{value}") for word, value in place.items() if value is not None]
        program = ("--app", self.app, "--input", self.input, "--space", self.space)
        return (*program, *itertools.chain(*options))

    @property
    def name(self) -> str:
        place = [f"{value}" for value in (self.cluster, self.ranks) if value is not None]
        return "-".join([self.app, self.input, self.space, self.strategy, *place])


def searches(given: argparse.Namespace) -> Iterator[ProgramSearch]:
    """The rows that were asked for, without kinds of spaces that a program does not have.

    Raises UsageError for an unknown application or input.
    """
    own_spaces = {file.name for file in list_configs("spaces")}
    for word in given.apps:
        name, _, input_name = word.partition(":")
        app = load_app(name)
        app.input(input_name or None)
        for kind in given.spaces:
            if kind == "hybrid" and THREADS not in app.tunable:
                continue
            if kind in OWN and name not in own_spaces:
                continue
            chosen_input = input_name or app.usual_input
            for strategy in given.strategies:
                yield ProgramSearch(name, chosen_input, kind, strategy, given.cluster, given.ranks)


def parser() -> argparse.ArgumentParser:
    arguments = options(__doc__)
    add = arguments.add_argument
    add("--keep", type=Path, required=True, metavar="DIR", help="finished rows and the database")
    add("--apps", nargs="+", default=PROGRAMS, metavar="APP[:INPUT]", help="default: all")
    add("--spaces", nargs="+", choices=list(SPACES), default=[*OWN, "mpi"])
    add("--cluster", metavar="NAME", help="default: that of a plain autotune search")
    add("--ranks", type=int, metavar="N", help="default: those of the application")
    add("--strategies", "--strategy", nargs="+", default=["ga", "auto"], metavar="S")
    add("--budget", default="10m", help="machine time of one search; default 10m")
    add("--check-budget", default="3m", help="machine time of one verify-published; default 3m")
    add("--table", action="store_true", help="print the finished rows and run nothing")
    return arguments


def main() -> int:
    given = parser().parse_args()
    given.keep = given.keep.absolute()
    every = {f"{one.name}-{given.budget}": one for one in searches(given)}
    expected_s = parse_duration(given.budget)
    cells = Cells(given.keep, [Cell(name, expected_s) for name in every], is_decided)
    if given.table:
        rows = [row for name in every if (row := cells.kept(name)) is not None]
    else:
        rows = cells.complete(
            lambda cell: measure(given, every[cell.name]),
            lambda row: f"{answer(row)}; {fate(row)}",
        )
    if rows:
        table([line(row) for row in rows])
    open_ = [cell.name for cell in cells.open()]
    figures = {"budget": given.budget, "guard": not given.guard, "open": open_, "rows": rows}
    report("centre programs", figures, given.json)
    return 1 if open_ else 0


def measure(given: argparse.Namespace, search: ProgramSearch) -> Row:
    """One search, and what became of its setting."""
    search_end = autotune(
        *("search", *search.words, "--strategy", search.strategy, "--budget", given.budget),
        *("--store", database(given), *given.guard),
        *("--params-file", str(given.keep / f"{search.name}.conf")),
        timeout_s=7200,
    )
    row = {"name": search.name, **vars(search), "space": search.space, **outcome(search_end)}
    if row["status"] == "recommended":
        row["published"] = published(given, search, row["result"]["study"])
    return row


def database(given: argparse.Namespace) -> str:
    return str(given.keep / "results.db")


def published(given: argparse.Namespace, search: ProgramSearch, study: str) -> Row:
    """The setting of a study as files in a home folder of their own, until it was looked at.

    ``in_force`` says whether all are obeyed, ``checks`` are the answers of new comparisons, and
    ``undone`` says whether all files are gone afterwards. If it cannot be published, ``refused``
    says why, and ``checks`` has one comparison.
    """
    home = given.keep / "home"
    home.mkdir(exist_ok=True)
    # Of this user's home only what can be made again stays: there a testbed is known.
    cache = str(files.cache().parent)
    env = {"HOME": str(home), "XDG_DATA_HOME": str(home / "data"), "XDG_CACHE_HOME": cache}
    source = f"study:{study}"
    with Store.open(database(given)) as store:
        cluster = load_cluster(cluster_of_source(source, store))
        library = library_of_source(source, cluster.name, store)
        words = publish_options(study, cluster, library, store) or []
    store_words = ("--store", database(given))
    # A parameter file is read at its own place only; a script may lie anywhere.
    out = ("-o", str(home)) if words else ()
    publication = autotune("publish", "--from", source, *words, *out, *store_words, env=env)
    if not publication.result:
        again = autotune(
            *("compare", "default", source, *search.words, "--budget", given.check_budget),
            *("--remeasure", *store_words, *given.guard),
            timeout_s=3600,
        )
        comparison = (
            f"{again.result.get('outcome', 'failed')}: {again.result.get('words', again.text)}"
        )
        return {"refused": publication.text, "checks": [comparison]}
    paths = [file["path"] for file in publication.result["files"]]
    try:
        state = autotune(
            *("verify-published", *paths, "--run-recorded", "--budget", given.check_budget),
            *(*store_words, *given.guard),
            timeout_s=3600,
            env=env,
        )
    finally:
        undo = autotune("unpublish", *paths, env=env)
    result = state.result
    return {
        "files": {file["format"]: file["path"] for file in publication.result["files"]},
        "in_force": bool(result) and all(file["in_force"] for file in result["files"]),
        "checks": [f"{one['status']}: {one['words']}" for one in result.get("comparisons", [])],
        "undone": undo.code == 0 and not any(map(os.path.lexists, paths)),
    }


def fate(row: Row) -> str:
    """What became of the setting, in words."""
    after = row.get("published")
    if after is None:
        return "nothing to publish"
    checks = [check.partition(":")[0] for check in after["checks"]]
    if "refused" in after:
        return ", ".join(["cannot be published", *checks])
    obeyed = "obeyed" if after["in_force"] else "NOT obeyed"
    return ", ".join([obeyed, *checks, "undone" if after["undone"] else "NOT undone"])


def line(row: Row) -> dict[str, str]:
    """A line of the table."""
    result = row.get("result") or {}
    default = (result.get("default") or {}).get("median_s")
    metric = Metric(**result["metric"]) if result else Metric()
    setting = ",".join(f"{name}={value}" for name, value in (row.get("setting") or {}).items())
    return {
        "program": row["app"],
        "input": row["input"],
        "space": row["space"],
        "strategy": row["strategy"],
        "default": metric.words(default),
        "gain of tuning": answer(row),
        "runs": f"{row.get('runs', '-')}",
        "seconds": f"{row['wall_s']:.0f}",
        "setting": setting or "-",
        "published": fate(row),
    }


if __name__ == "__main__":
    run_benchmark(main)
