"""Makes the fixtures of this version: files of every format, written by real commands.

By hand, once for each version, with autotune and a copy of ``tests`` in a neutral place, because
paths and host names go into the files::

    unshare --uts --pid --fork --mount-proc sh -c 'hostname node1; python -m tests.formats.make OUT'

The work is done in ``/tmp/site``, with a home of its own; ``OUT`` is a new folder.  It takes some
minutes.  The guard is off, because nobody uses the figures.  Formats of libraries that are not here
(:data:`RENDERED`) are rendered, not launched.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from autotune.publish.formats import find
from autotune.publish.install import side_of
from autotune.schemas import SCHEMAS, load_schema
from autotune.testing.format import rendered_text
from tests.formats.inputs import APP, EAGER, FIGURE, PLAN, SPACE

SITE = Path("/tmp/site")
WORK = SITE / "work"
OWN = ("--store", "campaign.db")
APPLICATION = ("--app", "exchange", "--no-guard")
LAUNCHED = ("openmpi-user", "tune", "sh", "csh", "lmod", "tcl", "slurm", "spack",
            "html", "easybuild", "reframe")  # fmt: skip
RENDERED = ("openmpi-system", "prte-user", "prte-system", "rules-v1", "rules-v2", "rules-v3",
            "mpich-env", "mpich-json", "mpich-layers-json", "impi-env", "impi-user")  # fmt: skip


class UnexpectedEndError(Exception):
    """A command ended otherwise than it should."""


def environment() -> dict[str, str]:
    """Variables of the commands: a home of its own, and nothing of the caller's but PATH."""
    home = SITE / "home"
    folders = {
        "HOME": home,
        "XDG_CONFIG_HOME": home / ".config",
        "XDG_DATA_HOME": home / ".local" / "share",
        "XDG_CACHE_HOME": home / ".cache",
        "XDG_RUNTIME_DIR": SITE / "run",
    }
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    return {
        **{name: str(folder) for name, folder in folders.items()},
        "PATH": os.environ["PATH"],
        "AUTOTUNE_STORE": str(WORK / "results.db"),
        "AUTOTUNE_LOCK_FILE": str(SITE / "lock"),
        "LC_ALL": "C.UTF-8",
    }


def command(words: Sequence[str], document: str = "") -> list[str]:
    """The command line; with ``document``, it writes that file of ``documents``."""
    at = words.index("--") if "--" in words else len(words)
    more = ["--json", f"documents/{document}.json"] if document else []
    return [sys.executable, "-m", "autotune", *words[:at], *more, *words[at:]]


def autotune(*words: str, document: str = "", code: int = 0) -> None:
    """Run a command in the working directory.  Raises UnexpectedEndError for another exit code."""
    line = command(words, document)
    print("autotune", *words, flush=True)
    ended = subprocess.run(
        line, cwd=WORK, env=environment(), capture_output=True, text=True, check=False
    )
    if ended.returncode != code:
        raise UnexpectedEndError(f"{line}: {ended.returncode}\n{ended.stdout}\n{ended.stderr}")


def interrupt(*words: str, seconds: float) -> None:
    """Run a command, and press Ctrl-C after so many seconds."""
    print("autotune", *words, flush=True)
    process = subprocess.Popen(
        command(words), cwd=WORK, env=environment(), stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        process.wait()


def write_inputs() -> None:
    for name, text in (
        ("configs/apps/exchange.toml", APP),
        ("configs/spaces/site.toml", SPACE),
        ("configs/spaces/eager.toml", EAGER),
        ("configs/figures/halo.toml", FIGURE),
        ("configs/plans/programs.toml", PLAN),
    ):
        path = WORK / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for folder in ("documents", "published"):
        (WORK / folder).mkdir()


def measure() -> None:
    """Studies with a proof, with failures, and one that was interrupted."""
    autotune("cluster", "init", "site")
    space = ("--space", "site", "--strategy", "exhaustive")
    search = ("search", *APPLICATION, *space, "--runs", "60")
    autotune(*search, document="search")
    eager = "btl_sm_eager_limit=16k"
    autotune("compare", "default", eager, *APPLICATION, "--runs", "16", document="compare")
    autotune("noise", *APPLICATION, "--runs", "6", document="noise")
    autotune("run", *APPLICATION, "--setting", eager, document="run")
    autotune("run", *APPLICATION, "--verify", "NEVER", document="run-failed", code=1)
    long = ("search", *APPLICATION, "--input", "long", "--space", "site", "--seed", "1")
    interrupt(*long, seconds=12)
    eager_only = ("--space", "eager", "--strategy", "exhaustive", "--runs", "40")
    autotune("search", *APPLICATION, *eager_only)


def explore() -> None:
    """A campaign with the features of its programs."""
    autotune("explore", "programs", "--dry-run", document="explore-dry-run")
    autotune("explore", "programs", "--no-guard", "-o", "programs", *OWN, document="explore")
    autotune("dataset", "trace", "programs", "--run-recorded", "--no-guard")


def tabulate() -> None:
    """A table of collectives, a calibration, and the features of a program."""
    autotune(
        "collectives", "--operations", "gather", "--ranks", "2", "--sizes", "1k,64k",
        "--pairs", "8", "--no-guard", *OWN, document="collectives",
    )  # fmt: skip
    autotune("features", *APPLICATION, "-o", "features.json", document="features")
    words = ("calibrate", "--ranks", "2", "--space", "eager", "--no-guard", *OWN)
    autotune(*words, document="calibrate")


def derive() -> None:
    """Models, exports, reports and published files."""
    for model in ("knn", "mlp"):
        autotune("train", "programs", "--model", model, "-o", f"{model}.json", document="train")
    autotune("predict", "features.json", "--model", "knn.json", document="predict")
    autotune("anova", "programs", document="anova")
    autotune("classwide", "programs", "--no-measure", document="classwide")
    autotune("importance", "study:1", document="importance")
    autotune("evaluate", "predict", "programs", "--model", "knn", document="evaluate-predict")
    autotune("report", "1", "-o", "report.html", document="report")
    autotune("dataset", "export", "1", "-o", "exported")
    for ending in ("csv", "parquet"):
        autotune("export", "1", "--to", ending, "-o", f"export.{ending}")
    source = ("publish", "--from", "study:7", "--force")
    for name in LAUNCHED:
        place = f"published/{name}{find(name).suffix}"
        plan = (*source, "--format", name, "--unproven", "-o", place)
        autotune(*plan, "--dry-run", document="publish-dry-run")
        autotune(*plan, document="publish")
    autotune("verify-published", "--no-compare", "published/tune.tune", document="verify-published")
    shutil.copytree(WORK / "published", WORK / "kept")
    autotune("unpublish", "published/sh.sh", document="unpublish")
    shutil.rmtree(WORK / "published")
    (WORK / "kept").rename(WORK / "published")
    for name in RENDERED:
        path = WORK / "published" / f"{name}{find(name).suffix}"
        text = rendered_text(find(name), path)
        path.write_text(text.main)
        if text.side is not None:
            side_of(path).write_text(text.side)


def describe() -> None:
    """The commands that only read."""
    for words, document in (
        (("apps", "exchange"), "apps"),
        (("schema",), "schema"),
        (("studies",), "studies"),
        (("show", "1"), "show"),
        (("status", "1"), "status"),
        (("doctor", "--quick"), "doctor"),
        (("publish", "--formats"), "publish-formats"),
        (("features", "--list"), "features-list"),
        (("cluster", "list"), "cluster-list"),
        (("cluster", "show", "site"), "cluster-show"),
        (("cluster", "split", "2"), "cluster-split"),
        (("dataset", "list"), "dataset-list"),
        (("dataset", "describe", "programs"), "dataset-describe"),
        (("dataset", "classes", "programs"), "dataset-classes"),
        (("space", "list"), "space-list"),
        (("space", "show", "site"), "space-show"),
        (("space", "check", "site"), "space-check"),
        (("space", "discover", "btl_sm_eager*"), "space-discover"),
    ):
        autotune(*words, document=document)
    autotune("space", "discover", "btl_sm_eager*", "-o", "discovered.toml")
    autotune("show", "999", document="error", code=2)
    autotune("testbed", "up", "--latency", "0", document="testbed-up")
    autotune("testbed", "status", "--no-measure", document="testbed-status")
    autotune("testbed", "run", "--", "true", document="testbed-run")
    autotune("testbed", "down", document="testbed-down")


def without_words(schema: Any) -> Any:
    """A schema without its texts for people."""
    if isinstance(schema, dict):
        return {
            key: without_words(value)
            for key, value in schema.items()
            if not (key in ("description", "title") and isinstance(value, str))
        }
    return [without_words(value) for value in schema] if isinstance(schema, list) else schema


STEPS = {"measure": measure, "explore": explore, "tabulate": tabulate, "derive": derive,
         "describe": describe}  # fmt: skip


def collect(target: Path) -> None:
    """Copy what is kept into ``target``."""
    target.mkdir(parents=True)
    with closing(sqlite3.connect(WORK / "results.db")) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.execute("VACUUM")
    schemas = {name: without_words(load_schema(name)) for name in SCHEMAS}
    (target / "schemas.json").write_text(json.dumps(schemas, separators=(",", ":")) + "\n")
    for name in ("configs", "documents", "published", "programs", "exported"):
        shutil.copytree(WORK / name, target / name)
    shutil.copy(WORK / "results.db", target / "results.sqlite")
    for name in ("features.json", "knn.json", "mlp.json",
                 "discovered.toml", "export.csv", "export.parquet"):  # fmt: skip
        shutil.copy(WORK / name, target / name)
    home = SITE / "home"
    shutil.copytree(home / ".local/share/autotune", target / "data",
                    ignore=shutil.ignore_patterns("published.json", "verified.json"))  # fmt: skip
    for path in (target / "data").glob("*/*.json"):
        if path.stem != json.loads((WORK / f"documents/{path.parent.name}.json").read_text())["id"]:
            path.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path)
    parser.add_argument("--from", dest="first", default="measure",
                        choices=[*STEPS, "collect"])  # fmt: skip
    options = parser.parse_args()
    # A shell starts a command in the background with SIGINT ignored, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    names = [*STEPS, "collect"]
    if options.first == "measure":
        shutil.rmtree(WORK, ignore_errors=True)
        shutil.rmtree(SITE / "home", ignore_errors=True)
        WORK.mkdir(parents=True)
        write_inputs()
    for name in names[names.index(options.first) :]:
        STEPS[name]() if name in STEPS else collect(options.target)


if __name__ == "__main__":
    main()
