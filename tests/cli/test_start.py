"""Commands that only read start without the packages that measuring and analysis need."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from autotune.space import Setting
from autotune.store import Store
from autotune.store.keys import COMPARE, NOISE
from autotune.study.search_result import Finalist, Result
from tests.contract.store_samples import key, ok

HEAVY = {
    "cmaes", "jinja2", "libcst", "llvmlite", "matplotlib", "mpi4py", "numba", "numpy", "optuna",
    "pandas", "psutil", "psycopg", "pyarrow", "scipy", "sklearn", "statsmodels", "threadpoolctl",
    "yaml",
}  # fmt: skip
"""What no command of this file may import."""
DATABASE = {"sqlalchemy"}
"""What is imported only to open a results database."""
CODE = """
import json, sys
import autotune.cli
for words in json.loads(sys.argv[1]):
    code = autotune.cli.main(words)
    sys.stdout.flush()
    print(code, *sys.modules, file=sys.stderr)
"""
"""One command after the other; what one has imported stays for those after it."""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results database with a finished search, a comparison and a measurement of noise."""
    place = tmp_path_factory.mktemp("start") / "results.db"
    setting = Setting({"eager": 4096})
    with Store.open(str(place)) as store:
        study = store.study(key())
        trial = store.add_trial(study.id, setting.to_json(), setting.key)
        store.add_run(study.id, trial.id, "search", 0, 0, ok(0.5))
        finalist = Finalist(setting, "better", 0.1, (0.05, 0.2), None, 12, "shown")
        slow = {"slow": 0, "launches": 9, "default_slow": 0, "default_launches": 9,
                "verdict": "no difference shown", "alpha": 0.05, "rarer_from": None,
                "more_from": 0.5, "threshold": 2.0}  # fmt: skip
        result = Result(
            "recommended", setting, study.hash[:12], {"name": "openmpi", "version": "5.0"}, "m",
            "local", "app", 2, "ga", 0, gain=0.1, gain_ci=(0.05, 0.2), finalists=[finalist],
            slow_launches=slow, default={"median_s": 1.0, "n": 9},
        )  # fmt: skip
        store.set_result(study.id, "recommended", result.to_json())
        for strategy in (COMPARE, NOISE):
            other = store.study(key(strategy=strategy))
            store.add_run(other.id, None, "default", 0, 0, ok(0.5))
    return place


def _imported(database: Path | None, lines: Sequence[Sequence[str]]) -> dict[str, set[str]]:
    """The packages that a fresh process has imported after each of the commands."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, json.dumps(lines)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"AUTOTUNE_STORE": str(database or "")},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    found = {}
    told = [line.split() for line in done.stderr.splitlines() if " sys " in line]
    for words, (code, *modules) in zip(lines, told, strict=True):
        assert code == "0", done.stderr
        found[" ".join(words)] = {name.partition(".")[0] for name in modules}
    return found


PLAIN = [
    ("--help",), ("--version",), ("apps",), ("apps", "jacobi3d"), ("cluster", "list"),
    ("space", "list"), ("dataset", "list"), ("cluster", "--help"), ("store", "--help"),
]  # fmt: skip
READING = [
    ("studies",), ("studies", "--json", "-"), ("status",), ("show", "1"), ("show", "2"),
    ("show", "3"),
]  # fmt: skip


LIGHT = [
    ("--help",), ("--version",), ("studies",), ("status",), ("show", "2"), ("show", "3"),
]  # fmt: skip
"""The studies 2 and 3 have no answer."""


@pytest.fixture(scope="module")
def imported(database: Path) -> dict[str, set[str]]:
    """What one process has imported after all of these, in this order."""
    backup = ("store", "backup", str(database.with_name("copy.db")), "--json", "-")
    return _imported(database, [*PLAIN, ("studies", "--help"), *READING, backup])


def test_a_command_without_a_database_imports_little(imported: dict[str, set[str]]) -> None:
    for line in PLAIN:
        assert not imported[" ".join(line)] & (HEAVY | DATABASE), line


def test_help_of_studies_imports_the_database_only(imported: dict[str, set[str]]) -> None:
    """The module of a command is imported for its help, and that of studies has the database's."""
    assert not imported["studies --help"] & HEAVY


def test_a_command_that_reads_studies_imports_the_database_only(
    imported: dict[str, set[str]],
) -> None:
    *_, backup = imported  # The last line.
    for line in (*map(" ".join, READING), backup):
        found = imported[line]
        assert "sqlalchemy" in found, "the test looks at the wrong process"
        assert not found & HEAVY, line


def test_a_study_without_an_answer_is_read_without_models(database: Path) -> None:
    """The import of pydantic takes half as long as a short command."""
    for line, found in _imported(database, LIGHT).items():
        assert not found & (HEAVY | {"pydantic"}), line
    assert "sqlalchemy" in found, "the test looks at the wrong process"


def test_help_of_a_command_that_measures_needs_no_search_or_statistics() -> None:
    """Completion of options imports the module of the command, too."""
    commands = ("search", "compare", "run", "noise", "features", "predict", "publish", "train")
    lines = [(command, "--help") for command in commands]
    for line, found in _imported(Path("none.db"), lines).items():
        assert not found & (HEAVY - {"numpy"}), line


@pytest.mark.parametrize("package", ["space", "datasets", "strategies"])
def test_each_lazy_name_is_there_and_an_unknown_one_is_an_error(package: str) -> None:
    module: Any = importlib.import_module(f"autotune.{package}")
    for name in module.__all__:
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        _ = module.nothing


@pytest.mark.mpi
def test_a_parameter_is_explained_without_what_measuring_needs(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database is opened only where there is one."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    line = ("explain", "coll_tuned_priority", "--mpi", "openmpi", "--quick")
    with_database = _imported(database, [line])[" ".join(line)]
    assert not with_database & HEAVY
    assert "sqlalchemy" in with_database
    assert not _imported(None, [line])[" ".join(line)] & (HEAVY | DATABASE)
