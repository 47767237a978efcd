"""Intel MPI's files, obeyed by a real Intel MPI where there is one (AUTOTUNE_IMPI)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.api.target import find_target
from autotune.cli import main
from autotune.collective_rules import Rule
from autotune.config.cluster import load_cluster
from autotune.publish.content import Content
from autotune.publish.formats import find, usual
from autotune.publish.formats.scripts import Script
from autotune.publish.probe import Prober
from autotune.publish.tune_file import NotObeyed
from autotune.store import MpiInfo
from autotune.targets.request import TargetRequest
from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from tests.case_table import case_table
from tests.mpis import library_named
from tests.publish.conftest import MakeStudy

BCAST, SITE = "I_MPI_ADJUST_BCAST", "I_MPI_ADJUST_BARRIER"
ABSENT = Library("impi", "2021.18.1", "/opt/impi/bin", "/opt/impi/bin/mpirun")
CONTENT = Content(
    {
        "mca": {BCAST: "3", "btl_sm_eager_limit": "1"},
        "placement": {"bind_to": "none", "map_by": "core"},
        "env": {"OMP_PROC_BIND": "close"},
    }
)


@pytest.mark.parametrize(
    ("name", "line"),
    [("impi-user", f"-genv {BCAST} 3\n"), ("impi-env", f"export {BCAST}='3'\n")],
)
def test_a_file_has_what_the_library_reads(name: str, line: str) -> None:
    fmt = find(name)
    part = fmt.part(CONTENT, ABSENT)
    assert part.names == {("mca", BCAST), ("placement", "bind_to"), ("env", "OMP_PROC_BIND")}
    text = fmt.render(part, ABSENT)
    assert line in text
    assert "I_MPI_PIN" in text
    assert text.count("\n") == 3


TABLE = Content(rules=(Rule("bcast", 2, 0, "3"), Rule("bcast", 2, 4096, "4")))


@case_table("name", ["impi-user", "impi-env", "sh", "lmod"])
def test_a_table_is_the_value_of_a_variable(name: str) -> None:
    fmt = find(name)
    part = fmt.part(TABLE, ABSENT)
    assert part == TABLE
    assert "3:0-4095;4:4096-2147483647" in fmt.render(part, ABSENT)
    assert [fmt.name for fmt in usual(TABLE, ABSENT)] == ["impi-user"]


def test_the_file_of_the_user_is_the_usual_one(home: Path) -> None:
    assert [fmt.name for fmt in usual(CONTENT, ABSENT)] == ["impi-user"]
    assert find("impi-user").default_path("local", ABSENT) == home / ".mpiexec.conf"


@pytest.fixture
def impi() -> Library:
    return library_named("impi")


@pytest.fixture
def prober(impi: Library, home: Path) -> Iterator[Prober]:
    with Prober(impi, load_cluster("local")) as found:
        yield found


@pytest.mark.mpi
class TestObeyed:
    @pytest.mark.parametrize("name", ["impi-user", "sh"])
    def test_a_table_is_read_back(self, prober: Prober, name: str) -> None:
        fmt = find(name)
        seen = prober.prove(fmt, TABLE, lambda c: fmt.prologue + fmt.render(c, prober.library))
        assert seen.startswith("1 ")
        wrong = Content(rules=(Rule("bcast", 2, 0, "99"),))
        with pytest.raises(NotObeyed, match=BCAST):
            prober.prove(fmt, wrong, lambda c: fmt.prologue + fmt.render(c, prober.library))

    @pytest.mark.parametrize("name", ["impi-user", "impi-env", "sh", "slurm", "tcl", "html"])
    def test_variables_are_seen_in_force(self, prober: Prober, name: str) -> None:
        fmt = find(name)
        if fmt.obstacle(prober.library):
            pytest.skip(str(fmt.obstacle(prober.library)))
        content = Content({"mca": {BCAST: "3", "I_MPI_SHM_EAGER_THRESHOLD": "4096"}})
        said = prober.prove(fmt, content, lambda c: fmt.prologue + fmt.render(c, prober.library))
        assert said.startswith("2 ")

    @pytest.mark.parametrize("name", ["impi-user", "impi-env"])
    @pytest.mark.parametrize(
        ("variable", "value"),
        [(BCAST, "99"), ("I_MPI_NO_SUCH_THING", "1"), ("I_MPI_SHM", "nonsense")],
    )
    def test_what_the_library_does_not_use_is_refused(
        self, prober: Prober, name: str, variable: str, value: str
    ) -> None:
        fmt, content = find(name), Content({"mca": {variable: value}})
        with pytest.raises(NotObeyed, match=variable):
            prober.prove(fmt, content, lambda c: fmt.render(c, prober.library))

    @pytest.mark.parametrize("name", ["impi-user", "sh"])
    def test_a_binding_is_said_and_seen(self, prober: Prober, name: str) -> None:
        fmt, content = find(name), Content({"placement": {"bind_to": "core"}})
        assert fmt.canaries(content, prober.library)
        assert prober.prove(fmt, content, lambda c: fmt.render(c, prober.library))


@pytest.mark.mpi
def test_a_script_sets_nothing_under_another_version(impi: Library, tmp_path: Path) -> None:
    fmt, content = find("impi-env"), Content({"mca": {BCAST: "3"}})
    assert isinstance(fmt, Script)
    path = tmp_path / "f.sh"
    for version, wanted in ((impi.version, {BCAST: "3"}), ("2019.9", {})):
        library = replace(impi, version=version)
        path.write_text(fmt.with_version_check(fmt.render(content, library), library))
        assert fmt.live(path, impi).env == wanted


@pytest.mark.mpi
@pytest.mark.parametrize("lines", ["", "# ours\n", f"-genv {SITE} 2\n"])
def test_published_out_of_the_default_in_force_and_undone(
    impi: Library,
    home: Path,
    make_study: MakeStudy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    lines: str,
) -> None:
    """The site's own lines stay in the file, and in the default that is measured."""
    monkeypatch.chdir(tmp_path)
    made = home / ".mpiexec.conf"
    if lines:
        made.write_text(lines)
    source = make_study({"mca": {BCAST: "3"}}, mpi=MpiInfo("impi", impi.version))
    given = ["--mpi", impi.launcher]
    assert main(["publish", "--from", source, *given, "--json", "-"]) == 0, capfd.readouterr().err
    (file,) = json.loads(capfd.readouterr().out)["files"]
    assert (file["path"], file["proven"]) == (str(made), True)
    assert f"-genv {BCAST} 3\n" in made.read_text()

    target = find_target(TargetRequest(app="micro", input="pingpong-8", ranks=2, mpi=impi.bin))
    expected = {f"{made}:{SITE}": "2"} if SITE in lines else {}
    assert target.inherited_settings(adapter(target.library)) == expected
    with Runner(adapter(impi), guard=False) as runner:
        record = runner.run(target.spec(None))
    assert record.valid, record.reason
    assert set(record.inherited) == ({SITE} if SITE in lines else set())

    capfd.readouterr()
    assert main(["verify-published", "--no-compare", *given, "--json", "-"]) == 0
    assert json.loads(capfd.readouterr().out)["files"][0]["in_force"] is True
    assert main(["unpublish", str(made)]) == 0
    assert (made.read_text() if made.exists() else "") == lines
