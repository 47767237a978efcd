"""Readers of what lies in homes, databases and folders of strangers, as parsers of one text.

A dataset's folder is described by a list of what was done to a good one.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sqlalchemy import make_url

from autotune.datasets.dataset import _read_settings
from autotune.datasets.exchange import Bounds, import_folder
from autotune.datasets.shards import read_shard, shard_path, stated_rows
from autotune.errors import AutotuneError
from autotune.names import is_plain, slug
from autotune.publish.published_files import published, record_path
from autotune.space import Parameter, Setting, Space
from autotune.store.location import locate
from autotune.store.studies import to_study
from autotune.store.trials import to_trial
from autotune.study.search_result import Result
from autotune.study.study_request import SearchRequest
from autotune.study.trial_store import StoredTrials, trial_of
from autotune.targets.setting_syntax import read_setting_file
from autotune.workers.worker_request import WorkerRequest, requests_of, with_request
from autotune.workers.worker_trust import TrustVerdict, WorkerKey, read_key, roles_for
from runner.testbed import state
from tests.contract.store_samples import key
from tests.datasets.conftest import make, planted
from tests.fuzz.values import damaged_json

STUDY = "5" * 64
KEY = WorkerKey(bytes(range(32)))
TARGET = {"input": "tiny", "program": ["./a", "-x"]}
REQUEST = WorkerRequest(SearchRequest.of("x", target=TARGET, trials=8), "/home/me")
REQUESTS = json.dumps(with_request(None, KEY.sign(REQUEST, STUDY)))
TRUST = '[[database]]\nurl = "postgresql://db:5433/autotune"\nroles = ["alice", "bob"]\n'
SETTINGS = '[\n{},\n{"eager": 1024, "flag": 1},\n{"eager": 8192}\n]\n'
BOUNDS = Bounds(entries=40, file_bytes=1 << 20, bytes=4 << 20)


@contextlib.contextmanager
def home() -> Iterator[Path]:
    """A temporary home of this process."""
    names = ("XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME")
    before = {name: os.environ.get(name) for name in names}
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(dict.fromkeys(names, folder))
        try:
            yield Path(folder)
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


def _written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    path.chmod(0o600)
    return path


def worker_request(text: str) -> object:
    """Read, shown and checked; a request that is not word by word the signed one is no one's."""
    data = _object(text)
    found = requests_of(data)
    for one in found:
        good = (one.search, one.cwd) == (REQUEST.search, REQUEST.cwd)
        assert good or not KEY.is_author(one, STUDY)
        shown = TrustVerdict(one, False, "").words
        assert all(c.isprintable() or c == "\n" for c in shown)
        one.search.words()
    return with_request(data, REQUEST)


def _object(text: str) -> dict[str, Any]:
    """As the store hands it on."""
    row = SimpleNamespace(
        id=1, hash=STUDY, context_hash="", key=key().to_json(), status="new", result=None,
        created_at="", tool_version="", request=text,
    )  # fmt: skip
    request = to_study(row).request  # type: ignore[arg-type]
    return request or {}


def key_file(text: str) -> object:
    with home() as folder:
        return read_key(_written(folder / "worker.key", text))


def trust_file(text: str) -> object:
    return roles_for(text, "trust.toml", make_url("postgresql://me@db:5433/autotune"))


def study_row(text: str) -> object:
    """``hash``, ``key``, ``result`` and ``request`` as the columns hold them."""
    data = _columns(text, ("hash", "key", "result", "request"))
    row = SimpleNamespace(
        id=1, context_hash="", status="new", created_at="", tool_version="", **data
    )
    found = to_study(row)  # type: ignore[arg-type]
    assert is_plain(found.hash)
    if found.result is not None:
        Result.from_json(found.result)
    return found


SPACE = Space("s", (Parameter("eager", (1024, 8192)), Parameter("how", ("a", "b"))))


def trial_row(text: str) -> object:
    data = _columns(text, ("setting", "attrs"))
    row = SimpleNamespace(
        id=1, study_id=1, number=0, setting_key="", origin="search", state="ok", estimate=0.5,
        reason="", created_at="", finished_at=None, owner_host="", owner_scope="", owner_pid=1,
        owner_start=1, heartbeat_at=None, **data,
    )  # fmt: skip
    trial = trial_of(to_trial(row))  # type: ignore[arg-type]
    study: Any = SimpleNamespace(hash=STUDY)
    StoredTrials(None, study, SPACE)._refuse_strange(trial)  # type: ignore[arg-type]
    for setting in (trial.setting, trial.effective):
        assert set(setting) <= {"eager", "how"}
        SPACE.launched(setting)
    return trial


def _columns(text: str, names: tuple[str, ...]) -> dict[str, Any]:
    """Texts of columns from a JSON object; anything else stands for all of them."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        return dict.fromkeys(names, text)
    found = {name: data.get(name) for name in names}
    return {n: v if v is None or isinstance(v, str) else json.dumps(v) for n, v in found.items()}


def published_list(text: str) -> object:
    with home():
        _written(record_path(), text)
        return [path.name for path in published()]


def testbed_record(text: str) -> object:
    with home():
        found = None
        place = state.directory("testbed")
        _written(place / state.RECORD, text.replace("PLACE", str(place)))
        found = state.read_testbed("testbed")
        if found is not None:
            assert found.agent.parent == place
            state.works(found)
        return found


def database_url(text: str) -> object:
    return locate(text).label


def file_of(read: Callable[[Path], object], name: str) -> Callable[[str], object]:
    def parse(text: str) -> object:
        with home() as folder:
            return read(_written(folder / name, text))

    return parse


settings_list = file_of(_read_settings, "all.json")
setting_file = file_of(read_setting_file, "setting")
shard = file_of(lambda path: (stated_rows(path), read_shard(path)), "c.000.parquet")


@functools.cache
def _good() -> Path:
    """A dataset of one cell that everybody could import."""
    place = Path(tempfile.mkdtemp(prefix="autotune-fuzz-dataset-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return make(place / "good", {"c": planted}, blocks=1).folder


def shard_text() -> str:
    """A shard as text from which the same bytes come again."""
    return shard_path(_good(), "c", 0).read_bytes().decode("utf-8", "surrogateescape")


def dataset_folder(text: str) -> object:
    """Import a damaged folder: a dataset comes of it, or nothing; and nothing beside it."""
    try:
        steps = json.loads(text)
    except (ValueError, RecursionError):
        steps = [["write", "card.toml", text]]
    with tempfile.TemporaryDirectory() as top:
        source, into = Path(top, "source"), Path(top, "here", "datasets")
        shutil.copytree(_good(), source)
        into.mkdir(parents=True)
        for step in steps if isinstance(steps, list) else []:
            if isinstance(step, list) and len(step) == 3 and all(isinstance(s, str) for s in step):
                with contextlib.suppress(OSError, ValueError):
                    _spoil(source, *step)
        before = _all(top)
        try:
            made = import_folder(source, None, into, BOUNDS)
        except AutotuneError:
            assert not list(into.iterdir())
            assert _all(top) == before
            raise
        assert is_plain(made.folder.name)
        assert [made.folder] == list(into.iterdir())
        assert {p for p in _all(top) - before if not p.startswith(str(made.folder))} == set()
        assert all(not p.is_symlink() for p in made.folder.rglob("*"))
        return made.runs()


def _all(top: str) -> set[str]:
    return {os.fsdecode(path) for path in Path(top).rglob("*")}


def _spoil(folder: Path, what: str, name: str, value: str) -> None:
    """One thing done to the folder; the harness itself stays in it."""
    parts = [part for part in name.split("/") if part not in ("", ".", "..")]
    path = folder.joinpath(*parts) if parts else folder / slug(name)
    if what == "replace":
        old, _, new = value.partition(" -> ")
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
        path.write_bytes(text.replace(old, new).encode("utf-8", "surrogateescape"))
        return
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    if what == "link":
        path.symlink_to(value)
    elif what == "fifo":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    elif what == "sparse":
        with path.open("wb") as file:
            file.truncate(int(value) % (1 << 45))
    elif what == "write":
        path.write_bytes(value.encode("utf-8", "surrogateescape"))


STEPS = (
    '[["replace", "card.toml", "name = \\"good\\" -> name = \\"../../escaped\\""]]',
    '[["replace", "card.toml", "key = \\"c\\" -> key = \\"../c\\""]]',
    '[["replace", "card.toml", "app = \\"micro\\" -> app = \\"/tmp/evil.toml\\""]]',
    '[["link", "settings/c.json", "/etc/passwd"], ["write", "features/c.json", "{}"]]',
    '[["link", "shards", "/etc"], ["fifo", "space.toml", ""]]',
    '[["sparse", "README.md", "4398046511104"], ["write", "-rf", "x"]]',
    '[["write", "LICENSE", "words"], ["write", ".hidden", "x"], ["sparse", "README.md", "99"]]',
    '[["replace", "settings/c.json", "eager -> plm_ssh_agent"]]',
    '[["write", "shards/d.000.parquet", "PAR1"], ["write", "run.sh", "id"]]',
)
"""What was done to folders that are refused."""
HARMLESS = '[["write", "README.md", "words"], ["replace", "card.toml", "title = -> title ="]]'


def damaged_steps(seeds: Sequence[str], seed: int) -> str:
    """Other things done to a folder, which begin from those that are refused, too."""
    return damaged_json((*seeds, *STEPS), seed)


STUDY_ROW = json.dumps(
    {
        "hash": STUDY,
        "key": json.loads(key().to_json()),
        "request": json.loads(REQUESTS),
        "result": Result(
            "keep_default", Setting({}), STUDY[:12], {"name": "openmpi", "version": "5"}, "m",
            "local", "a", 2, "ga", 0,
        ).to_json(),
    }
)  # fmt: skip
TRIAL_ROW = json.dumps(
    {"setting": {"eager": 1024, "how": "b"}, "attrs": {"effective": "eager=1024", "reused": True}}
)
TESTBED = json.dumps(
    {
        "name": "testbed", "directory": "PLACE", "token": "t", "subnet": "198.18.1",
        "nodes": [
            {"name": "testbed1", "address": "198.18.1.1", "cpus": [0],
             "process": {"pid": 1, "started_ticks": 5}}
        ],
        "line": {"pid": 1, "started_ticks": 5}, "line_cpu": 1, "latency_s": 0.001,
        "rate_bps": 1000000, "mtu": 1500, "compensation_s": 0.0, "shaper": "none",
    }
)  # fmt: skip
