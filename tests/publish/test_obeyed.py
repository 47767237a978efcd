"""Real launches decide what is published: obeyed files come into place, others leave no trace."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from autotune.cli import main
from autotune.collective_rules import Rule
from autotune.config.cluster import load_cluster
from autotune.errors import UsageError
from autotune.publish.content import Content
from autotune.publish.formats import Format, find, usual
from autotune.publish.probe import Prober
from autotune.publish.tune_file import NotObeyed
from runner.launch import Runner
from runner.mpi.library import Library
from runner.types import LaunchSpec, RunRecord
from tests.publish.conftest import MakeStudy
from tests.refusals import refused

pytestmark = pytest.mark.mpi
BCAST = Content(rules=(Rule("bcast", 1, 0, "6"),))


@pytest.fixture
def prober(open_mpi: Library, home: Path) -> Iterator[Prober]:
    with Prober(open_mpi, load_cluster("local")) as found:
        yield found


def prove(prober: Prober, fmt: Format, content: Content, broken: str = "") -> str:
    def stage(shown: Content) -> str:
        text = fmt.prologue + fmt.render(shown, prober.library)
        return text.replace(broken, "", 1) if broken else text

    return prober.prove(fmt, content, stage)


@pytest.fixture
def version(open_mpi: Library) -> str:
    return open_mpi.version


def eager(library: Library) -> str:
    return "btl_sm_eager_limit" if library.version_tuple >= (5,) else "btl_vader_eager_limit"


def test_the_layout_of_runtimes_is_seen_in_every_rank(prober: Prober) -> None:
    layout = Content({"env": {"MATE_FACTOR": "8", "MATE_CHUNK": "65536"}})
    assert prove(prober, find("sh"), layout)
    with refused(NotObeyed, "publish.not_obeyed"):
        prove(prober, find("sh"), layout, broken="8")


def test_a_users_file_is_published_found_in_force_and_undone(
    open_mpi: Library,
    home: Path,
    make_study: MakeStudy,
    version: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    conf = home / ".openmpi" / "mca-params.conf"
    conf.parent.mkdir()
    conf.write_text("btl_tcp_links = 1\n")
    source = make_study({"mca": {eager(open_mpi): "8192"}}, version=version)
    assert main(["publish", "--from", source, "-f", "openmpi-user", "--json", "-"]) == 0
    (made,) = json.loads(capfd.readouterr().out)["files"]
    assert made["path"] == str(conf)
    assert f"{eager(open_mpi)} = 8192\n" in conf.read_text()
    with conf.open("a") as file:
        file.write("btl_tcp_links = 2\n")  # A line of theirs below is no change of ours.
    assert main(["verify-published", "--no-compare", "--json", "-"]) == 0
    seen = json.loads(capfd.readouterr().out)
    assert seen["ok"]
    assert seen["files"][0]["in_force"] is True
    conf.write_text(conf.read_text().replace("8192", "4096"))
    assert main(["verify-published", "--no-compare"]) == 1
    assert "edited" in capfd.readouterr().out
    assert main(["unpublish", "--all"]) == 2
    assert main(["unpublish", "--all", "--force"]) == 0
    assert conf.read_text() == "btl_tcp_links = 1\nbtl_tcp_links = 2\n"


def test_what_is_overruled_in_place_is_rolled_back(
    open_mpi: Library,
    home: Path,
    make_study: MakeStudy,
    version: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    source = make_study({"mca": {eager(open_mpi): "8192"}}, version=version)
    monkeypatch.setenv(f"OMPI_MCA_{eager(open_mpi)}", "1024")
    assert main(["publish", "--from", source, "-f", "openmpi-user"]) == 1
    said = capfd.readouterr().err
    assert "8192 became 1024" in said
    assert "environment" in said
    assert not [p for p in home.rglob("*") if p.is_file()]


def test_a_name_that_the_library_does_not_have_is_not_obeyed(prober: Prober) -> None:
    with pytest.raises(NotObeyed, match="btl_sm_egaer_limit"):
        prove(prober, find("openmpi-user"), Content({"mca": {"btl_sm_egaer_limit": "8192"}}))


@pytest.mark.slow
def test_a_rules_file_is_obeyed_to_its_end(prober: Prober) -> None:
    """In short: ``test_own_table.py``."""
    assert find("rules-v1").canaries(BCAST, prober.library)
    assert prove(prober, find("rules-v1"), BCAST)


def test_a_truncated_rules_file_is_found_out(prober: Prober) -> None:
    """The library itself ignores it in silence."""
    with refused(NotObeyed, "publish.not_obeyed"):
        prove(prober, find("rules-v1"), BCAST, broken="1 # communicator sizes\n")


@pytest.mark.parametrize("name", ["prte-user", pytest.param("prte-system", marks=pytest.mark.slow)])
def test_a_binding_is_seen_through_the_runtimes_file(prober: Prober, name: str) -> None:
    if prober.library.version_tuple < (5,):
        pytest.skip("PRRTE comes with Open MPI 5")
    if name == "prte-system":
        content = Content({"placement": {"map_by": "slot"}})
    else:
        content = Content({"placement": {"bind_to": "none"}})
    assert find(name).canaries(content, prober.library)
    assert prove(prober, find(name), content)


def test_a_runtime_parameter_that_nothing_shows_is_refused(prober: Prober) -> None:
    with refused(NotObeyed, "publish.not_obeyed"):
        prove(prober, find("prte-user"), Content({"prte": {"prte_unseen": "1"}}))


def test_a_script_that_sets_more_than_it_says_is_refused(prober: Prober) -> None:
    fmt = find("sh")
    content = Content({"mca": {eager(prober.library): "8192"}})

    def stage(shown: Content) -> str:
        return fmt.render(shown, prober.library) + "export EXTRA=1\n"

    with refused(NotObeyed, "publish.not_obeyed"):
        prober.prove(fmt, content, stage)


@pytest.mark.parametrize("at", [1, 2])
def test_ctrl_c_during_a_launch_leaves_everything_as_it_was(
    open_mpi: Library,
    home: Path,
    make_study: MakeStudy,
    version: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    at: int,
) -> None:
    """Pressed while the private copy (1) or the file in place (2) is being loaded."""
    conf = home / ".openmpi" / "mca-params.conf"
    conf.parent.mkdir()
    conf.write_text("btl_tcp_links = 1\n")
    real, calls = Runner.run, []

    def run(runner: Runner, spec: LaunchSpec) -> RunRecord:
        calls.append(spec)
        if len(calls) == at:
            assert (conf.read_text() != "btl_tcp_links = 1\n") == (at == 2)
            raise KeyboardInterrupt
        return real(runner, spec)

    monkeypatch.setattr(Runner, "run", run)
    source = make_study({"mca": {eager(open_mpi): "8192"}}, version=version)
    assert main(["publish", "--from", source, "-f", "openmpi-user"]) == 130
    assert "Traceback" not in capfd.readouterr().err
    assert [p for p in home.rglob("*") if p.is_file()] == [conf]
    assert conf.read_text() == "btl_tcp_links = 1\n"


def test_two_ranks_are_probed_on_each_node(
    open_mpi: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one a node, shared memory would not be used, and nothing about it in force."""
    specs: list[LaunchSpec] = []
    place = load_cluster("local").model_copy(update={"nodes": 2, "cores_per_node": 1})
    with Prober(open_mpi, place) as prober:

        def seen(spec: LaunchSpec) -> RunRecord:
            specs.append(spec)
            return RunRecord("ok")

        monkeypatch.setattr(prober.runner, "run", seen)
        tune = find("tune")
        content = Content({"mca": {"btl_sm_eager_limit": "8192"}})
        loading = tune.stage(tune.render(content, open_mpi), tmp_path, open_mpi)
        prober.run(loading, content, tune, "allreduce", 2)
        rule = Rule("bcast", 2, 0, "1")
        prober.run(loading, Content(rules=(rule,)), find("rules-v1"), "bcast", 3)
    assert [spec.ranks for spec in specs] == [4, 3]


def test_without_a_format_the_user_s_own_files_hold_everything(open_mpi: Library) -> None:
    def named(content: Content) -> list[str]:
        return [fmt.name for fmt in usual(content, open_mpi)]

    values = {"mca": {"coll_tuned_bcast_algorithm": "6"}}
    assert named(Content(values)) == ["openmpi-user"]
    assert named(Content(rules=(Rule("bcast", 2, 0, "1"),))) == ["rules-v1", "openmpi-user"]
    placed = Content({"placement": {"map_by": "node"}} | values)
    both = ["openmpi-user", "prte-user"] if open_mpi.version_tuple >= (5,) else ["openmpi-user"]
    assert named(placed) == both
    variable = Content({"env": {"OMP_NUM_THREADS": "1"}})
    if open_mpi.version_tuple >= (5,):
        assert named(variable) == ["openmpi-user"]
    else:  # 4.1 refuses its list of variables beside an option -x.
        with pytest.raises(UsageError, match="OMP_NUM_THREADS"):
            usual(variable, open_mpi)
    with pytest.raises(UsageError, match="FI_PROVIDER"):
        usual(Content({"env": {"FI_PROVIDER": "tcp;ofi_rxm"}}), open_mpi)


UCX = {"pml": "ucx", "pml_ucx_tls": "any", "pml_ucx_devices": "any"}


@pytest.mark.parametrize(
    "name", [pytest.param("openmpi-user", marks=pytest.mark.slow), "openmpi-system", "sh"]
)
def test_a_variable_is_seen_in_the_ranks(prober: Prober, home: Path, name: str) -> None:
    """The ranks have the variable, and the library's own parameters beside it are in force.

    A system file is seen in a private copy though the own file, which wins over it, says otherwise.
    """
    own = home / ".openmpi" / "mca-params.conf"
    own.parent.mkdir()
    own.write_text(f"{eager(prober.library)} = 16384\n")
    if prober.library.version_tuple < (5,) and name.startswith("openmpi"):
        pytest.skip("4.1 refuses its list of variables beside an option -x")
    fmt = find(name)
    mca = UCX if name == "openmpi-user" else {eager(prober.library): "8192"} | UCX
    content = Content({"mca": mca, "env": {"UCX_RNDV_THRESH": "16384", "OMP_NUM_THREADS": "1"}})
    assert prove(prober, fmt, content).startswith(f"{len(mca) + 2} ")


def test_a_variable_that_does_not_arrive_is_refused(prober: Prober) -> None:
    fmt = find("sh")
    content = Content({"env": {"OMP_NUM_THREADS": "1"}})

    def stage(shown: Content) -> str:
        return "export OMP_NUM_THREADS=2\n"

    with pytest.raises(NotObeyed, match="OMP_NUM_THREADS"):
        prober.prove(fmt, content, stage)
