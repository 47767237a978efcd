"""A backup is the database at one moment, and is restored, while workers write."""

from __future__ import annotations

import csv
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import make_url

from autotune.cli import main
from autotune.errors import UsageError, WorkError
from autotune.store import Store
from autotune.store.backup import dump_command
from autotune.store.database import Database
from autotune.store.location import locate
from tests.contract.store_samples import key
from tests.refusals import refused
from tests.servers import missing_for_postgres, new_schema, postgres_server, postgres_tool
from tests.started import rank_environment
from tests.store.test_store_damage import fill

WRITER = Path(__file__).with_name("writer.py")
NO_SERVER = missing_for_postgres()
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server() as url:
        yield url


def answers(place: str, folder: Path, capture: Capture) -> list[object]:
    """What ``studies``, ``show`` and ``export`` say of a database."""
    found: list[object] = []
    for line in (["studies"], ["show", "1"]):
        assert main([*line, "--store", place, "--json", "-"]) == 0
        found.append(json.loads(capture.readouterr().out))
    table = folder / "runs.csv"
    line = ["export", "1", "--output", "--force", "-o", str(table), "--store", place]
    assert main(line) == 0
    capture.readouterr()
    with table.open(newline="") as file:
        found.append(list(csv.reader(file)))
    return found


def test_a_backup_answers_as_its_database(tmp_path: Path, capsys: Capture) -> None:
    place, copy = tmp_path / "results.db", tmp_path / "copy.db"
    fill(place)
    assert main(["store", "backup", str(copy), "--store", str(place), "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["path"], document["command"]) == (str(copy), [])
    assert document["bytes"] == copy.stat().st_size
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert sorted(one.name for one in tmp_path.glob("*copy*")) == ["copy.db"]
    expected = answers(str(place), tmp_path, capsys)
    assert len(expected[2]) == 33  # type: ignore[arg-type]
    copy.chmod(0o400)
    assert answers(str(copy), tmp_path, capsys) == expected
    # It is a database, in which studies go on.
    copy.chmod(0o600)
    with Store.open(copy) as store:
        store.study(key(seed=9))


def test_backups_beside_a_writer_have_all_that_was_acknowledged(tmp_path: Path) -> None:
    place = tmp_path / "results.db"
    with Store.open(place) as store:
        study = store.study(key()).id
    command = [sys.executable, str(WRITER), str(place), "runs", str(study), "100000"]
    env = rank_environment()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        try:
            with Store.open(place) as store:
                for number in range(3):
                    last = [int(process.stdout.readline()) for _ in range(20)][-1]
                    copy = tmp_path / f"{number}.db"
                    store.back_up(copy)
                    with Store.open_to_read(copy) as restored:
                        runs = restored.runs(study)
                        assert restored.examine(False, "reused") == []
                    assert [run.order for run in runs] == list(range(len(runs)))
                    assert last in {run.id for run in runs}
            assert process.poll() is None
        finally:
            process.kill()


def test_a_damaged_database_leaves_the_former_backup(tmp_path: Path) -> None:
    place, copy = tmp_path / "results.db", tmp_path / "copy.db"
    fill(place)
    with Store.open(place) as store:
        store.back_up(copy)
        before = copy.read_bytes()
        store._database.dialect.compact(store._database._engine)
    content = bytearray(place.read_bytes())
    content[8192:16384] = os.urandom(8192)
    place.write_bytes(content)
    database = Database(locate(str(place)))
    with refused(WorkError, "store.damaged"):
        Store(database).back_up(copy)
    database.close()
    assert copy.read_bytes() == before
    assert list(tmp_path.glob("*.part*")) == []


def test_what_is_no_place_for_a_backup(tmp_path: Path, capsys: Capture) -> None:
    place = tmp_path / "results.db"
    fill(place)
    with Store.open(place) as store:
        with refused(UsageError, "store.path"):
            store.back_up(place)
        with refused(UsageError, "file.unwritable"):
            store.back_up(tmp_path / "nowhere" / "copy.db")
    taken = tmp_path / "taken"
    taken.write_text("mine")
    assert main(["store", "backup", str(taken), "--store", str(place)]) == 2
    assert "[file.exists]" in capsys.readouterr().err
    assert taken.read_text() == "mine"


def test_the_password_of_a_server_is_on_no_command_line(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    url = "postgresql://me:s3cret%2F9@db.host:5433/results?sslmode=require"
    database = Database(locate(url))
    command, password = dump_command(database, tmp_path / "b")
    assert password == "s3cret/9"
    assert not any("s3cret" in word for word in command)
    (connection,) = (word for word in command if word.startswith("--dbname="))
    assert {"host=db.host", "port=5433", "dbname=results", "user=me", "sslmode=require"} <= set(
        connection.removeprefix("--dbname=").split()
    )


@pytest.mark.skipif(NO_SERVER is not None, reason=str(NO_SERVER))
def test_a_server_is_restored_from_its_backup(server: str, tmp_path: Path, capsys: Capture) -> None:
    import psycopg

    copy = tmp_path / "results.dump"
    with new_schema(server) as place:
        fill(place)  # type: ignore[arg-type]
        url = make_url(place)
        schema = str(url.query["options"]).partition("search_path=")[2]
        plain = url.set(drivername="postgresql").render_as_string(hide_password=False)
        with psycopg.connect(plain, autocommit=True) as connection:
            connection.execute("CREATE TABLE of_others (x integer)")
            expected = answers(place, tmp_path, capsys)
            assert main(["store", "backup", str(copy), "--store", place]) == 0
            assert "pg_dump" in capsys.readouterr().out
            connection.execute(f"DROP SCHEMA {schema} CASCADE")
            connection.execute(f"CREATE SCHEMA {schema}")
            tool = postgres_tool("pg_restore")
            assert tool
            command = [tool, "--no-owner", "--exit-on-error", f"--dbname={plain}", str(copy)]
            subprocess.run(command, check=True, capture_output=True)
            others = connection.execute("SELECT to_regclass('of_others')").fetchone()
        assert answers(place, tmp_path, capsys) == expected
        assert others == (None,)
        with Store.open(place) as store:
            assert store.examine(False, "reused") == []
            store.study(key(seed=9))


@pytest.mark.skipif(NO_SERVER is not None, reason=str(NO_SERVER))
def test_a_dump_that_fails_leaves_no_file(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "pg_dump"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho no >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    with new_schema(server) as place, Store.open(place) as store:
        with refused(WorkError, "store.pg_dump_failed"):
            store.back_up(tmp_path / "copy")
        monkeypatch.setattr("shutil.which", lambda name: None)
        monkeypatch.setattr("autotune.store.backup._installed", lambda name: None)
        with refused(WorkError, "store.pg_dump_missing"):
            store.back_up(tmp_path / "copy")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["bin"]
