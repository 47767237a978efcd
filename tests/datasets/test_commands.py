"""``autotune explore`` and ``autotune dataset`` as a user meets them."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from autotune.cli import main
from autotune.datasets import Dataset, Landscape, load
from autotune.datasets.plan import load_plan, protocol
from autotune.datasets.shards import shard_path
from runner.mpi.library import Library
from runner.trace import load_features
from tests.datasets.conftest import make, planted
from tests.mpis import built

PLAN = """
kind = "grid"
name = "tiny"
title = "two settings"
runs = 2
# A busy machine stops no run of some milliseconds.
slowest = 2000
[[cells]]
key = "pp"
app = "micro"
input = "pingpong-4k"
args = ["pingpong", "--size", "4096", "--count", "500"]
ranks = 2
space = "openmpi"
run_s = 0.5
levels = { btl_sm_eager_limit = ["16k"] }
"""

BRIEF = """
#include <mpi.h>
#include <unistd.h>
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    usleep(10000 * CODE);
    MPI_Finalize();
    return 0;
}
"""


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    path = tmp_path / "tiny.toml"
    path.write_text(PLAN)
    return path


@pytest.mark.mpi
@pytest.mark.slow
def test_compiling_is_not_taken_for_a_slow_setting(
    plan: Path, open_mpi: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first run of Cannon on MATE compiles for many times the default's time."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(plan.parent / "cache"))
    cell = (
        PLAN.partition("[[cells]]")[0]
        + """
[[cells]]
key = "cold"
app = "cannon"
input = "tiny"
ranks = 2
space = "mate-cannon"
levels = { variant = ["mate"], side = [2] }
"""
    )
    plan.write_text(cell)
    assert main(["explore", str(plan), "--no-guard"]) == 0
    runs = load("tiny").runs("cold")
    assert len(set(runs["setting"])) == 3
    # A busy machine may stop a run of a millisecond; a compiler stopped every one of them.
    assert (runs["state"] == "ok").groupby(runs["setting"]).any().all()


@pytest.mark.mpi
def test_measures_continues_and_exports(
    plan: Path, open_mpi: Library, capfd: pytest.CaptureFixture[str]
) -> None:
    """Runs of another program are not mixed in."""
    place = plan.parent / "configs" / "apps"
    place.mkdir(parents=True)
    (place / "own.toml").write_text(
        'name = "own"\ncommand = ["sh", "run.sh"]\n[inputs.one]\ndescription = "the only one"\n'
    )
    (plan.parent / "run.sh").write_text("exec ./program\n")
    program = built(open_mpi, plan.parent, BRIEF, "-DCODE=1")
    cell = 'key = "pp"\napp = "own"\nranks = 2\nspace = "openmpi"\nrun_s = 0.5\n'
    cell += 'levels = { btl_sm_eager_limit = ["16k"] }\n'
    plan.write_text(f"{PLAN.partition('key =')[0]}{cell}")
    assert main(["explore", str(plan), "--no-guard"]) == 0
    first = load("tiny")
    digest = hashlib.sha256(program.read_bytes()).hexdigest()
    assert first.cell("pp").programs == (digest,)
    runs = first.runs("pp")
    assert list(runs.groupby("block").size()) == [5, 5]
    assert set(runs["state"]) == {"ok"}
    assert set(runs["setting"]) == {0, 1}
    assert Landscape(first, "pp", min_runs=2).complete
    shard_path(first.folder, "pp", 1).unlink()
    built(open_mpi, plan.parent, BRIEF, "-DCODE=2")
    assert main(["explore", str(plan), "--no-guard"]) == 2
    assert "[study.program_changed]" in capfd.readouterr().err
    assert not shard_path(first.folder, "pp", 1).exists()
    # A block that is gone is measured, and it alone.
    built(open_mpi, plan.parent, BRIEF, "-DCODE=1")
    assert main(["explore", str(plan), "--no-guard"]) == 0
    assert load("tiny").cell("pp").programs == (digest,)
    again = load("tiny").runs("pp")
    kept = again["block"] == 0
    assert again[kept].equals(runs[runs["block"] == 0])
    assert (again.loc[~kept, "started_at"] > runs["started_at"].max()).all()
    # The same command runs nothing again.
    capfd.readouterr()
    assert main(["explore", str(plan), "--no-guard", "--json", "-"]) == 0
    result = json.loads(capfd.readouterr().out)
    assert result["finished"] is True
    assert result["runs"] == 10
    assert load("tiny").runs("pp").equals(again)
    # A block that was measured twice counts once.
    assert result["cells"][0]["unguarded"] == 2
    assert main(["dataset", "describe", "tiny"]) == 0
    said = " ".join(capfd.readouterr().out.split())
    note = load("tiny").card.guard_note
    assert note is not None
    assert f"note [{note.code}]: {' '.join(note.words.split())}" in said
    assert "pp (2 of 2 blocks)" in note.words
    planned = load_plan(str(plan))
    assert (
        load("tiny").card.protocol
        == protocol(planned, has_unguarded_blocks=True)
        != protocol(planned)
    )
    assert main(["anova", "--from", "tiny", "--response", "log", "--json", "-"]) == 0
    notes = json.loads(capfd.readouterr().out)["notes"]
    assert any(note["code"] == "guard.off" for note in notes)


@pytest.mark.slow
@pytest.mark.mpi
def test_another_folder_is_another_dataset_of_the_same_plan(
    plan: Path, open_mpi: object, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["explore", str(plan), "--no-guard", "-o", "datasets/elsewhere"]
    assert main([*words, "--budget", "1s"]) == 0
    card = load("elsewhere").card
    assert (card.name, card.plan) == ("elsewhere", "tiny")
    # The fixture's plan is an absolute path; the card is passed on without it.
    words_again = ["autotune", "explore", plan.name, "-o", "datasets/elsewhere"]
    assert (card.regenerate or "").split() == words_again
    assert main(words) == 0
    assert len(load("elsewhere").runs("pp")) == 10
    # The plan of another dataset does not continue it, whatever its title is.
    plan.write_text(plan.read_text().replace('name = "tiny"', 'name = "other"'))
    assert main(words) == 2
    err = capfd.readouterr().err
    assert "[plan.other_dataset]" in err
    assert " tiny, " in err
    assert " other; " in err


@pytest.mark.slow
@pytest.mark.mpi
def test_traced_cells_fall_into_classes(
    plan: Path, open_mpi: object, capfd: pytest.CaptureFixture[str]
) -> None:
    """Another program each; a cell with arguments of its own is traced with them."""
    levels = "levels = { btl_sm_eager_limit = ['16k'] }"
    more = "".join(
        f'[[cells]]\nkey = "{app}"\napp = "{app}"\ninput = "tiny"\nranks = 2\n'
        f'space = "openmpi"\nrun_s = 0.5\n{levels}\n'
        for app in ("jacobi3d", "cannon")
    )
    plan.write_text(PLAN + more)
    assert main(["explore", str(plan), "--no-guard"]) == 0
    assert main(["dataset", "classes", "tiny"]) == 2
    # The cell's own arguments come from the card.
    assert main(["dataset", "trace", "tiny", "--no-guard"]) == 2
    assert not Path("datasets/tiny/features").exists()
    assert main(["dataset", "trace", "tiny", "--no-guard", "--run-recorded"]) == 0
    places = [
        Path("datasets/tiny/features") / f"{key}.json" for key in ("pp", "jacobi3d", "cannon")
    ]
    traced = [load_features(path) for path in places]
    assert "--count" in traced[0].argv
    assert [t.ranks for t in traced] == [2, 2, 2]
    # What is there is kept, unless --force says otherwise.
    written = places[0].stat().st_mtime_ns
    places[1].unlink()
    capfd.readouterr()
    assert main(["dataset", "trace", "tiny", "--no-guard"]) == 0
    said = capfd.readouterr().out
    assert said.startswith("1 ")
    assert " 3 of 3 " in said
    assert places[0].stat().st_mtime_ns == written
    assert main(["dataset", "classes", "tiny", "--classes", "2", "--json", "-"]) == 0
    found = json.loads(capfd.readouterr().out)["classes"]
    assert sorted(cell for c in found for cell in c["cells"]) == ["cannon", "jacobi3d", "pp"]


@pytest.mark.mpi
def test_a_spent_budget_begins_no_block(plan: Path, open_mpi: object) -> None:
    assert main(["explore", str(plan), "--no-guard", "--budget", "1s"]) == 0
    assert len(load("tiny").runs()) == 0


@pytest.mark.parametrize(
    ("words", "code", "named"),
    [
        (["explore", "tiny.toml", "--cells", "qq"], "dataset.cell_unknown", "pp"),
        (["explore", "grid-nod"], "config.missing", "grid-node"),
        (["explore", "tiny.toml", "-o", "."], "dataset.folder_not_empty", "-o"),
        (["explore", "tiny.toml", "--budget", "soon"], "time.syntax", "'soon'"),
        (["dataset", "describe", "nothing"], "dataset.unknown", "'nothing'"),
        (["dataset", "import", "nothing"], "dataset.unknown", "'nothing'"),
        (["dataset", "export", "abcdef", "-o", "x"], "study.unknown", "'abcdef'"),
    ],
)
def test_mistakes_are_told(
    plan: Path,
    open_mpi: object,
    words: list[str],
    code: str,
    named: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert main(words) == 2
    err = " ".join(capfd.readouterr().err.split())
    assert f"[{code}]" in err
    assert named in err
    assert "Traceback" not in err


def test_describe_tells_headroom_and_null(grid: Dataset, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset", "describe", str(grid.folder)]) == 0
    out = capfd.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    rows = {line.split()[0]: line for line in out.splitlines() if line.split()}
    assert "null" in rows["null"].split()[-1]
    assert "null" not in rows["planted"]
    assert main(["dataset", "describe", str(grid.folder), "--json", "-"]) == 0
    cells = json.loads(capfd.readouterr().out)["cells"]
    assert [cell["null"] for cell in cells] == [False, True]
    assert cells[0]["gain"] == pytest.approx(1 / 0.6 - 1, rel=0.2)


def test_import_checks_and_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    other = make(tmp_path / "elsewhere" / "theirs", {"c": planted})
    monkeypatch.chdir(tmp_path)
    assert main(["dataset", "import", str(other.folder), "--name", "copy"]) == 0
    assert load("copy").runs().equals(other.runs())
    assert main(["dataset", "import", str(other.folder), "--name", "copy"]) == 2
    shutil.rmtree(tmp_path / "datasets" / "copy")
    shard = shard_path(other.folder, "c", 1)
    shard.write_bytes(shard.read_bytes()[:100])
    capfd.readouterr()
    assert main(["dataset", "import", str(other.folder), "--name", "copy"]) == 2
    assert shard.name in "".join(capfd.readouterr().err.split())
    assert not list((tmp_path / "datasets").iterdir())
