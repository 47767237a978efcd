"""Datasets of strangers: nothing is written outside, nothing but plain files is copied."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from autotune.datasets import Dataset, load, shards
from autotune.datasets.catalog import list_datasets
from autotune.datasets.exchange import BOUNDS, Bounds, copy_folder, import_folder
from autotune.datasets.shards import arrow_schema, shard_path
from autotune.errors import UsageError
from tests.datasets.conftest import make, planted
from tests.refusals import refused

SECRET = "root-only words"


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """A good dataset, and an empty current directory beside it."""
    made = make(tmp_path / "elsewhere" / "theirs", {"c": planted}, blocks=2)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return made


def everything(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def rejected(
    folder: Path, code: str, told: str = "", name: str | None = None, bounds: Bounds = BOUNDS
) -> None:
    """The import ends with this code, what is told of it, and nothing new around it."""
    top = folder.parent.parent
    before = everything(top)
    with refused(UsageError, code) as refusal:
        import_folder(folder, name, bounds=bounds)
    assert told in str(refusal.value)
    assert everything(top) - before <= {"here/datasets"}
    assert not list(Path("datasets").glob("*"))


def card_with(dataset: Dataset, old: str, new: str) -> None:
    path = dataset.folder / "card.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_a_good_one_is_copied_whole(theirs: Dataset) -> None:
    made = import_folder(theirs.folder)
    assert made.folder == Path("datasets/theirs")
    assert everything(made.folder) == everything(theirs.folder)
    assert made.runs().equals(theirs.runs())
    assert [p.name for p in Path("datasets").iterdir()] == ["theirs"]
    assert made.folder.stat().st_mode & 0o055
    assert all(not path.stat().st_mode & 0o111 for path in made.folder.rglob("*.*"))


ESCAPES = (
    *("../../escaped", "/tmp/escaped", "..", ".", "", ".hidden", "-rf", "a/b", "a\\u0000b"),
    *("a\\nb", "a b", "ä", "x" * 81, "a;id", "$(id)", "~", "a\\u001b[31m"),
)


@pytest.mark.parametrize("name", ESCAPES)
def test_the_name_on_the_card_stays_in_the_folder(theirs: Dataset, name: str) -> None:
    card_with(theirs, 'name = "theirs"', f'name = "{name}"')
    rejected(theirs.folder, "config.invalid", " name: ")


@pytest.mark.parametrize("name", ["../../escaped", "/tmp/escaped", ".x", "-x", "a\nb", "a\0b", ""])
def test_the_name_of_the_command_line_too(theirs: Dataset, name: str) -> None:
    rejected(theirs.folder, "name.invalid", "--name: ", name)


@pytest.mark.parametrize("key", ["../c", "/etc/c", "c.000", "c+", "_c", "c\\n", "c*"])
def test_the_key_of_a_cell_stays_in_its_folders(theirs: Dataset, key: str) -> None:
    card_with(theirs, 'key = "c"', f'key = "{key}"')
    rejected(theirs.folder, "config.invalid", ".key: ")


@pytest.mark.parametrize(
    "name", ["/tmp/app.toml", "app.toml", "../x", "a/b", "./a", "-a", "a+b.toml"]
)
@pytest.mark.parametrize("key", ["app", "cluster"])
def test_what_a_card_names_is_looked_up_by_name(theirs: Dataset, key: str, name: str) -> None:
    """A path would be a program of the stranger's choice, run by: dataset trace."""
    old = {"app": 'app = "micro"', "cluster": 'cluster = "local"'}[key]
    card_with(theirs, old, f'{key} = "{name}"')
    rejected(theirs.folder, "config.invalid", f".{key}: ")


def _link(path: Path) -> None:
    secret = path.parent / "secret"
    path.symlink_to("/etc/passwd" if not secret.exists() else secret)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        os.chdir(path.parent)  # The address of a socket is short.
        made.bind(path.name)


def _device(path: Path) -> None:
    try:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))  # /dev/zero
    except PermissionError:
        pytest.skip("only root makes devices")


@pytest.mark.parametrize("place", ["card.toml", "settings/c.json", "shards/c.000.parquet", "x.md"])
@pytest.mark.parametrize(
    ("spoil", "kind"),
    [(_link, "link"), (os.mkfifo, "fifo"), (_socket, "socket"), (_device, "device")],
)
def test_what_is_no_file_is_refused(
    theirs: Dataset, place: str, spoil: Callable[[Path], None], kind: str
) -> None:
    here = Path.cwd()
    path = theirs.folder / place
    path.unlink(missing_ok=True)
    spoil(path)
    os.chdir(here)
    if place == "card.toml" and kind != "link":
        # Without a card it is no dataset; the same words or those.
        with pytest.raises(UsageError):
            import_folder(theirs.folder)
        return
    rejected(theirs.folder, "dataset.foreign_file", f" {kind}")


def test_a_linked_folder_is_refused(theirs: Dataset) -> None:
    elsewhere = theirs.folder.parent / "shards"
    shutil.move(theirs.folder / "shards", elsewhere)
    (theirs.folder / "shards").symlink_to(elsewhere)
    rejected(theirs.folder, "dataset.foreign_file", " link")


def test_a_huge_file_is_not_read(theirs: Dataset) -> None:
    with (theirs.folder / "README.md").open("wb") as file:
        file.truncate(1 << 42)
    began = time.process_time()
    rejected(theirs.folder, "dataset.foreign_file", " 64 MiB")
    assert time.process_time() - began < 60


def test_many_and_much(theirs: Dataset) -> None:
    for number in range(30):
        (theirs.folder / "features" / f"f{number}.json").parent.mkdir(exist_ok=True)
        (theirs.folder / "features" / f"f{number}.json").write_text("x" * 1000)
    rejected(theirs.folder, "dataset.too_large", " 20 ", bounds=Bounds(entries=20))
    rejected(theirs.folder, "dataset.too_large", " 0 MiB", bounds=Bounds(bytes=20_000))
    rejected(theirs.folder, "dataset.foreign_file", " 900 bytes", bounds=Bounds(file_bytes=900))


@pytest.mark.parametrize(
    "name", ["-rf", ".hidden", "a b", "a\nb", b"\xff".decode(errors="surrogateescape")]
)
def test_files_have_plain_names(theirs: Dataset, name: str) -> None:
    (theirs.folder / "shards" / name).write_text("x")
    rejected(theirs.folder, "dataset.foreign_file", repr(name))


@pytest.mark.parametrize("name", ["run.sh", "shards/run.sh", "spaces/x.json", "more/x.toml"])
def test_what_nobody_reads_does_not_belong(theirs: Dataset, name: str) -> None:
    path = theirs.folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("x")
    rejected(theirs.folder, "dataset.foreign_file", name.removesuffix("/x.toml"))


def test_folders_are_not_deep(theirs: Dataset) -> None:
    (theirs.folder / "shards" / "deep").mkdir()
    rejected(theirs.folder, "dataset.foreign_file", "deep")


def test_features_are_checked(theirs: Dataset) -> None:
    (theirs.folder / "features").mkdir()
    (theirs.folder / "features" / "c.json").write_text(json.dumps({"schema": 3}))
    rejected(theirs.folder, "features.version", "features/c.json: ")


def test_runs_of_another_cell_are_refused(theirs: Dataset) -> None:
    path = shard_path(theirs.folder, "c", 0)
    table = pq.read_table(path)
    other = pa.array(["../d"] * len(table))
    pq.write_table(table.set_column(table.schema.get_field_index("cell"), "cell", other), path)
    rejected(theirs.folder, "dataset.mixed", "'../d'")


def rows(count: int, **columns: object) -> pa.Table:
    """Equal rows, each text once."""
    zeros = pa.array([0] * count, pa.int32())
    data = {}
    for name in arrow_schema().names:
        kind = arrow_schema().field(name).type
        is_text = kind == pa.string()
        value = pa.array([columns.get(name, "f" if is_text else 1)], kind)
        data[name] = pa.DictionaryArray.from_arrays(zeros, value) if is_text else value.take(zeros)
    return pa.table(data)


def test_rows_are_counted_before_they_are_read(
    theirs: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = shard_path(theirs.folder, "c", 0)
    pq.write_table(rows(shards.ROWS + 1), path, compression="zstd")
    assert path.stat().st_size < 200_000
    read: list[str] = []
    monkeypatch.setattr(pq.ParquetFile, "read", lambda *_, **__: read.append("read"))
    rejected(theirs.folder, "dataset.too_large", f" {shards.ROWS + 1} ")
    assert not read


def test_rows_of_all_shards_are_counted(theirs: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autotune.datasets.exchange.MOST_RUNS", 10)
    rejected(theirs.folder, "dataset.too_large", " 10 ")


def test_a_long_text_is_not_written_out(theirs: Dataset) -> None:
    """One text of 500 kB in 100,000 rows is a small file and 50 GB in memory."""
    path = shard_path(theirs.folder, "c", 0)
    pq.write_table(rows(shards.ROWS, reason="x" * 500_000), path, compression="zstd")
    assert path.stat().st_size < 1 << 20
    rejected(theirs.folder, "dataset.too_large", " 500000 ")


@pytest.mark.parametrize("name", ["setting", "cell", "value_s"])
def test_columns_have_their_types(theirs: Dataset, name: str) -> None:
    path = shard_path(theirs.folder, "c", 0)
    table = pq.read_table(path)
    at = table.schema.get_field_index(name)
    pq.write_table(table.set_column(at, name, pa.array([[1]] * len(table))), path)
    rejected(theirs.folder, "dataset.damaged", f" {name} ")


def test_the_copy_is_what_was_checked(theirs: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever changes the folder after it was copied changes nothing here."""
    original = copy_folder

    def copied_and_changed(source: Path, target: Path, bounds: Bounds = BOUNDS) -> None:
        original(source, target, bounds)
        card_with(theirs, 'name = "theirs"', 'name = "changed"')
        shutil.rmtree(theirs.folder / "shards")

    monkeypatch.setattr("autotune.datasets.exchange.copy_folder", copied_and_changed)
    made = import_folder(theirs.folder)
    assert made.folder == Path("datasets/theirs")
    assert len(load("theirs").runs())


def test_a_link_in_the_place_of_the_dataset_is_not_followed(theirs: Dataset) -> None:
    Path("datasets").mkdir()
    Path("datasets/theirs").symlink_to(theirs.folder.parent / "nowhere")
    with refused(UsageError, "dataset.exists"):
        import_folder(theirs.folder)
    assert not (theirs.folder.parent / "nowhere").exists()


def test_what_a_kill_leaves_is_no_dataset(theirs: Dataset) -> None:
    """Killed when everything is copied, right before the last step."""
    script = (
        "import os, signal\n"
        "from pathlib import Path\n"
        "from autotune.datasets import exchange\n"
        "def killed(part, folder, name):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "exchange._check_copy = killed\n"
        f"exchange.import_folder(Path({str(theirs.folder)!r}))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], check=False)
    assert done.returncode == -signal.SIGKILL
    [left] = Path("datasets").iterdir()
    assert left.name.startswith(".")
    assert (left / "card.toml").is_file()
    with refused(UsageError, "dataset.unknown"):
        load("theirs")
    assert "theirs" not in [folder.name for folder in list_datasets()]
    import_folder(theirs.folder)
    assert {p.name for p in Path("datasets").iterdir()} == {"theirs"}


def test_an_import_under_way_is_left_alone(theirs: Dataset) -> None:
    """Whatever the clock says: its folder may look old."""
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from autotune.datasets.exchange import partial_folder\n"
        "with partial_folder(Path('datasets')) as part:\n"
        "    print(part, flush=True)\n"
        "    sys.stdin.read()\n"
    )
    words = [sys.executable, "-c", script]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        part = Path(other.stdout.readline().strip())
        os.utime(part, (0, 0))
        import_folder(theirs.folder)
        assert part.is_dir()
        other.kill()
        other.wait()
        import_folder(theirs.folder, "again")
        assert not part.exists()


def test_interrupted_it_leaves_nothing(theirs: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("autotune.datasets.exchange._check_copy", interrupted)
    with pytest.raises(KeyboardInterrupt):
        import_folder(theirs.folder)
    assert not list(Path("datasets").iterdir())


def test_a_fifo_in_a_dataset_that_is_read_does_not_wait(theirs: Dataset) -> None:
    """Datasets are also read where they lie, without an import."""
    path = theirs.folder / "settings" / "all.json"
    (theirs.folder / "settings" / "c.json").unlink()
    os.mkfifo(path)
    with refused(UsageError, "dataset.unreadable") as refusal:
        load(theirs.folder).settings("c")
    assert "fifo" in str(refusal.value)
    (theirs.folder / "card.toml").unlink()
    os.mkfifo(theirs.folder / "card.toml")
    with refused(UsageError, "dataset.unreadable") as refusal:
        load(theirs.folder)
    assert "fifo" in str(refusal.value)


def test_arguments_of_a_card_are_not_run(
    theirs: Dataset, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from autotune.cli import main

    card_with(theirs, 'app = "micro"', 'app = "micro"\nargs = ["--out", "/etc/x"]')
    monkeypatch.setattr(
        "autotune.api.features.traced_features", lambda *_, **__: pytest.fail("run")
    )
    assert main(["dataset", "trace", str(theirs.folder)]) == 2
    said = " ".join(capfd.readouterr().err.split())
    assert "c: micro ['--out', '/etc/x']" in said
    assert "add --run-recorded" in said
