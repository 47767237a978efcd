"""What fuzzing has found, one input for each place: it stays refused in words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from autotune.artifacts import content_id
from tests.fuzz import outside
from tests.fuzz.parsers import CARD, CLASSWIDE, OUTPUT, PARSERS
from tests.refusals import refused

LONG = "9" * 5000
"""More digits than Python turns into a number."""
ESCAPES = ("../../escaped", "/tmp/escaped", "..", ".x", "-x", "a/b", "a\\nb", "a\\u0000b", "")
DEEP = "[" * 100_000
"""Deeper than Python's parsers go."""
PATHS = ("/tmp/evil.toml", "evil.toml", "a+../x")


def wide(key: str, value: str) -> str:
    """A class-wide result of which one text is another, and the id fits."""
    data = json.loads(CLASSWIDE) | {key: value}
    del data["id"]
    return json.dumps(data | {"id": content_id(data)})


REFUSED = [
    ("card", CARD.replace("ranks = 2", f"ranks = {LONG}")),
    ("card", CARD.replace("schema = 1", f"schema = {LONG}")),
    ("card", CARD.replace('"a"', "[" * 2000)),
    ("app", f"name = {LONG}"),
    ("app", "name = " + "[" * 2000),
    ("features", DEEP),
    ("class-wide result", DEEP),
    ("class-wide result", CLASSWIDE.replace('"scores": []', '"scores": [3]')),
    ("class-wide result", CLASSWIDE.replace('"scores": []', '"scores": ["x"]')),
    ("rank map", DEEP),
    ("library", f"openmpi<{LONG}"),
    ("rate", f"{LONG}gbit"),
    ("latency", f"{LONG}s"),
    ("sizes", LONG),
    ("levels", f"1:{LONG}"),
    # Names that escape, links, what is no file, and sizes.
    *(("dataset folder", steps) for steps in outside.STEPS),
    *(("card", CARD.replace('name = "d"', f'name = "{name}"')) for name in ESCAPES),
    *(("card", CARD.replace('key = "c"', f'key = "{name}"')) for name in ESCAPES),
    *(("card", CARD.replace('app = "a"', f'app = "{name}"')) for name in ESCAPES),
    ("card", "#" * (5 << 20)),
    *(("plan", PARSERS["plan"].seeds[0].replace('"grid-node"', f'"{n}"', 1)) for n in ESCAPES),
    ("plan", PARSERS["plan"].seeds[0].replace('space = "', 'space = "/tmp/', 1)),
    ("cluster", 'name = "c"\n[spaces]\nopenmpi = "/tmp/evil.toml"\n'),
    *(("class-wide result", wide(key, n)) for key in ("space", "cluster") for n in PATHS),
    ("cluster", 'name = "c"\ntestbed = "../x"\n'),
    ("worker request", DEEP),
    ("worker request", outside.REQUESTS.replace('"trials"', '"json"')),
    ("worker request", outside.REQUESTS.replace("/home/me", "../..")),
    ("key file", "0" * 500),
    ("trust file", outside.TRUST.replace("5433", LONG)),
    ("study row", outside.STUDY_ROW.replace(outside.STUDY, "../../" + "0" * 58)),
    ("study row", DEEP),
    ("trial row", outside.TRIAL_ROW.replace('"how"', '"plm_ssh_agent"')),
    ("trial row", outside.TRIAL_ROW.replace("eager=1024", "plm_ssh_agent=/tmp/x")),
    ("trial row", DEEP),
    ("database url", "~a\0b"),
    ("database url", "postgresql://\udcffme:x@h:5432/d"),
    ("study row", outside.STUDY_ROW.replace('"overhead_s": 0.0', f'"overhead_s": {"9" * 400}')),
    ("settings list", DEEP),
    ("shard", outside.shard_text().replace("reason", "rea\udcffon")),
    ("card", CARD.replace("ranks = 2", "ranks = 0x" + "f" * 5000)),
    ("annotated program", "{" * 5000),
    ("annotated program", "x = " + "-" * 5000 + "1"),
    ("shard", "PAR1" + "\0" * 100 + "PAR1"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_it_is_refused(number: int) -> None:
    name, text = REFUSED[number]
    assert text not in PARSERS[name].seeds
    with pytest.raises(PARSERS[name].promised):
        PARSERS[name].read(text)


@pytest.mark.parametrize("text", [f"a={LONG}", f"a={LONG}k"])
def test_a_number_of_thousands_of_digits_is_a_text(text: str) -> None:
    PARSERS["setting"].read(text)


@pytest.mark.parametrize("figure", ["9" * 400, "1e999", "NaN", "[]", '{"a": 1}'])
def test_a_figure_that_is_no_time_is_none(figure: str) -> None:
    assert PARSERS["output"].read(OUTPUT) == [1.5, 1.5]
    read: Any = PARSERS["output"].read(OUTPUT.replace("1.5", figure))
    assert read == [None, None]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("backup", value) for value in (5, "", "..", "a/..", "../x", "/etc/passwd", "a\nb")),
        *(("cluster", value) for value in ("/tmp/evil.toml", "evil.toml", "../x")),
        ("evidence.cluster", "/tmp/evil.toml"),
        *(("content", value) for value in ({"groups": 5, "rules": []}, {"groups": {}, "rules": 1})),
        ("content", {"groups": {"mca": ["a"]}, "rules": []}),
        ("content", {"groups": {"mca": {"a": 1}}, "rules": []}),
        *(("evidence.gain_ci", value) for value in ([], [0.1], ["a", "b"])),
        *(("evidence.gain", value) for value in ("much", 10**400)),
        *(("evidence.programs", value) for value in ([1], 7)),
        ("tool", None),
        ("proven", "no"),
    ],
)
def test_a_header_that_was_edited_is_refused(key: str, value: object) -> None:
    parser = PARSERS["published header"]
    lines = parser.seeds[0].splitlines()
    at = next(i for i, line in enumerate(lines) if "data: " in line)
    before, _, packed = lines[at].partition("data: ")
    data = json.loads(packed)
    *way, last = key.split(".")
    place = data
    for name in way:
        place = place[name]
    place[last] = value
    lines[at] = f"{before}data: {json.dumps(data)}"
    with refused(parser.promised, "published.damaged"):
        parser.read("\n".join(lines))


def test_a_result_with_another_name_is_read() -> None:
    """What is refused above is the path, not that the text is another."""
    PARSERS["class-wide result"].read(wide("space", "openmpi+openmpi-tcp"))
