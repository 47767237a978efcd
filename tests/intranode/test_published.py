"""The file of published settings: what is read, what is refused, who comes before whom."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.runtimes import intranode
from runner.runtimes.intranode import CAB, Config
from runner.runtimes.intranode.config import SWITCHES
from runner.runtimes.intranode.publish import main
from tests.refusals import refused


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


BAD = {
    "[]": '"schema": "cab/1"',
    "{": "it is no JSON",
    "\x00\xff": "it is no JSON",
    "[" * 50000: "it is no JSON",
    " " * 70000: "it has more than 65536 bytes",
    json.dumps({"schema": "cab/2", "settings": {}}): '"schema": "cab/1"',
    json.dumps({"schema": "cab/1"}): 'expected "settings"',
    json.dumps({"schema": "cab/1", "settings": {}, "x": 1}): "unknown key 'x'",
}
BAD_SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({"chunks": 1}, "chunks is unknown; expected one of steal, "),
    ({"chunk-small": 100}, "chunk-small 100: expected a multiple of 64"),
    ({"chunk-small": True}, "chunk-small True: expected a whole number"),
    ({"chunk-small": 64.0}, "chunk-small 64.0: expected a whole number"),
    ({"stealers": 5000}, "stealers 5000: expected -1 to 4096"),
    ({"bundle": "maybe"}, "bundle maybe: expected on or off"),
    ({"bundle": 1}, "bundle 1: expected a word"),
    ({"access": "up"}, "access up: expected one of random"),
    ({"large-from": 1}, "medium-from 98304 is above --large-from 1"),
]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        *BAD.items(),
        *(
            (json.dumps({"schema": "cab/1", "settings": settings}), words)
            for settings, words in BAD_SETTINGS
        ),
    ],
    ids=str,
)
def test_a_wrong_file_is_one_message_that_names_it(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "cab.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(intranode.ConfigError) as caught:
        configured("--steal-config", str(path))
    message = str(caught.value)
    assert message.startswith(f"the published settings in {path}: {words}") or words in message
    assert str(path) in message
    assert "CAB_CONFIG=" in message


def test_a_file_that_is_named_must_be_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fresh(monkeypatch, tmp_path, tmp_path / "none.json")
    with refused(intranode.ConfigError, "intranode.settings_file"):
        CAB.machine_config()


def test_settings_become_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
    for wrong, said in (
        (["chunk_small=1k"], "chunk-small 1k: expected a whole number"),
        (["chunk_small"], "'chunk_small': expected name=value"),
        (["colour=red"], "--colour is unknown"),
        (["bundle=on", "bundle=off"], "bundle: both on and off"),
        ([f"@{result}"], "the search ended as 'keep_default' and recommends nothing"),
        ([f"@{other}"], "the search recommends no value of this library"),
        ([f"@{tmp_path}/no"], "no: No such file"),
    ):
        options = [word for setting in wrong for word in ("--from", setting)]
        assert main([*options, "-o", str(path)]) == 2
        assert said in capsys.readouterr().err
    assert path.read_text() == before
