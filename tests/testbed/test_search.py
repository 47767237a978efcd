"""A testbed as the cluster of a search, by whatever name it is up."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from autotune.cli import main
from autotune.config.cluster import cluster_names, load_cluster, read_cluster
from autotune.errors import UsageError
from autotune.space.outside_names import check_config_name
from autotune.store import Store
from runner import testbed as tb
from runner.errors import RunnerError
from runner.mpi.library import Library
from runner.outcome import WAITS_FOR_INPUT
from runner.testbed import state
from tests.cli.test_standard_input import READS
from tests.mpis import built
from tests.refusals import refused

Capture = pytest.CaptureFixture[str]
README = Path(__file__).parents[2] / "README.md"
UP = ["testbed", "up", "--nodes", "2", "--latency", "0", "--rate", "unlimited"]


@pytest.fixture
def record(places: Path) -> Path:
    """What is left of a testbed called lab that was ended."""
    place = state.directory("lab")
    place.mkdir(parents=True)
    return place


def test_a_testbed_is_a_cluster_of_its_name(record: Path, work: Path) -> None:
    cluster = read_cluster("lab")
    assert (cluster.name, cluster.testbed) == ("lab", "lab")
    assert cluster.fixed == read_cluster("testbed").fixed
    assert "lab" in cluster_names()
    assert check_config_name("clusters", "lab", "here") == "lab"
    with refused(RunnerError, "testbed.down") as down:
        load_cluster("lab")
    assert "up --nodes 2 --latency 1ms --rate 1gbit --name lab" in str(down.value)  # data


def test_a_definition_of_the_name_comes_first(record: Path, work: Path) -> None:
    own = work / "configs" / "clusters" / "lab.toml"
    own.parent.mkdir(parents=True)
    own.write_text("name = 'lab'\nnodes = 1\n")
    assert read_cluster("lab").testbed is None


@pytest.mark.parametrize("name", ["lba", "../lab", "lab.toml"])
def test_a_name_that_is_none_is_said(record: Path, work: Path, name: str) -> None:
    with pytest.raises(UsageError) as refusal:
        read_cluster(name)
    said = str(refusal.value)
    assert ("lab" in re.findall(r"[\w./]+", said)) == (name == "lba")
    assert ("autotune testbed up --name lba" in said) == (name == "lba")  # data


def test_a_testbed_is_not_called_like_another_cluster(capfd: Capture, work: Path) -> None:
    assert main([*UP, "--name", "local"]) == 2
    said = capfd.readouterr().err
    assert "[cluster.name_taken]" in said
    assert "local.toml" in said


@pytest.mark.mpi
def test_a_testbed_of_another_name_is_searched(
    new_name: Callable[[], str], open_mpi: Library, work: Path, capfd: Capture
) -> None:
    name = new_name()
    assert main([*UP, "--name", name]) == 0
    said = capfd.readouterr().out
    assert f"autotune search --cluster {name} --ranks 2 -- PROGRAM ARGS" in said  # data
    assert main(["cluster", "list"]) == 0
    assert re.search(rf"^{name} +2 A testbed that is up: TCP, 0 ms", capfd.readouterr().out, re.M)
    assert main(["cluster", "show", name]) == 0
    assert re.search(r"nodes +2; 2 cores in all *\n", capfd.readouterr().out), "none is shared"
    # One run on both nodes is enough to see it: the budget holds no search of what sleeps.
    program = ["sh", "-c", f"sleep 0.5; {built(open_mpi, work)}"]
    words = ["search", "--cluster", name, "--ranks", "2", "--budget", "8s", "--no-guard"]
    assert main([*words, "--store", "results.db", "--", *program]) == 1
    assert "[budget.too_small]" in capfd.readouterr().err
    with Store.open("results.db") as opened:
        (found,) = opened.studies()
        study = opened.find_study(found.hash)
        first = opened.runs(study.id)[0].record
    assert study.key.cluster == name
    assert first.state == "ok", first.reason
    assert tb.find_testbed(name).directory in " ".join(first.command)


@pytest.mark.mpi
@pytest.mark.slow
def test_standard_input_reaches_rank_0_on_its_node(
    new_name: Callable[[], str], open_mpi: Library, work: Path, capfd: Capture
) -> None:
    """Whole, to rank 0 alone; where there is none, it is said, though the daemon of the node and
    not the launcher holds the pipe."""
    program = built(open_mpi, work, READS)
    name = new_name()
    (work / "large input").write_text("7\n" + "x" * 3_000_000)
    assert main([*UP, "--name", name]) == 0
    words = ["--cluster", name, "-n", "2", "--no-guard", "--store", "results.db"]
    given = ["--stdin", "large input", "--verify", "steps 7, 3000001 bytes"]
    assert main(["run", *words, *given, "--json", "r.json", "--", str(program)]) == 0
    run = json.loads((work / "r.json").read_text())["run"]
    assert run["verified"] is True
    assert tb.find_testbed(name).directory in shlex.join(run["command"])
    found = ["--metric", "time ([0-9.]+)", "--runs", "40"]
    line = ["search", *words, *given, *found, "--", str(program)]
    assert main(line) == 0, capfd.readouterr().err
    capfd.readouterr()
    assert main([*line[:1], "--space", "null", *line[1:]]) == 2
    assert "[space.nothing_varies]" in capfd.readouterr().err
    assert main(["run", *words, "--timeout", "20", "--", str(program)]) == 1
    said = " ".join(capfd.readouterr().out.split())
    if open_mpi.version_tuple >= (5,):
        assert WAITS_FOR_INPUT in said
    assert "--stdin FILE" in said


@pytest.mark.mpi
@pytest.mark.slow
def test_the_search_of_the_readme_ends_in_minutes(
    rights: None, open_mpi: Library, work: Path, capfd: Capture
) -> None:
    (line,) = re.findall(r"^autotune testbed up && .*$", README.read_text(), re.MULTILINE)
    up, search = (shlex.split(part, comments=True)[1:] for part in line.split("&&"))
    try:
        assert main(up) == 0
        assert main([*search, "--no-guard", "--store", "results.db"]) == 0, capfd.readouterr().err
    finally:
        tb.down()
    with Store.open("results.db") as opened:
        (found,) = opened.studies()
        walls = [run.record.wall_s for run in opened.runs(opened.find_study(found.hash).id)]
    assert len(walls) > 60
    assert sum(walls[:-1]) < 300
