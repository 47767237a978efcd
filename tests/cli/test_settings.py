"""Settings as they are typed: any parameter, files of parameters, what has no effect here."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from autotune.measurement.budget import SearchPlan
from autotune.publish.tune_file import tune_text
from autotune.space import Setting, load_space
from autotune.store import Store
from runner.mpi.library import Library
from tests.cli.conftest import Cli
from tests.mpis import built, library_named

pytestmark = pytest.mark.mpi
RUN = ("run", "-n", "2", "--no-guard", "--store", "r.db")


def state(work: Path, name: str) -> str:
    run = json.loads((work / "run.json").read_text())["run"]
    return str(run["read_back"][name]["state"])


@pytest.fixture(params=["openmpi-4.1", "openmpi-5"])
def mpi(request: pytest.FixtureRequest) -> Library:
    return library_named(request.param)


ONE = pytest.mark.parametrize(
    "mpi", [pytest.param("openmpi-4.1", marks=pytest.mark.slow), "openmpi-5"], indirect=True
)
"""For what both read back in the same way."""


def test_the_file_that_autotune_writes_is_read(cli: Cli, work: Path, mpi: Library) -> None:
    """With what the space implies, which stands in the file too."""
    space = load_space("openmpi", mpi, {"ranks": 2, "cores": 2, "nodes": 1})
    eager = next(name for name in space.names if name.endswith("_eager_limit"))
    setting = Setting({eager: 8192, "coll_tuned_allreduce_algorithm": 4})
    values = space.launched(setting)["mca"]
    assert len(values) > len(setting)
    (work / "autotune-s.conf").write_text(tune_text(values, ["autotune: a setting"]))
    words = (*RUN, "--mpi", mpi.launcher, "--json", "run.json", "--setting", "@autotune-s.conf")
    outcome = cli(*words, "--", built(mpi, work))
    assert outcome.code == 0, outcome.text
    assert Setting(json.loads((work / "run.json").read_text())["setting"]) == setting
    assert state(work, eager) == "in force"  # data


def test_a_parameter_of_no_space_is_launched(cli: Cli, work: Path, mpi: Library) -> None:
    """Also one that the cluster's own launch options set otherwise."""
    program = built(mpi, work)
    words = (*RUN, "--mpi", mpi.launcher, "--json", "run.json", "--setting")
    outcome = cli(*words, 'btl="tcp,self",btl_tcp_links=2', "--", program)
    assert outcome.code == 0, outcome.text
    assert state(work, "btl") == "in force"  # data
    assert state(work, "btl_tcp_links") == "in force"  # data


@ONE
def test_tcp_on_one_node_is_not_measured(cli: Cli, work: Path, mpi: Library) -> None:
    words = ("compare", "default", "btl_tcp_links=2", "-n", "2", "--no-guard", "--store", "r.db")
    outcome = cli(*words, "--mpi", mpi.launcher, "--", built(mpi, work))
    assert outcome.code == 1
    assert "[compare.fails]" in outcome.err
    assert "btl_tcp_links=2" in outcome.err
    assert "btl/tcp" in outcome.err
    with Store.open("r.db") as store:
        assert len(store.runs(1)) == 3


def test_what_is_listed_late_is_tried(cli: Cli, work: Path) -> None:
    """Open MPI lists these only once a component that uses UCX is open."""
    mpi = library_named("openmpi-4.1")
    parts = subprocess.run([f"{mpi.bin}/ompi_info"], capture_output=True, text=True, check=True)
    if "MCA pml: ucx" not in parts.stdout:  # data
        pytest.skip("no openmpi-4.1 on PATH: none with UCX")
    program = built(mpi, work)
    words = (*RUN, "--mpi", mpi.launcher, "--json", "run.json", "--setting")
    late = "opal_common_ucx_tls=any,opal_common_ucx_devices=any"
    used = cli(*words, f"pml=ucx,{late}", "--", program)
    assert used.code == 0, used.text
    assert state(work, "opal_common_ucx_tls") == "in force"  # data
    assert "pml_ucx_tls" not in used.out.partition("inherited")[2]
    assert cli(*words, f"pml=ob1,{late}", "--", program).code == 0
    assert state(work, "opal_common_ucx_tls") == "inactive"


def test_a_deselected_component_is_inactive(
    cli: Cli, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mpi = library_named("openmpi-4.1")
    monkeypatch.setenv("OMPI_MCA_pml", "^ucx")
    words = (*RUN, "--mpi", mpi.launcher, "--json", "run.json", "--setting", "pml_ucx_priority=3")
    done = cli(*words, "--", built(mpi, work))
    assert done.code == 0, done.text
    assert state(work, "pml_ucx_priority") == "inactive"


def test_what_starts_at_once_and_fails_is_told(cli: Cli, work: Path) -> None:
    mpi = library_named("openmpi-4.1")
    program = built(mpi, work)
    words = ("compare", "default", "pml=nosuch", "--runs", "4", "-n", "1", "--no-guard")
    outcome = cli(*words, "--mpi", mpi.launcher, "--", program)
    assert outcome.code == 1
    assert "[compare.fails]" in outcome.err


@ONE
@pytest.mark.parametrize(
    ("setting", "code", "words"),
    [
        ("nosuch_thing=3", 1, "nosuch_thing"),
        ("btl_tcp_link=2", 2, "btl_tcp_links"),
        ("mca_base_component_path=/tmp", 2, "mca_base_component_path"),
        ("UCX_TLS=sm", 0, "UCX_TLS=sm"),
    ],
)
def test_what_is_said_of_a_name(
    cli: Cli, work: Path, mpi: Library, setting: str, code: int, words: str
) -> None:
    program = built(mpi, work)
    outcome = cli(*RUN, "--mpi", mpi.launcher, "--setting", setting, "--", program)
    assert outcome.code == code, outcome.text
    if "pml=^ucx" in outcome.text:  # Debian's parameter file: the value is left out at once.
        return
    assert words in " ".join(outcome.text.split())


MAPPED_SPACE = """
description = "a transport that carries nothing on one node, and binding"
library = "openmpi>=4.1"
[parameters.btl_tcp_links]
levels = [2, 4]
[parameters.bind_to]
levels = ["none"]
"""


def test_what_is_inactive_is_known_under_its_conditions_alone(
    cli: Cli, open_mpi: object, mpi_shell: str, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each binding shows for itself that TCP carries nothing, once."""
    # A run that is ended at its limit, on a busy machine, shows nothing.
    monkeypatch.setattr(SearchPlan, "run_limit_s", lambda *_: None)
    (work / "mapped.toml").write_text(MAPPED_SPACE)
    done = cli(
        "search", "--space", "./mapped.toml", "--strategy", "exhaustive", "--min-gain", "40",
        "--runs", "60", "--no-guard", "-n", "2", "--store", "r.db", "--json", "r.json",
        "--metric", "seconds (.*)", "--", mpi_shell, "echo seconds 0.5",
    )  # fmt: skip
    assert done.code == 0, done.text
    with Store.open("r.db") as store:
        runs = store.runs(1)
    tried = {run.setting_key for run in runs if "links" in run.setting_key}
    assert len(tried) == 2
    assert sum("bind_to" in key for key in tried) == 1
    notes = {n["code"]: n["data"] for n in json.loads((work / "r.json").read_text())["warnings"]}
    assert "btl_tcp_links" in notes["parameters.no_effect"]["parameters"]
