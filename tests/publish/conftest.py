"""A store that holds a finished study, and a HOME in which files may be published."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autotune.config.cluster import load_cluster
from autotune.publish.content import Content, Evidence
from autotune.publish.formats import find
from autotune.publish.install import install
from autotune.publish.plan import plan_files
from autotune.publish.published_files import remember_file
from autotune.publish.source import PublicationSource
from autotune.space import Setting
from autotune.space.setting import read_value
from autotune.store import AppInfo, MachineInfo, MpiInfo, Store, StudyKey
from autotune.testing.format import evidence
from runner.machine import describe_machine
from runner.mpi.library import Library
from runner.types import RunRecord

MakeStudy = Callable[..., str]
LAUNCHED = {"mca": {"btl_sm_eager_limit": "8192"}}


def put_in_place(
    name: str,
    path: Path,
    library: Library,
    launched: dict[str, dict[str, str]] | None = None,
    seen: Evidence | None = None,
) -> None:
    """Publish a file of a format without the test runs that prove it."""
    proposal = PublicationSource(Content(launched or LAUNCHED), seen or evidence(), (), True)
    (one,) = plan_files(proposal, [find(name)], load_cluster("local"), library, path)
    install(one.path, one.text(one.content, library, "seen"), one.backup, lambda: None)
    remember_file(one.path)


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The HOME of the test: parameter files of a user go below it."""
    place = tmp_path_factory.mktemp("user")
    monkeypatch.setenv("HOME", str(place))
    return place


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "results.db"
    monkeypatch.setenv("AUTOTUNE_STORE", str(place))
    return place


@pytest.fixture
def make_study(store: Path) -> MakeStudy:
    """Store a search's result; ``study:HASH`` of it.  Changes go to the key or to the result."""

    def make(
        launched: dict[str, dict[str, str]] | None = None,
        result: dict[str, Any] | None = None,
        version: str = "5.0.11",
        **changes: Any,
    ) -> str:
        groups = LAUNCHED if launched is None else launched
        values = {n: read_value(v) for group in groups.values() for n, v in group.items()}
        setting = Setting(values)
        with Store.open(store) as opened:
            study = opened.study(_key(version, changes))
            opened.add_run(
                study.id,
                None,
                "confirm",
                0,
                0,
                RunRecord("ok", wall_s=1.0),
                setting.key,
                launched=groups,
            )
            found = {
                "status": "recommended",
                "recommended": {"setting": setting.to_json()},
                "gain": 0.08,
                "gain_ci95": [0.05, 0.11],
                "search_runs": 30,
                "confirmation_runs": 24,
            }
            opened.set_result(study.id, "recommended", found | (result or {}))
        return f"study:{study.hash[:12]}"

    return make


def _key(version: str, changes: dict[str, Any]) -> StudyKey:
    machine, cluster = describe_machine(), load_cluster("local")
    definition = cluster.model_dump_json(exclude_defaults=True)
    given: dict[str, Any] = {
        "app": AppInfo("jacobi3d", "python", "ab" * 32, (), "tiny", "json:solver_s", None),
        "machine": MachineInfo(
            machine.cores, machine.cpu_model, machine.memory_bytes, machine.kernel
        ),
        "mpi": MpiInfo("openmpi", version),
        "ranks": 2,
        "cluster": "local",
        "cluster_hash": hashlib.sha256(definition.encode()).hexdigest(),
        "space_name": "openmpi",
        "space_hash": "ef" * 32,
        "strategy": "ga",
    }
    return StudyKey(**given | changes)
