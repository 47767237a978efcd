"""``autotune store``: what the commands print, remove and refuse, with published files beside."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from autotune.anova.classwide_result import RESULTS, ClasswideResult
from autotune.publish.published_files import record_path
from autotune.space import Setting
from autotune.store import Store
from autotune.study.screening_summary import LINK
from autotune.testing.format import NEW, evidence
from tests.cli.conftest import Cli
from tests.contract.house import OLD, rejected, wordy
from tests.contract.store_samples import key
from tests.publish.conftest import put_in_place

Publish = Callable[[str], Path]
KEEP = ("--keep", "outputs=5", "--keep", "rejected=5")


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four studies with old runs: two answers, the cheap runs of the first, and no answer."""
    place = tmp_path / "results.db"
    monkeypatch.setenv("AUTOTUNE_STORE", str(place))
    with Store.open(place) as store:
        for seed, status in ((1, "recommended"), (2, "keep_default"), (3, "measured"), (4, "")):
            study = store.study(key(seed=seed))
            store.add_run(study.id, None, "search", 0, 0, wordy())
            store.add_run(study.id, None, "search", 0, 0, rejected())
            store.add_run(study.id, None, "confirm:1", 0, 0, wordy())
            if status:
                store.set_result(study.id, status, {"confirmation_runs": 1})
            if seed == 3:
                link = {"study": study.hash, "form": "cheap"}
                store.store_document(1, LINK, link)
    return place


@pytest.fixture
def publish(tmp_path: Path) -> Publish:
    """Publish a file with a source."""

    def file(source: str) -> Path:
        path = tmp_path / f"{re.sub('[^a-z0-9]', '', source)[:20]}.conf"
        put_in_place("openmpi-user", path, NEW, seen=evidence(source=source))
        return path

    return file


def hash_of(database: Path, number: int) -> str:
    with Store.open_read_only(database) as store:
        return store.get_study(number).hash[:12]


def change(database: Path, statement: str) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(statement)
        connection.commit()


def findings(cli: Cli) -> tuple[int, list[dict[str, Any]]]:
    asked = cli("store", "check", "--json", "-")
    return asked.code, json.loads(asked.out)["findings"]


def plain(text: str, tmp_path: Path) -> str:
    """The text on one line for each finding, without the places of this run."""
    lines = re.sub(r"\n {4,}", " ", text)
    return lines.replace(str(tmp_path), "PLACE").replace(str(RESULTS.folder), "FOLDER")


def test_a_whole_database_and_what_a_published_file_rests_on(
    cli: Cli, database: Path, publish: Publish
) -> None:
    publish(f"study:{hash_of(database, 1)}")
    assert findings(cli) == (0, [])
    asked = cli("store", "check")
    assert (asked.code, asked.err) == (0, "")


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("DELETE FROM run WHERE study_id = 1 AND phase = 'confirm:1'", "runs_missing"),
        ("UPDATE study SET hash = 'ff' WHERE id = 1", "study_missing"),
        ("UPDATE study SET hash = 'ff' WHERE id = 3", "study_missing"),
    ],
    ids=["proof", "study", "cheap"],
)
def test_what_a_published_file_rests_on_is_gone(
    cli: Cli, database: Path, publish: Publish, statement: str, code: str
) -> None:
    path = publish(f"study:{hash_of(database, 1)}")
    change(database, statement)
    status, faults = findings(cli)
    assert status == 1
    (fault,) = (one for one in faults if one["code"].startswith("store.published"))
    assert fault["code"] == f"store.published_{code}"
    assert fault["data"]["file"] == str(path)


def test_each_kind_of_fault_is_printed(
    cli: Cli, database: Path, publish: Publish, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    publish("study:abcdef012345")
    publish("classwide:0123456789ab")
    RESULTS.folder.mkdir(parents=True)
    (RESULTS.folder / "cafe.json").write_text("{}")
    change(database, "DELETE FROM run WHERE study_id = 4")
    change(database, "UPDATE run SET trial_id = 1000 + id")
    change(database, "INSERT INTO printed (hash, document) VALUES ('q', '{}')")
    change(database, "UPDATE run SET state = x'ff' WHERE id < 8")
    asked = cli("store", "check")
    assert asked.code == 1
    assert all(len(line) <= 80 or "/" in line for line in asked.out.splitlines())
    assert plain(asked.out, tmp_path) == snapshot
    _, faults = findings(cli)
    assert len([one for one in faults if one["code"] == "store.row_damaged"]) == 7


def test_a_file_that_is_cut_off_is_a_finding(cli: Cli, database: Path) -> None:
    with Store.open(database) as store:
        store.compact()
    content = database.read_bytes()
    database.write_bytes(content[: len(content) // 2])
    status, faults = findings(cli)
    assert status == 1
    assert {one["code"] for one in faults} == {"store.unsound"}
    database.write_bytes(content[:1024] + b"x" * (len(content) - 1024))
    assert findings(cli)[0] == 1


def test_no_database_is_wrong_usage(cli: Cli, tmp_path: Path) -> None:
    asked = cli("store", "check", "--store", tmp_path / "none.db")
    assert asked.code == 2
    assert "[store.missing]" in asked.err
    (tmp_path / "text.db").write_text("no database, but some text" * 100)
    asked = cli("store", "check", "--store", tmp_path / "text.db")
    assert asked.code == 2
    assert "[store.foreign]" in asked.err


def classwide(date: str, is_measured: bool = True) -> ClasswideResult:
    return ClasswideResult(
        status="keep_default",
        setting=Setting(),
        cluster="local",
        machine="m",
        mpi={"name": "openmpi", "version": "5.0"} if is_measured else {},
        space="openmpi",
        date=date,
        method="default",
        source="s",
    )


def test_a_result_that_is_replaced_and_named_by_nobody(
    cli: Cli, database: Path, publish: Publish
) -> None:
    old, new = classwide("2026-01-01T00:00:00"), classwide("2026-02-01T00:00:00")
    path = RESULTS.save(old)
    assert findings(cli) == (0, [])
    RESULTS.save(new)
    status, (fault,) = findings(cli)
    assert (status, fault["code"]) == (1, "store.artifact_unnamed")
    assert fault["data"]["file"] == str(path)
    publish(f"classwide:{old.id}")
    assert findings(cli) == (0, [])
    RESULTS.save(classwide("2026-03-01T00:00:00", is_measured=False))  # It names no library.
    assert findings(cli) == (0, [])


def test_prune_lists_then_removes_and_protects(
    cli: Cli, database: Path, publish: Publish, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    publish(f"study:{hash_of(database, 1)}")
    before = database.read_bytes()
    listed = cli("store", "prune", *KEEP)
    assert listed.code == 0
    assert database.read_bytes() == before
    assert listed.out == cli("store", "prune", *KEEP, "--dry-run").out
    assert max(map(len, listed.out.splitlines())) <= 80
    plan = json.loads(cli("store", "prune", *KEEP, "--json", "-").out)
    assert [row["study"] for row in plan["studies"]] == [2]
    assert plan["left"] == {"published": 2, "unfinished": 1}
    assert (plan["done"], plan["file_bytes_after"], plan["compacted"]) == (False, None, None)
    asked = cli("store", "prune", *KEEP, "--yes", "--json", "done.json")
    done = json.loads(Path("done.json").read_text())
    assert (done["done"], done["compacted"]) == (True, True)
    assert {**done, **dict.fromkeys(("done", "compacted", "file_bytes_after"))} == {
        **plan, **dict.fromkeys(("done", "compacted", "file_bytes_after")),
    }  # fmt: skip
    sizes = re.compile(r"\S+ [KM]iB (before|now)")
    assert [listed.out, sizes.sub(r"SIZE \1", asked.out)] == snapshot
    with Store.open(database) as store:
        outputs = [[bool(r.record.stdout_tail) for r in store.runs(n)] for n in (1, 2, 3, 4)]
    assert outputs == [[True] * 3, [False] * 2, [True] * 3, [True] * 3]
    assert findings(cli) == (0, [])


def test_the_file_gets_smaller(cli: Cli, database: Path) -> None:
    with Store.open(database) as store:
        for _ in range(300):
            store.add_run(2, None, "search", 0, 0, wordy(OLD))
    cli("store", "prune", *KEEP, "--yes", "--json", "done.json")
    done = json.loads(Path("done.json").read_text())
    assert done["file_bytes_after"] < done["file_bytes"] - 300 * 2000
    assert done["file_bytes_after"] == database.stat().st_size
    assert done["bytes"] > 300 * 2010


def test_a_writer_prevents_that_the_file_gets_smaller_and_nothing_else(
    cli: Cli, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autotune.store.sqlite.Sqlite.compact", lambda self, engine: False)
    asked = cli("store", "prune", *KEEP, "--yes", "--json", "done.json")
    assert asked.code == 0
    assert json.loads(Path("done.json").read_text())["compacted"] is False
    with Store.open(database) as store:
        assert [len(store.runs(number)) for number in (1, 2)] == [2, 2]


def test_a_published_file_of_somebody_else_is_named(
    cli: Cli, database: Path, publish: Publish
) -> None:
    path = publish(f"study:{hash_of(database, 2)}")
    record_path().unlink()
    line = ("store", "prune", *KEEP, "--published", path, "--json", "-")
    assert [row["study"] for row in json.loads(cli(*line).out)["studies"]] == [1, 3]
    asked = cli("store", "prune", *KEEP, "--published", path.with_name("none"))
    assert asked.code == 2
    assert "[published.missing]" in asked.err


@pytest.mark.parametrize("damage", ["header", "list", "result"])
def test_nothing_goes_if_it_is_not_known_on_what_a_file_rests(
    cli: Cli, database: Path, publish: Publish, damage: str
) -> None:
    source = "classwide:0123456789ab" if damage == "result" else f"study:{hash_of(database, 1)}"
    path = publish(source)
    if damage == "header":
        path.write_text(path.read_text().replace('"content"', '"other"'))
    if damage == "list":
        record_path().write_text("[")
    asked = cli("store", "prune", *KEEP, "--yes")
    assert asked.code == 1
    code = "published.list_unreadable" if damage == "list" else "store.published_unknown"
    assert f"[{code}]" in asked.err
    with Store.open(database) as store:
        assert [len(store.runs(number)) for number in (1, 2)] == [3, 3]
    status, faults = findings(cli)
    assert status == 1
    assert "store.published_unknown" in {one["code"] for one in faults}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--keep", "90"), "store.keep_syntax"),
        (("--keep", "outputs=-1"), "store.keep_syntax"),
        (("--keep", "outputs=nan"), "store.keep_syntax"),
        (("--keep", "outputs=1", "--keep", "outputs=2"), "store.keep_syntax"),
        (("--yes", "--dry-run"), "store.prune_conflict"),
    ],
    ids=["bare", "negative", "nan", "twice", "both"],
)
def test_wrong_usage_of_prune(cli: Cli, database: Path, words: tuple[str, ...], code: str) -> None:
    asked = cli("store", "prune", *words)
    assert asked.code == 2
    assert f"[{code}]" in asked.err
