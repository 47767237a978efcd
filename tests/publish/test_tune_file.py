"""A parameter file is handed over only when a run has obeyed it."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.api.target import find_target
from autotune.publish.tune_file import NotObeyed, tune_text, write_tune_file
from autotune.space import Setting
from autotune.targets.request import TargetRequest
from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from tests.publish.apps import define_ping_pong


def test_the_text_has_one_double_dashed_line_a_parameter() -> None:
    text = tune_text({"b": "2", "a": "1"}, ["made by\n--mca evil 1"])
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert lines == ["--mca a 1", "--mca b 2"]


def test_a_value_with_a_blank_is_refused() -> None:
    with pytest.raises(NotObeyed):
        tune_text({"a": "1 --mca b 2"}, [])


@pytest.mark.mpi
def test_a_file_is_seen_to_take_effect(open_mpi: Library, work: Path) -> None:
    define_ping_pong(work, open_mpi)
    words = TargetRequest(app="ping-pong", ranks=2)
    target = find_target(words)
    space = target.space(None)
    setting = Setting.parse("btl_sm_eager_limit=8192")
    with Runner(adapter(target.library), guard=False) as runner:
        written = write_tune_file(work / "t.conf", target, space, setting, ["x"], runner)
        assert written == work / "t.conf"
        assert "--mca btl_sm_eager_limit 8192" in written.read_text()  # data
        assert write_tune_file(work / "n.conf", target, space, Setting(), [], runner) is None


@pytest.mark.mpi
def test_a_file_that_is_overruled_is_not_written(
    open_mpi: Library, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    define_ping_pong(work, open_mpi)
    words = TargetRequest(app="ping-pong", ranks=2)
    target = find_target(words)
    space = target.space(None)
    # The environment beats --tune (field.md G1).
    monkeypatch.setenv("OMPI_MCA_btl_sm_eager_limit", "1024")
    setting = Setting.parse("btl_sm_eager_limit=8192")
    with Runner(adapter(target.library), guard=False) as runner, pytest.raises(NotObeyed):
        write_tune_file(work / "t.conf", target, space, setting, [], runner)
    assert not (work / "t.conf").exists()
