"""A password after ``--store`` is in nothing that autotune prints, writes, stores or starts."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import make_url, text

from autotune.store import Store
from runner.supervise.process_tree import descendants
from tests.cli.conftest import SIZES, Cli
from tests.servers import missing_for_postgres, new_schema, postgres_server

SECRET = "s3cret/9f@7c"
NO_SERVER = missing_for_postgres()
TARGET = ("--ranks", "1", "--no-guard")
SEARCH = ("search", "--strategy", "random", "--trials", "1", "--min-gain", "40", "--runs", "32")


def hides(content: bytes) -> bool:
    """Whether no part of the password that a careless mask may leave is in there."""
    return not any(part in content for part in (b"s3cret", b"9f@7c", b"9f%407c", b"7c@"))


class CommandLines:
    """The command lines of all processes below one, as seen while it ran."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._over = threading.Event()
        self.lines: set[bytes] = set()
        self._thread = threading.Thread(target=self._watch)

    @contextmanager
    def watched(self) -> Iterator[CommandLines]:
        self._thread.start()
        try:
            yield self
        finally:
            self._over.set()
            self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.02):
            for pid in descendants(self._pid):
                try:
                    self.lines.add(Path(f"/proc/{pid}/cmdline").read_bytes())
                except OSError:
                    continue


def run(work: Path, *words: str) -> tuple[int, bytes, set[bytes]]:
    """Exit code, all output, and the command lines of what the command started."""
    line = [sys.executable, "-m", "autotune", *words]
    process = subprocess.Popen(
        line,
        cwd=work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    with CommandLines(process.pid).watched() as seen:
        said = process.communicate()[0]
    # A copy of the process between fork and exec has the line that the user typed.
    typed = b"".join(word.encode() + b"\0" for word in line)
    return process.returncode, said, seen.lines - {typed}


@pytest.fixture
def place(work: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that holds all that the commands may write."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setenv("AUTOTUNE_LOCK_FILE", str(work / "lock"))
    monkeypatch.delenv("AUTOTUNE_MACHINE_LOCK", raising=False)
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "TMPDIR"):
        folder = work / name.lower()
        folder.mkdir()
        monkeypatch.setenv(name, str(folder))
    return work


def written(work: Path) -> list[Path]:
    """The files in which the password stands."""
    files = [path for path in work.rglob("*") if path.is_file()]
    assert files
    return [path for path in files if not hides(path.read_bytes())]


def test_errors_show_no_password(place: Path, cli: Cli) -> None:
    url = f"postgresql://me:{SECRET}@127.0.0.1:1/d"
    wrong: list[Sequence[str]] = [
        ("studies", "--store", url),
        ("studies", "--store", f"{url}?connect_timeout=x"),
        ("studies", "--store", f"oracle://me:{SECRET}@h/d"),
        ("studies", "--store", f"sqlite://me:{SECRET}@h/d"),
        ("studies", "--store", f"postgresql://me:{SECRET}@h:port/d"),
        ("studies", "--store", f"postgresql:///d?password={SECRET}&host=127.0.0.1&port=1"),
        ("studies", url),
        ("show", url),
        ("studies", f"--stor={url}"),
        ("studies", "--limit", url),
        (*SEARCH, "--store", url, "--json", "error.json", *TARGET, "--", "true"),
    ]
    for words in wrong:
        outcome = cli(*words)
        assert outcome.code in (1, 2), (words, outcome)
        assert hides(outcome.text.encode()), (words, outcome)
    code, said, _ = run(place, *wrong[0])
    assert code in (1, 2), said
    assert hides(said), said
    assert b"Traceback" not in said
    assert b"***" in (place / "error.json").read_bytes()
    assert written(place) == []


@pytest.mark.mpi
@pytest.mark.skipif(NO_SERVER is not None, reason=str(NO_SERVER))
def test_commands_on_a_database_show_no_password(place: Path, cli: Cli, mpi_shell: str) -> None:
    program = (*TARGET, "--metric", "seconds (.*)", "--", mpi_shell, "sleep 0.3; echo seconds 0.5")
    with postgres_server() as server, new_schema(server) as schema:
        url = make_url(schema).set(password=SECRET).render_as_string(hide_password=False)
        store = ("--store", url)
        (place / "sizes.toml").write_text(SIZES)
        search = (*SEARCH, "--space", "./sizes.toml", "--scheduler", "local", *store)
        search += ("--json", "search.json", *program)
        code, said, started = run(place, *search)
        assert code == 0, said
        assert hides(said), said
        commands: list[Sequence[str]] = [
            ("compare", "default", "bind_to=none", "--runs", "6", *store, *program),
            ("run", *store, "--json", "run.json", *program),
            ("studies", *store, "--json", "studies.json"),
            ("status", *store, "--json", "status.json"),
            ("show", "1", *store, "--json", "show.json"),
            ("report", "1", "-o", "report.html", *store),
            ("export", "1", "-o", "runs.csv", *store),
        ]
        for words in commands:
            outcome = cli(*words)
            assert outcome.code == 0, (words, outcome)
            assert hides(outcome.text.encode()), (words, outcome)
        with Store.open(url) as opened, opened._database.read() as connection:
            tables = connection.execute(
                text("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
            ).scalars()
            rows = [
                str(row)
                for table in tables
                for row in connection.execute(text(f"SELECT t::text FROM {table} t"))
            ]
    assert len(rows) > 20
    assert all(hides(row.encode()) for row in rows)
    assert any(b"sleep 0.3" in line for line in started), started
    assert any(b"worker" in line for line in started)
    assert [line for line in started if not hides(line)] == []
    assert b"***" in said  # The commands to copy name the database.
    assert b"store.password" in said
    assert written(place) == []
