"""MPICH's files: the tree as text anywhere, and obeyed by a real MPICH where there is one.

It is the tests' own (:mod:`tests.mpi_environments`); slow tests try the distribution's, too.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from autotune.cli import main
from autotune.collective_rules import Rule
from autotune.collectives.algorithm_tables import TABLES, CollectiveResult, TablePart
from autotune.collectives.table_proof import SizeEvidence
from autotune.config.cluster import load_cluster
from autotune.dialects.mpich_trees import (
    FILE,
    GENERAL_LAYER,
    LAYERS_FILE,
    changed_layers,
    changed_tree,
)
from autotune.errors import UsageError
from autotune.publish.content import Content
from autotune.publish.formats import Format, find
from autotune.publish.formats.base import Loading
from autotune.publish.probe import Prober
from autotune.publish.publication import publish_files
from autotune.publish.tune_file import NotObeyed
from autotune.publish.verify import look
from autotune.store import MpiInfo
from autotune.testing.format import plan_file
from runner.launch import Runner
from runner.machine import describe_machine
from runner.mpi.discover import adapter
from runner.mpi.hydra import python_variables, shared_library
from runner.mpi.library import Library, ParamInfo
from runner.mpi.mpich_tree import builtin_tree
from runner.types import LaunchSpec
from tests.mpis import library_named, on_path
from tests.publish.conftest import MakeStudy
from tests.publish.test_trust import forged
from tests.refusals import refused

BINOMIAL, RING = "MPIR_Bcast_intra_binomial", "MPIR_Bcast_intra_scatter_ring_allgather"
POW2 = "MPIR_Allgather_intra_recursive_doubling"
BASE: dict[str, Any] = {
    "collective=bcast": {
        "comm_type=intra": {f"algorithm={BINOMIAL}": {}},
        "comm_type=inter": {"algorithm=MPIR_Bcast_inter_remote_send_local_bcast": {}},
    },
    "collective=allgather": {
        "comm_type=intra": {
            "comm_size=pow2": {f"algorithm={POW2}": {}},
            "comm_size=any": {"algorithm=MPIR_Allgather_intra_ring": {}},
        }
    },
    "collective=barrier": {
        "comm_type=intra": {"algorithm=MPIR_Barrier_intra_k_dissemination": {"k=2": {}}}
    },
}
NAMES = {
    "bcast": BINOMIAL,
    "reduce": "MPIR_Reduce_intra_binomial",
    "allreduce": "MPIR_Allreduce_intra_recursive_doubling",
}
ALLREDUCE = "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM"


def intra(*rules: Rule) -> Any:
    return changed_tree(BASE, rules)[f"collective={rules[0].collective}"]["comm_type=intra"]


def test_the_rest_of_the_tree_stays() -> None:
    tree = changed_tree(BASE, (Rule("bcast", 1, 0, RING),))
    assert tree["collective=allgather"] == BASE["collective=allgather"]
    assert tree["collective=bcast"] == {
        "comm_type=intra": {f"algorithm={RING}": {}},
        "comm_type=inter": BASE["collective=bcast"]["comm_type=inter"],
    }


def test_a_rule_holds_from_its_sizes_on() -> None:
    before = {f"algorithm={BINOMIAL}": {}}
    found = intra(Rule("bcast", 4, 1024, RING), Rule("bcast", 8, 0, RING))
    assert list(found) == ["comm_size<4", "comm_size<8", "comm_size=any"]
    assert found["comm_size<4"] == before
    assert found["comm_size<8"] == {
        "avg_msg_size<1024": before,
        "avg_msg_size=any": {f"algorithm={RING}": {}},
    }
    assert found["comm_size=any"] == {f"algorithm={RING}": {}}


def test_an_algorithm_keeps_the_conditions_it_needs() -> None:
    assert intra(Rule("allgather", 1, 0, POW2)) == {
        "comm_size=pow2": {f"algorithm={POW2}": {}},
        "comm_size=any": BASE["collective=allgather"]["comm_type=intra"],
    }


def test_an_algorithm_of_two_levels_does_not_call_itself() -> None:
    found = intra(Rule("bcast", 1, 0, "MPIR_Bcast_intra_smp"))
    assert found == {
        "comm_hierarchy=parent": {"algorithm=MPIR_Bcast_intra_smp": {}},
        "comm_hierarchy=any": {f"algorithm={BINOMIAL}": {}},
    }


def test_an_algorithm_keeps_its_parameters() -> None:
    name = "MPIR_Barrier_intra_k_dissemination"
    assert intra(Rule("barrier", 1, 0, name)) == {f"algorithm={name}": {"k=2": {}}}


def test_a_rule_may_leave_its_sizes_to_the_library() -> None:
    before = {f"algorithm={BINOMIAL}": {}}
    found = intra(Rule("bcast", 2, 0, "0"), Rule("bcast", 2, 64, RING), Rule("bcast", 3, 0, "0"))
    assert found["comm_size<3"]["avg_msg_size<64"] == found["comm_size=any"] == before


def test_sizes_are_those_of_all_ranks_where_the_library_has_no_others() -> None:
    found = intra(
        Rule("allgather", 1, 0, "0"), Rule("allgather", 1, 64, "MPIR_Allgather_intra_ring")
    )
    assert list(found) == ["total_msg_size<64", "total_msg_size=any"]


def test_a_reduction_gets_an_algorithm_of_unknown_conditions_in_the_plainest_case_only() -> None:
    before = {f"algorithm={NAMES['allreduce']}": {}}
    ring = "MPIR_Allreduce_intra_ring"
    tree = changed_tree(
        {"collective=allreduce": {"comm_type=intra": before}}, (Rule("allreduce", 1, 0, ring),)
    )
    found = tree["collective=allreduce"]["comm_type=intra"]
    assert found["is_commutative=no"] == before
    assert found["is_commutative=yes"]["is_op_built_in=no"] == before
    assert found["is_commutative=yes"]["is_op_built_in=yes"] == {
        "count<pow2": before,
        "count=any": {f"algorithm={ring}": {}},
    }


def test_parameters_are_those_of_the_rule_or_of_the_variables() -> None:
    tree = "MPIR_Bcast_intra_pipelined_tree"
    params = {
        name: ParamInfo(name, "int", value)
        for name, value in {
            "MPIR_CVAR_BCAST_TREE_KVAL": "2",
            "MPIR_CVAR_BCAST_TREE_TYPE": "kary",
            "MPIR_CVAR_BCAST_TREE_PIPELINE_CHUNK_SIZE": "8192",
        }.items()
    }
    made = changed_tree(BASE, (Rule("bcast", 1, 0, tree, 4),), params)
    (found,) = made["collective=bcast"]["comm_type=intra"].values()
    assert found == {"tree_type=kary": {}, "k=4": {}, "chunk_size=8192": {}}


def test_layers_change_on_one_node_only() -> None:
    before = {"composition=MPIDI_Bcast_intra_composition_alpha": {}}
    layers = {"collective=bcast": {"comm_type=intra": before}, "collective=scan": {}}
    rules = (Rule("bcast", 2, 0, "0"), Rule("bcast", 2, 64, RING), Rule("scan", 2, 0, "MPIR_x"))
    found = changed_layers(layers, rules)
    assert found["collective=scan"] == {}
    assert found["collective=bcast"]["comm_type=intra"] == {
        "comm_size=node_comm_size": {
            "comm_size<2": before,
            "comm_size=any": {
                "avg_msg_size<64": before,
                "avg_msg_size=any": {"composition=MPIDI_Bcast_intra_composition_gamma": {}},
            },
        },
        "comm_size=any": before,
    }


def test_a_collective_that_is_none_is_refused() -> None:
    with refused(UsageError, "collectives.operation_unknown"):
        changed_tree(BASE, (Rule("nonsense", 1, 0, BINOMIAL),))


def test_without_the_library_no_tree_is_claimed(tmp_path: Path) -> None:
    absent = Library("mpich", "5.0.2", str(tmp_path), str(tmp_path / "mpirun"))
    assert builtin_tree(absent) is None
    assert find("mpich-json").harmful(absent)
    assert find("mpich-json").obstacle(absent) == find("mpich-json").harmful(absent)
    assert adapter(absent).values_in_force({}) == {}


def test_an_incomplete_tree_is_not_written_even_unproven(tmp_path: Path) -> None:
    absent = Library("mpich", "5.0.2", str(tmp_path), str(tmp_path / "mpirun"))
    made = tmp_path / "tree.json"
    one = plan_file(find("mpich-json"), made)
    assert one.obstacle
    with refused(UsageError, "publish.harmful"):
        publish_files([one], Prober(absent, load_cluster("local")), lambda _: None)
    assert not made.exists()


@pytest.fixture(scope="module", params=["mpich", pytest.param("mpich-4", marks=pytest.mark.slow)])
def mpich(request: pytest.FixtureRequest) -> Library:
    found = library_named("mpich") if request.param == "mpich" else on_path(request.param)
    assert found.family == "mpich"
    assert shared_library(found) is not None, "no libmpi beside it"
    return found


@pytest.fixture
def prober(mpich: Library, home: Path) -> Iterator[Prober]:
    with Prober(mpich, load_cluster("local")) as found:
        yield found


def prove(prober: Prober, fmt: Format, content: Content) -> str:
    return prober.prove(fmt, content, lambda c: fmt.prologue + fmt.render(c, prober.library))


def check_canaries(prober: Prober, fmt: Format, content: Content) -> None:
    """The content has canaries, and a proof needs that they act."""
    assert fmt.canaries(content, prober.library)
    assert prove(prober, fmt, content)


def launch(prober: Prober, text: str, place: Path, operation: str, ranks: int) -> str:
    """The state of a launch with ``text`` as MPICH's selection file."""
    place.write_text(text)
    fmt = find("mpich-json")
    return prober.run(Loading({FILE: str(place)}), Content(), fmt, operation, ranks).state


def _slow(*names: Any) -> list[Any]:
    return [pytest.param(name, marks=pytest.mark.slow) for name in names]


TREE = (
    Rule("bcast", 1, 0, BINOMIAL),
    Rule("bcast", 2, 4, BINOMIAL),
    Rule("allreduce", 1, 0, "MPIR_Allreduce_intra_smp"),
    Rule("barrier", 1, 0, "MPIR_Barrier_intra_k_dissemination"),
    Rule("allgather", 1, 0, POW2),
)


def test_the_collectives_of_the_general_layer_are_those_tried_below() -> None:
    assert set(GENERAL_LAYER) == set(NAMES) == {"bcast", "reduce", "allreduce"}


@pytest.mark.mpi
class TestObeyed:
    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["mpich-env", "tcl", "sh", "slurm", "html"])
    def test_variables_are_seen_in_force(self, prober: Prober, name: str) -> None:
        """In short: :func:`test_published_found_in_force_and_undone`."""
        fmt = find(name)
        if fmt.obstacle(prober.library):
            pytest.skip(str(fmt.obstacle(prober.library)))
        values = {ALLREDUCE: "recursive_doubling", "MPIR_CVAR_CTXID_EAGER_SIZE": "3"}
        assert prove(prober, fmt, Content({"mca": values})).startswith("2 ")

    def test_text_is_seen(self, prober: Prober, tmp_path: Path) -> None:
        """Of the first text the effect stops the job.  Of the second one MPI_T shows the default
        (kary) whatever is said; the library asked for the variable."""
        (tmp_path / "tree").write_text(json.dumps(builtin_tree(prober.library)))
        texts = {FILE: str(tmp_path / "tree"), "MPIR_CVAR_BCAST_INTRANODE_TREE_TYPE": "knomial_1"}
        seen = prove(prober, find("mpich-env"), Content({"mca": texts}))
        assert seen.startswith("2 ")

    def test_a_variable_that_mpich_does_not_have_is_refused(self, prober: Prober) -> None:
        """MPICH itself passes over it in silence."""
        content = Content({"mca": {"MPIR_CVAR_NO_SUCH_THING": "1"}})
        with refused(NotObeyed, "publish.not_obeyed"):
            prove(prober, find("mpich-env"), content)

    def test_a_value_that_mpich_does_not_take_is_refused(self, prober: Prober) -> None:
        content = Content({"mca": {ALLREDUCE: "nonsense"}})
        with refused(NotObeyed, "publish.not_obeyed"):
            prove(prober, find("mpich-env"), content)

    def test_a_binding_is_said_and_seen(self, prober: Prober) -> None:
        content = Content({"placement": {"bind_to": "core"}})
        assert "HYDRA_BINDING='core'" in find("sh").render(content, prober.library)
        check_canaries(prober, find("sh"), content)

    @pytest.mark.parametrize(
        "rules",
        [pytest.param(TREE, id="all"), *_slow(TREE[:1], TREE[1:3], TREE[3:4], TREE[4:])],
    )
    def test_a_tree_is_obeyed(self, prober: Prober, rules: tuple[Rule, ...]) -> None:
        """A pow2-only algorithm must not stop the probe's three ranks."""
        if "k_dissemination" not in json.dumps(builtin_tree(prober.library)):  # MPICH 4.0
            rules = tuple(
                replace(r, algorithm=r.algorithm.replace("k_dissem", "dissem")) for r in rules
            )
        check_canaries(prober, find("mpich-json"), Content(rules=rules))

    @pytest.mark.parametrize("name", ["reduce", *_slow("bcast", "allreduce")])
    def test_a_tree_of_layers_is_obeyed(self, prober: Prober, name: str) -> None:
        rules = (Rule(name, 2, 0, "0"), Rule(name, 2, 4096, NAMES[name]), Rule(name, 3, 0, "0"))
        content = Content(rules=rules)
        check_canaries(prober, find("mpich-layers-json"), content)

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["allreduce", "bcast", "reduce"])
    def test_a_table_acts_at_its_sizes_alone(
        self, prober: Prober, tmp_path: Path, name: str
    ) -> None:
        """Shared memory serves the other sizes: a program that would abort in the general layer
        runs.  The first calls go there in any case, and so do some within MPI_Init: these are
        short."""
        wrong = NAMES["bcast" if name != "bcast" else "allreduce"]
        rules = (Rule(name, 2, 0, NAMES[name]), Rule(name, 2, 65536, wrong))
        algorithms = find("mpich-json").render(Content(rules=rules), prober.library)
        (tmp_path / "algorithms").write_text(algorithms)
        states = []
        for first in (0, 131072):
            own = (Rule(name, 2, 0, "0"), Rule(name, 2, first, NAMES[name]))[not first :]
            layers = find("mpich-layers-json").render(Content(rules=own), prober.library)
            (tmp_path / "layers").write_text(layers)
            env = {FILE: str(tmp_path / "algorithms"), LAYERS_FILE: str(tmp_path / "layers")}
            words = (
                sys.executable,
                "-m",
                "runner.programs.micro",
                name,
                "--size",
                "8,64k",
                "--count",
                "20",
            )
            with Runner(adapter(prober.library), guard=False) as runner:
                states.append(runner.run(LaunchSpec(program=words, ranks=2, env=env)).state)
        # Debian's MPICH 4.0 was built without collectives in shared memory.
        shared = f"MPIR_CVAR_{name.upper()}_COMPOSITION" in prober.library.params
        assert states == ["failed", "ok" if shared else "failed"]

    @pytest.mark.parametrize("name", ["mpich-env", "mpich-json"])
    def test_only_what_autotune_writes_is_loaded(
        self, prober: Prober, tmp_path: Path, name: str
    ) -> None:
        fmt, mark = find(name), tmp_path / "executed"
        values = Content({"mca": {ALLREDUCE: "recursive_doubling"}})
        content = Content(rules=(Rule("bcast", 1, 0, BINOMIAL),)) if fmt.comment is None else values
        path = forged(tmp_path / f"f{fmt.suffix}", fmt, content, prober.library)
        assert look(path, prober).in_force is True
        forged(path, fmt, content, prober.library, line=f"touch '{mark}'\n")
        seen = look(path, prober)
        assert seen.refused
        assert "touch" in seen.why
        assert not mark.exists()

    @pytest.mark.slow
    def test_an_algorithm_that_mpich_does_not_have_is_refused(self, prober: Prober) -> None:
        content = Content(rules=(Rule("bcast", 1, 0, "MPIR_Bcast_intra_nonsense"),))
        with refused(NotObeyed, "publish.not_obeyed") as refusal:
            prove(prober, find("mpich-json"), content)
        assert "failed" in str(refusal.value), "the launch ends"

    @pytest.mark.slow
    def test_the_canary_acts_at_its_own_collective_alone(
        self, prober: Prober, tmp_path: Path
    ) -> None:
        fmt, place = find("mpich-json"), tmp_path / "tree"
        content = Content(rules=(Rule("scan", 1, 0, "MPIR_Scan_intra_recursive_doubling"),))
        (canary,) = fmt.canaries(content, prober.library)
        text = fmt.render(canary.content, prober.library)
        assert launch(prober, text, place, "alltoall", 2) == "ok"
        assert launch(prober, text, place, "scan", 2) == "failed"

    @pytest.mark.slow
    def test_an_incomplete_tree_would_stop_other_programs(
        self, prober: Prober, tmp_path: Path
    ) -> None:
        """Why the whole tree is written; should MPICH mend it, this test says so."""
        part = json.dumps(changed_tree({}, (Rule("bcast", 1, 0, BINOMIAL),)))
        assert launch(prober, part, tmp_path / "tree", "allreduce", 2) == "failed"


def test_mpi4py_finds_a_library_that_a_distribution_renamed(tmp_path: Path, home: Path) -> None:
    """Debian's ``libmpich.so.12``; the wheel of mpi4py asks for ``libmpi.so.12``."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib").mkdir()
    own = tmp_path / "lib" / "libmpich.so.12"
    own.touch()
    library = Library("mpich", "4.0.2", str(tmp_path / "bin"), str(tmp_path / "bin/mpirun.mpich"))
    made = python_variables(library, {"LD_LIBRARY_PATH": "/first"})
    before, folder = made["LD_LIBRARY_PATH"].split(":")
    assert made["MPI4PY_LIBMPI"] == str(own)
    assert before == "/first"
    assert (Path(folder) / "libmpi.so.12").resolve() == own.resolve()
    Path(folder).chmod(0o777)
    assert python_variables(library, {})["LD_LIBRARY_PATH"] == folder
    assert not Path(folder).stat().st_mode & 0o022  # Nobody else puts links there any more.
    (Path(folder) / "libmpi.so.12").unlink()
    (Path(folder) / "libmpi.so.12").symlink_to(tmp_path / "of-others.so")
    assert "LD_LIBRARY_PATH" not in python_variables(library, {})
    (tmp_path / "lib" / "libmpi.so.12").touch()
    assert python_variables(library, {}) == {"MPI4PY_LIBMPI": str(own)}


@pytest.mark.mpi
def test_ranks_of_a_python_program_are_one_world(
    mpich: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The MPI beside this Python is another one, which would start each rank alone."""
    monkeypatch.delenv("MPI4PY_LIBMPI", raising=False)
    out = tmp_path / "out"
    code = (
        "from mpi4py import MPI; w = MPI.COMM_WORLD; "
        f"w.rank or open({str(out)!r}, 'a').write(f'{{w.size}} {{MPI.get_vendor()[0]}}')"
    )
    with Runner(adapter(mpich), guard=False) as runner:
        record = runner.run(LaunchSpec(program=(sys.executable, "-c", code), ranks=2))
    assert record.state == "ok", record.stderr_tail
    assert out.read_text() == "2 MPICH"


@pytest.mark.mpi
def test_published_found_in_force_and_undone(
    mpich: Library,
    home: Path,
    make_study: MakeStudy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    source = make_study({"mca": {ALLREDUCE: "smp"}}, mpi=MpiInfo("mpich", mpich.version))
    given = ["--mpi", mpich.launcher]  # Its directory may hold another MPI, too.
    made = tmp_path / "site.sh"
    words = ["publish", "--from", source, "-f", "mpich-env", "-o", str(made), *given]
    assert main([*words, "--json", "-"]) == 0, capfd.readouterr().err
    (file,) = json.loads(capfd.readouterr().out)["files"]
    assert file["proven"] is True
    assert f"export {ALLREDUCE}='smp'" in made.read_text()
    assert main(["verify-published", "--no-compare", *given, "--json", "-"]) == 0
    assert json.loads(capfd.readouterr().out)["files"][0]["in_force"] is True
    assert main(["unpublish", str(made)]) == 0
    assert not made.exists()


@pytest.fixture
def table(mpich: Library, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The words that publish a stored table of a collective."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    rules = (Rule("bcast", 2, 0, "0"), Rule("bcast", 2, 4096, RING))
    row = SizeEvidence(4096, "x=1", 0.1, 0.01, 0.2, "better", False)
    part = TablePart("bcast", 2, rules, (row,), 10, 100, 30, ("python", "-m", "x"))
    here = {"name": "mpich", "version": mpich.version}
    machine = describe_machine().fingerprint
    result = CollectiveResult("local", machine, here, "2026-11-21T10:00:00", (part,), {"bcast": {}})
    TABLES.save(result)
    return ["publish", "--from", f"collectives:{result.id}", "--mpi", mpich.launcher]


@pytest.mark.mpi
def test_both_trees_of_a_table_belong_together(
    table: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Without a format both are written, and the script that names them."""
    before = sorted(tmp_path.iterdir())
    assert main([*table, "-o", ".", "--dry-run"]) == 0
    said = capfd.readouterr().out
    for variable, name in ((FILE, "mpich.json"), (LAYERS_FILE, "mpich-layers.json")):
        assert f"export {variable}='{tmp_path}/autotune-local.{name}'" in said
    assert main([*table, "--format", "mpich-json", "--dry-run"]) == 0
    assert " mpich-layers-json: " in capfd.readouterr().err
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.slow
@pytest.mark.mpi
def test_a_table_of_collectives_is_published_whole_and_undone(
    mpich: Library, table: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    """In short: the one before; ``TestObeyed``; ``test_own_table.py``."""
    assert main([*table, "-o", ".", "--json", "-"]) == 0, capfd.readouterr().err
    files = [file["path"] for file in json.loads(capfd.readouterr().out)["files"]]
    assert [Path(p).name for p in files] == [
        "autotune-local.mpich.json", "autotune-local.mpich-layers.json", "autotune-local.mpich.sh",
    ]  # fmt: skip
    script = Path(files[2]).read_text()
    assert f"export {FILE}='{files[0]}'" in script
    assert f"export {LAYERS_FILE}='{files[1]}'" in script
    words = ["verify-published", "--no-compare", "--mpi", mpich.launcher, "--json", "-", *files]
    assert main(words) == 0, capfd.readouterr().err
    states = json.loads(capfd.readouterr().out)["files"]
    assert [file["in_force"] for file in states] == [True] * 3
    assert main(["unpublish", *files]) == 0
    assert not any(Path(path).exists() for path in files)


def test_without_an_mpich_its_formats_need_unproven(
    open_mpi: Library,
    home: Path,
    make_study: MakeStudy,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    source = make_study({"mca": {ALLREDUCE: "smp"}}, version=open_mpi.version)
    made = tmp_path / "site.sh"
    words = ["publish", "--from", source, "-f", "mpich-env", "-o", str(made)]
    assert main(words) == 2
    err = capfd.readouterr().err
    assert "[publish.unprovable]" in err
    assert " mpich, " in err
    assert " openmpi" in err
    assert not made.exists()
    assert main([*words, "--unproven"]) == 0
    assert "UNPROVEN:" in made.read_text()
