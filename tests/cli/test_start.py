"""Commands that only read start without the packages that measuring and analysis need."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from autotune.space import Setting
from autotune.store import Store
from autotune.store.keys import COMPARE, NOISE
from autotune.study.result import Finalist, Result
from tests.contract.store_samples import key, ok

HEAVY = {
    "jinja2", "libcst", "llvmlite", "matplotlib", "numba", "numpy", "optuna", "pandas", "psycopg",
    "pyarrow", "scipy", "sklearn", "statsmodels", "threadpoolctl", "yaml",
}  # fmt: skip
"""What no command of this file may import."""
DATABASE = {"sqlalchemy", "psutil"}
"""What is imported only to open a results database."""
CODE = """
import sys
import autotune.cli
code = autotune.cli.main(sys.argv[1:])
print(*sys.modules, file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results database with a finished search, a comparison and a measurement of noise."""
    place = tmp_path_factory.mktemp("start") / "results.db"
    setting = Setting({"eager": 4096})
    with Store.open(str(place)) as store:
        study = store.study(key())
        trial = store.add_trial(study.id, setting.to_json(), setting.key)
        store.add_run(study.id, trial.id, "search", 0, 0, ok(0.5))
        finalist = Finalist(setting, "better", 0.1, 0.05, 0.2, 12, "shown")
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


def _imported(database: Path, *words: str) -> set[str]:
    """The packages that a fresh process has imported after the command."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, *words],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"AUTOTUNE_STORE": str(database)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    return {name.partition(".")[0] for name in done.stderr.splitlines()[-1].split()}


@pytest.mark.parametrize(
    "words",
    [
        ("--help",), ("--version",), ("apps",), ("apps", "jacobi3d"), ("cluster", "list"),
        ("space", "list"), ("dataset", "list"), ("cluster", "--help"), ("studies", "--help"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_command_without_a_database_imports_little(words: tuple[str, ...]) -> None:
    assert not _imported(Path("none.db"), *words) & (HEAVY | DATABASE - _of_help(words))


def _of_help(words: tuple[str, ...]) -> set[str]:
    """The module of a command is imported for its help, and that of studies has the database's."""
    return DATABASE if words[0] == "studies" else set()


@pytest.mark.parametrize(
    "words",
    [
        ("studies",), ("studies", "--json", "-"), ("status",), ("show", "1"), ("show", "2"),
        ("show", "3"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_command_that_reads_studies_imports_the_database_only(
    database: Path, words: tuple[str, ...]
) -> None:
    found = _imported(database, *words)
    assert "sqlalchemy" in found, "the test looks at the wrong process"
    assert not found & HEAVY


@pytest.mark.parametrize(
    "command", ["search", "compare", "run", "noise", "features", "predict", "publish", "train"]
)
def test_help_of_a_command_that_measures_needs_no_search_or_statistics(command: str) -> None:
    """Completion of options imports the module of the command, too."""
    found = _imported(Path("none.db"), command, "--help")
    assert not found & (HEAVY - {"numpy"})


@pytest.mark.parametrize("package", ["space", "datasets", "publish", "strategies"])
def test_each_lazy_name_is_there_and_an_unknown_one_is_an_error(package: str) -> None:
    module: Any = importlib.import_module(f"autotune.{package}")
    for name in module.__all__:
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        _ = module.nothing
