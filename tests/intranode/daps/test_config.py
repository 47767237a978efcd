"""The configuration, its switches, and the file of published settings."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from runner.runtimes.intranode import ConfigError
from runner.runtimes.intranode.daps import DAPS, Config, add_arguments
from runner.runtimes.intranode.publish import main
from tests.refusals import refusal


def test_a_wrong_configuration_is_refused(snapshot: SnapshotAssertion) -> None:
    wrong: list[dict[str, Any]] = [
        {"progress": "magic"},
        {"order": "none"},
        {"waiting": "none"},
        {"eager": -1},
        {"ghosts": 1},
        {"thread_place": "dedicated", "progress": "none"},
    ]
    assert [refusal(ConfigError, lambda one: Config(**one), one) for one in wrong] == snapshot


def configured(*words: str) -> tuple[Config, str]:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return DAPS.from_options(parser.parse_args(words))


def test_one_rank_is_set_apart_unless_said_otherwise() -> None:
    assert Config().ghost_count == 0
    assert Config(progress="ghosts").ghost_count == 1
    assert Config(progress="ghosts", ghosts=3).ghost_count == 3


def test_switches_come_before_the_file_and_the_file_before_defaults(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("DAPS_CONFIG", raising=False)
    assert configured() == (Config(), "defaults")
    assert main(["--library", "daps", "--from", "progress=thread,filter=off,eager=0"]) == 0
    usual = tmp_path / "autotune" / "daps.json"
    published = Config(progress="thread", filter=False, eager=0)
    assert configured() == (published, str(usual))
    assert DAPS.machine_config() == configured()
    found, source = configured("--poll-gap-us", "4", "--thread-place", "dedicated")
    assert found == Config(
        progress="thread", filter=False, eager=0, poll_gap_us=4, thread_place="dedicated"
    )
    assert source == f"{usual}, switches"
    assert configured("--daps-config", "none") == (Config(), "defaults")
    monkeypatch.setenv("DAPS_CONFIG", "")
    assert configured() == (Config(), "defaults")


def test_a_file_of_another_library_is_refused(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    path = tmp_path / "daps.json"
    messages = []
    for text in (
        '{"schema": "cab/1", "settings": {}}',
        '{"schema": "daps/1", "settings": {"stealers": 1}}',
        '{"schema": "daps/1", "settings": {"ghosts": 1}}',
    ):
        path.write_text(text)
        message = refusal(ConfigError, configured, "--daps-config", str(path))
        assert str(path) in message
        messages.append(message.replace(str(path), "FILE"))
    assert messages == snapshot
