"""The tools of centres read what autotune writes: each is the real one.

ReFrame, EasyBuild, Thicket and TALP-Pages are the tests' own (:mod:`tests.mpi_environments`); the
module systems and the node exporter are those of the machine.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from autotune.cli import main
from autotune.publish.content import Content
from autotune.publish.formats import find
from autotune.publish.openmetrics import METRICS, metrics_text
from autotune.publish.plan import plan_files
from autotune.publish.source import PublicationSource
from autotune.store import Store
from autotune.store.export import export_study
from autotune.testing.format import CLUSTER, NEW, evidence
from runner.mpi.library import Library
from runner.types import RunRecord
from tests.contract.store_samples import key, ok
from tests.mpi_environments import environment
from tests.publish.test_openmetrics import DOCUMENT

pytestmark = pytest.mark.slow
VALUES = {"btl_sm_eager_limit": "8192", "coll": "^han"}
VARIABLES = {f"OMPI_MCA_{name}": value for name, value in VALUES.items()}
MODULES = Path("/usr/lib/x86_64-linux-gnu/modulecmd.tcl")
LMOD = Path(os.environ.get("LMOD_CMD", "/usr/share/lmod/lmod/libexec/lmod"))


def written(name: str, path: Path, check: Mapping[str, Any] | None = None) -> Path:
    """A file of a format as ``autotune publish`` writes it, without test runs."""
    proof = evidence(check=() if check is None else (check,))
    proposal = PublicationSource(Content({"mca": VALUES}), proof, (), True)
    path.parent.mkdir(parents=True, exist_ok=True)
    (one,) = plan_files(proposal, [find(name)], CLUSTER, NEW, path, unproven=True)
    path.write_text(one.text(one.content, NEW, "seen").main)
    return path


def ended(words: Sequence[object], cwd: Path, **variables: object) -> str:
    """What a command that ends well prints."""
    environ = os.environ | {name: str(value) for name, value in variables.items()}
    done = subprocess.run(
        [*map(str, words)], cwd=cwd, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("system", "name"), [("modules", "tcl"), ("lmod", "lmod"), ("lmod", "tcl")]
)
def test_a_module_system_loads_and_unloads(tmp_path: Path, system: str, name: str) -> None:
    command: list[object] = [LMOD]
    if system == "modules":
        if not MODULES.exists():
            pytest.skip(f"no Environment Modules: {MODULES}")
        command = ["tclsh", MODULES]
    elif not LMOD.exists():
        pytest.skip(f"no Lmod: {LMOD}")
    suffix = ".lua" if name == "lmod" else ""
    written(name, tmp_path / "modules" / "autotune" / f"site{suffix}")
    launcher = tmp_path / "bin" / "mpirun"
    launcher.parent.mkdir()
    launcher.touch(mode=0o755)
    script = """
eval "$("$@" bash load autotune/site 2> notes)"; env | grep OMPI_MCA_; cat notes
echo unloaded; eval "$("$@" bash unload autotune/site)"; env | grep OMPI_MCA_ || true
"""
    after: dict[str, list[str]] = {}
    for version in (NEW.version, "9.9.9"):
        launcher.write_text(f"#!/bin/sh\necho 'mpirun (Open MPI) {version}'\n")
        said = ended(
            ["bash", "-c", script, "bash", *command],
            tmp_path,
            MODULEPATH=tmp_path / "modules",
            PATH=f"{launcher.parent}:{os.environ['PATH']}",
            HOME=tmp_path,
        )
        after[version] = said.split("unloaded")
    assert {f"{n}={v}" for n, v in VARIABLES.items()} == set(after[NEW.version][0].split())
    # Under another version the module says so and sets nothing; an unload always undoes.
    assert "OMPI_MCA_coll=" not in after["9.9.9"][0]
    assert NEW.version in after["9.9.9"][0]
    assert "OMPI_MCA_coll=" not in after[NEW.version][1] + after["9.9.9"][1]


EASYCONFIG = """
easyblock = 'Bundle'
name = 'OpenMPI'
version = '{version}'
homepage = 'https://www.open-mpi.org'
description = 'An Open MPI that builds nothing'
toolchain = SYSTEM
modextravars = {{'OF_THE_SITE': '1'}}
postinstallcmds = ['mkdir -p %(installdir)s/bin && touch %(installdir)s/bin/mpirun']
sanity_check_paths = {{'files': ['bin/mpirun'], 'dirs': []}}
moduleclass = 'mpi'
"""


def test_easybuild_writes_the_variables_into_its_module(tmp_path: Path) -> None:
    tool = environment("easybuild")
    if not MODULES.exists():
        pytest.skip(f"no Environment Modules: {MODULES}")
    hook = written("easybuild", tmp_path / "autotune.py")
    modules = {}
    for version in (NEW.version, "9.9.9"):
        config = tmp_path / f"OpenMPI-{version}.eb"
        config.write_text(EASYCONFIG.format(version=version))
        words = ["eb", "--hooks", hook, "--prefix", tmp_path / "prefix", "--ignore-osdeps"]
        words += ["--modules-tool", "EnvironmentModules", "--module-syntax", "Tcl"]
        words += ["--disable-enforce-checksums", "--robot-paths", tmp_path, config]
        if os.geteuid() == 0:
            words.append("--allow-use-as-root-and-accept-consequences")
        ended(
            words,
            tmp_path,
            PATH=f"{tool}:{os.environ['PATH']}",
            HOME=tmp_path,
            MODULES_CMD=MODULES,
        )
        (path,) = (tmp_path / "prefix" / "modules" / "all").glob(f"**/{version}")
        modules[version] = path.read_text().split()
    assert {*VARIABLES, "OF_THE_SITE"} <= set(modules[NEW.version])
    assert not set(VARIABLES) & set(modules["9.9.9"])


SITE = """
site_configuration = {
    "systems": [{"name": "here", "hostnames": [".*"], "modules_system": "nomod", "partitions": [
        {"name": "cpu", "scheduler": "local", "launcher": "mpirun", "environs": ["builtin"]}]}],
    "environments": [{"name": "builtin"}],
}
"""
PROGRAM = """
import os, sys
from mpi4py import MPI
if MPI.COMM_WORLD.rank == 0:
    print("loop time", sys.argv[1], "ms of", MPI.COMM_WORLD.size)
    print("right" if os.environ.get("OMPI_MCA_coll") == "^han" else "wrong")
"""


@pytest.mark.mpi
def test_reframe_runs_the_published_test(open_mpi: Library, tmp_path: Path) -> None:
    """A run as long as the default's has lost the gain; a wrong result counts in no way."""
    tool = environment("reframe")
    (tmp_path / "site.py").write_text(SITE)
    (tmp_path / "a program.py").write_text(PROGRAM)
    answers = {}
    for case, figure, verify in (
        ("fast", "500", "^right"),
        ("lost", "650", "^right"),
        ("wrong", "500", "^wrong"),
    ):
        check = {
            "app": "a",
            "input": None,
            "ranks": 2,
            "program": [sys.executable, "a program.py", figure],
            "metric": r"loop time (\S+) ms",
            "verify": verify,
            "options": ["--oversubscribe", "--allow-run-as-root"],
            "origin": {"directory": str(tmp_path)},
            "proven": {"default_s": 0.6, "setting_s": 0.5, "scale": 0.001},
        }
        test = written("reframe", tmp_path / f"{case}.py", check)
        report = tmp_path / f"{case}.json"
        words = [tool / "reframe", "-C", "site.py", "-c", test, "-r", "--report-file", report]
        subprocess.run(
            [*map(str, words), "--prefix", tmp_path / "stage"],
            cwd=tmp_path,
            env=os.environ
            | {"PATH": f"{open_mpi.bin}:{os.environ['PATH']}", "HOME": str(tmp_path)},
            capture_output=True,
            check=False,
        )
        (session,) = json.loads(report.read_text())["runs"]
        (run,) = session["testcases"]
        answers[case] = (run["result"], run["fail_phase"])
    assert answers == {
        "fast": ("pass", None),
        "lost": ("fail", "performance"),
        "wrong": ("fail", "sanity"),
    }


THICKET = """
import glob, json, sys, thicket
profiles = thicket.Thicket.from_caliper(sorted(glob.glob(sys.argv[1])), disable_tqdm=True)
print(json.dumps({
    "profiles": len(profiles.profile),
    "eager": sorted(profiles.metadata["param.eager"].dropna().unique().tolist()),
    "regions": sorted(profiles.dataframe["name"].dropna().unique().tolist()),
    "longest": float(profiles.dataframe["time (inc)"].max()),
}))
"""


def test_thicket_groups_runs_by_their_settings(tmp_path: Path) -> None:
    tool = environment("thicket")
    with Store.open(tmp_path / "results.db") as store:
        study = store.study(key())
        store.add_run(study.id, None, "default", 0, 0, ok(3.0, metric_s=2.5))
        for value in (4096, 8192):
            trial = store.add_trial(study.id, {"eager": value}, f"eager={value}", {})
            store.add_run(study.id, trial.id, "search", 0, 0, ok(1.0 + value / 4096))
            store.add_run(study.id, trial.id, "search", 0, 0, RunRecord("failed", wall_s=1.0))
        path = export_study(store, study.id, "caliper", tmp_path / "study.zip")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path / "profiles")
    said = ended(
        [tool / "python3", "-c", THICKET, tmp_path / "profiles" / "*.json"], tmp_path, HOME=tmp_path
    )
    assert json.loads(said.splitlines()[-1]) == {
        "profiles": 5,
        "eager": [4096, 8192],
        "regions": ["figure", "launch"],
        "longest": pytest.approx(3.0),
    }


@pytest.mark.mpi
def test_talp_pages_shows_a_traced_run(
    open_mpi: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = environment("talp-pages")
    monkeypatch.chdir(tmp_path)
    runs = tmp_path / "talp" / "jacobi3d"
    runs.mkdir(parents=True)
    words = ["features", "--app", "jacobi3d", "--input", "tiny", "--ranks", "2", "--no-guard"]
    main([*words, "--talp", str(runs / "run-1.json"), "--store", str(tmp_path / "results.db")])
    ended([tool / "talp", "ci-report", "-i", "talp", "-o", "pages", "--no-badge"], tmp_path)
    pages = "".join(page.read_text() for page in (tmp_path / "pages").glob("**/*.html"))
    assert "jacobi3d" in pages
    metrics = json.loads((runs / "run-1.json").read_text())["Application"]["Global"]
    assert 0 < metrics["parallelEfficiency"] <= 1
    assert str(round(metrics["parallelEfficiency"], 2)) in pages


def test_the_node_exporter_serves_the_gauges(tmp_path: Path) -> None:
    program = shutil.which("prometheus-node-exporter")
    if program is None:
        pytest.skip("prometheus-node-exporter not installed")
    (tmp_path / "autotune.prom").write_text(metrics_text(DOCUMENT, 1e9))
    socket = tmp_path / "port"
    words = [program, f"--collector.textfile.directory={tmp_path}", "--collector.disable-defaults"]
    words += ["--collector.textfile", "--web.listen-address=127.0.0.1:0"]
    with socket.open("wb") as log, subprocess.Popen(words, stderr=log, stdout=log) as exporter:
        try:
            served = _served(exporter.pid)
        finally:
            exporter.terminate()
    assert "node_textfile_scrape_error 0" in served, socket.read_text()
    for name in METRICS:
        assert f"\n{name}" in served


def _served(pid: int) -> str:
    """What the process with this id serves on the port that it listens to."""
    import psutil

    for _ in range(100):
        ports = [
            c.laddr.port for c in psutil.Process(pid).net_connections() if c.status == "LISTEN"
        ]
        with suppress(OSError):
            if ports:
                with urllib.request.urlopen(f"http://127.0.0.1:{ports[0]}/metrics") as answer:
                    return str(answer.read().decode())
        time.sleep(0.1)
    raise AssertionError("the exporter serves nothing")
