"""The configuration, its switches, and the calibration from the probe."""

from __future__ import annotations

import argparse
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from runner.runtimes import intranode
from runner.runtimes.intranode import Config, saturation_number
from tests.refusals import refusal, refused


def test_a_wrong_configuration_is_refused(snapshot: SnapshotAssertion) -> None:
    wrong: list[dict[str, Any]] = [
        {"strategy": "none"},
        {"access": "none"},
        {"waiting": "none"},
        {"saturation": 0},
        {"stealers": -2},
        {"chunk_small": 0},
        {"chunk_large": 100},
        {"threshold": -1},
        {"medium_from": 600000},
    ]
    assert [
        refusal(intranode.ConfigError, lambda one: Config(**one), one) for one in wrong
    ] == snapshot


def parsed(*words: str) -> Config:
    parser = argparse.ArgumentParser()
    intranode.add_arguments(parser)
    return intranode.CAB.from_options(parser.parse_args([*words, "--steal-config", "none"]))[0]


def test_switches_set_their_fields() -> None:
    assert parsed() == Config()
    found = parsed(
        *("--steal", "off", "--bundle", "off", "--chunk-medium", "640", "--stealers", "3"),
        *("--steal-strategy", "mixed", "--domains", "2", "--steal-seed", "9"),
    )
    assert found == Config(
        steal=False, bundle=False, chunk_medium=640, stealers=3, strategy="mixed", domains=2, seed=9
    )
    with refused(intranode.ConfigError, "intranode.option"):
        parsed("--steal", "maybe")


@given(st.integers(1, 1 << 24))
def test_chunks_grow_with_the_message(size: int) -> None:
    config = Config()
    assert config.chunk(size) <= config.chunk(size + 1) or config.chunk(size) == size
    assert Config(steal=False).chunk(size) == size


def test_ranges_begin_where_they_say() -> None:
    config = Config()
    sizes = (65535, 65536, 98303, 98304, 524287, 524288)
    assert [config.chunk(size) for size in sizes] == [65535, 16384, 16384, 32768, 32768, 65536]


def test_the_first_rank_count_near_the_largest_rate_saturates() -> None:
    assert saturation_number({1: 10.0, 2: 19.0, 3: 27.0, 4: 28.0, 5: 27.5}) == 3
    assert saturation_number({1: 10.0}) == 1
    with pytest.raises(ValueError):
        saturation_number({})
