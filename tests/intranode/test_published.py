"""The file of published settings: what is read, what is refused, who comes before whom."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from runner.runtimes import intranode
from runner.runtimes.intranode import CAB, Config
from runner.runtimes.intranode.config import SWITCHES
from runner.runtimes.intranode.publish import main
from tests.refusals import refusal, refused


def fresh(monkeypatch: pytest.MonkeyPatch, home: Path, file: Path | None = None) -> None:
    """A user's configuration of its own; ``file``: the one that CAB_CONFIG names."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    monkeypatch.delenv(CAB.variable, raising=False)
    if file is not None:
        monkeypatch.setenv(CAB.variable, str(file))


def configured(*words: str) -> tuple[Config, str]:
    parser = argparse.ArgumentParser()
    intranode.add_arguments(parser)
    return CAB.from_options(parser.parse_args(words))


def test_switches_come_before_the_file_and_the_file_before_defaults(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fresh(monkeypatch, tmp_path)
    assert configured() == (Config(), "defaults")
    assert configured("--stealers", "2") == (Config(stealers=2), "switches")
    usual = tmp_path / "autotune" / "cab.json"
    CAB.write(usual, {"stealers": 3, "bundle": "off"})
    assert configured() == (Config(stealers=3, bundle=False), str(usual))
    assert CAB.machine_config() == configured()
    assert configured("--stealers", "2") == (
        Config(stealers=2, bundle=False),
        f"{usual}, switches",
    )
    assert configured("--steal-config", "none") == (Config(), "defaults")
    other = tmp_path / "other.json"
    CAB.write(other, {"access": "lo-to-hi"})
    assert configured("--steal-config", str(other)) == (Config(access="lo-to-hi"), str(other))
    fresh(monkeypatch, tmp_path, other)
    assert configured() == (Config(access="lo-to-hi"), str(other))
    monkeypatch.setenv(CAB.variable, "")
    assert configured() == (Config(), "defaults")


def _values(known: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    if isinstance(known[0], str):
        return st.sampled_from(known)
    least, most = known
    return st.integers(-(-least // 64), most // 64).map(lambda n: min(max(64 * n, least), most))


SETTINGS = st.fixed_dictionaries(
    {}, optional={switch: _values(known) for switch, (_, known, _) in SWITCHES.items()}
)


@given(SETTINGS)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, settings: dict[str, Any]
) -> None:
    ends = (settings.get("medium-from", 98304), settings.get("large-from", 524288))
    path = tmp_path_factory.getbasetemp() / "cab.json"
    if ends[0] > ends[1]:
        with pytest.raises(intranode.ConfigError, match="above --large-from"):
            CAB.write(path, settings)
        return
    CAB.write(path, settings)
    fields = CAB.read(path)
    assert len(fields) == len(settings)
    for switch, value in settings.items():
        field = SWITCHES[switch][0]
        assert fields[field] == ({"on": True, "off": False}.get(value, value))


BAD = [
    "[]",
    "{",
    "\x00\xff",
    "[" * 50000,
    " " * 70000,
    json.dumps({"schema": "cab/2", "settings": {}}),
    json.dumps({"schema": "cab/1"}),
    json.dumps({"schema": "cab/1", "settings": {}, "x": 1}),
]
BAD_SETTINGS: list[dict[str, Any]] = [
    {"chunks": 1},
    {"chunk-small": 100},
    {"chunk-small": True},
    {"chunk-small": 64.0},
    {"stealers": 5000},
    {"bundle": "maybe"},
    {"bundle": 1},
    {"access": "up"},
    {"large-from": 1},
]


def test_a_wrong_file_is_one_message_that_names_it(
    tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    path = tmp_path / "cab.json"
    messages = []
    for text in (*BAD, *(json.dumps({"schema": "cab/1", "settings": one}) for one in BAD_SETTINGS)):
        path.write_text(text, encoding="latin-1")
        message = refusal(intranode.ConfigError, configured, "--steal-config", str(path))
        assert "CAB_CONFIG=" in message
        messages.append(message.replace(str(path), "FILE"))
    assert all("FILE" in message for message in messages)
    assert messages == snapshot


def test_a_file_that_is_named_must_be_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fresh(monkeypatch, tmp_path, tmp_path / "none.json")
    with refused(intranode.ConfigError, "intranode.settings_file"):
        CAB.machine_config()


def test_settings_become_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    result, path = tmp_path / "result.json", tmp_path / "new" / "cab.json"
    recommended = {"variant": "cab", "chunk_large": "131072", "bundle": "off", "btl": "self,sm"}
    found = {"status": "recommended", "recommended": {"setting": recommended}}
    result.write_text(json.dumps(found))
    words = ["--from", f"@{result}", "--from", "chunk_small=8192,bundle=0", "-o", str(path)]
    assert main(words) == 0
    expected = {"bundle": False, "chunk_large": 131072, "chunk_small": 8192}
    assert CAB.read(path) == expected
    assert main(["--from", "stealers=-1,steal_strategy=mixed", "-o", str(path)]) == 0
    assert CAB.read(path) == {"stealers": -1, "strategy": "mixed"}
    before = path.read_text()
    capsys.readouterr()
    result.write_text(json.dumps({"status": "keep_default", "recommended": {"setting": {}}}))
    other = tmp_path / "other.json"
    other.write_text(json.dumps({**found, "recommended": {"setting": {"btl": "self,sm"}}}))
    messages = []
    for wrong in (
        ["chunk_small=1k"],
        ["chunk_small"],
        ["colour=red"],
        ["bundle=on", "bundle=off"],
        [f"@{result}"],
        [f"@{other}"],
        [f"@{tmp_path}/no"],
    ):
        options = [word for setting in wrong for word in ("--from", setting)]
        assert main([*options, "-o", str(path)]) == 2
        messages.append(capsys.readouterr().err.replace(str(tmp_path), "PLACE"))
    assert messages == snapshot
    assert path.read_text() == before
