"""The command line of miniGhost, its inputs and its figure."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.grid import show_shape
from runner.programs.apps.common.layout import make_layout
from runner.programs.apps.minighost.inputs import INPUTS
from runner.programs.apps.minighost.options import VARIANTS, build_parser, parse, thread_level
from runner.programs.apps.minighost.output import grind_ns
from runner.programs.apps.minighost.problem import DEPTH
from tests.refusals import refusal, refused


def test_grind_time_is_by_the_cells_of_the_largest_process() -> None:
    options = parse(["--size", "5x4x3", "--steps", "10", "--variables", "2"])
    layout = make_layout(options.size, 2, (2, 1, 1), 1, None, DEPTH)
    assert grind_ns(options, layout, 1e-6) == pytest.approx(1000 / (3 * 4 * 3 * 10 * 2))


def test_options_of_a_named_input() -> None:
    options = parse(["--input", "tiny", "--grid", "1X2x1", "--steps", "7"])
    assert (options.size, options.steps, options.variables) == ((12, 10, 8), 7, 2)
    assert options.grid == (1, 2, 1)
    assert parse([]).input == "default"
    sized = parse(["--size", "9"])
    assert (sized.input, sized.size, sized.steps, sized.variables) == (None, (9, 9, 9), 20, 1)
    assert parse(["--variables", "3"]).groups == [range(3)]
    assert parse(["--variables", "3", "--messages", "variable"]).groups == [
        range(0, 1),
        range(1, 2),
        range(2, 3),
    ]
    levels = {variant: parse(["--variant", variant]).thread_level for variant in VARIANTS}
    assert levels == {
        **{"mpi": "single", "overlap": "single", "threads": "funneled"},
        **{"mate": "multiple", "tarragon": "single", "tpod": "single"},
        "cab": "single",
    }
    wide = ["--variant", "tarragon", "--workers", "2", "--threads", "service"]
    assert thread_level(wide) == "multiple"
    assert thread_level([*wide, "--thread-level", "serialized"]) == "serialized"
    assert "--prepost" in build_parser().format_help()


def test_wrong_options_are_named(snapshot: SnapshotAssertion) -> None:
    lines = [
        *("--input no", "--input tiny --size 4", "--size 4x4", "--grid 2", "--steps 0"),
        *("--variables none", "--variables 5462 --messages variable"),
        *("--variables 5462 --variant mate", "--order RS", "--messages all", "--variant tpot"),
        *("--order SR --prepost", "--order ISR --prepost", "--workers 2", "--affinity none", "7"),
        *("--variant overlap --order SR", "--variant overlap --workers 2"),
        *("--ranks-per-process 2", "--variant threads --local-grid 1x1x1"),
        *("--variant mate --order SIR", "--variant mate --prepost"),
        *("--variant mate --block-size 8", "--variant mate --in-process"),
        *("--variant mate --steal node", "--variant mate --task-queue stealing"),
        "--variant mate --local-grid 1x2x2 --ranks-per-process 3",
        "--variant mate --workers 4 --ranks-per-process 2",
        *("--variant tarragon --split 2", "--variant tarragon --messages variable"),
        *("--variant tarragon --aggregation", "--variant tarragon --workers 2"),
        *("--variant tarragon --block-edge 4", "--variant tpod --thread-level two"),
    ]
    assert len(lines) == 34
    assert {line: refusal(AppUsageError, parse, line.split()) for line in lines} == snapshot
    assert {thread_level(line.split()) for line in lines} == {"single"}


def test_a_rank_map_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "map.json"
    path.write_text("[[0], [1, 2]]")
    with refused(AppUsageError, "app_option.ranks"):
        parse(["--variant", "mate", "--rank-map", str(path)])


def test_configuration_names_the_inputs_of_the_program() -> None:
    path = Path(__file__).parents[2] / "configs" / "apps" / "minighost.toml"
    config = tomllib.loads(path.read_text(encoding="utf-8"))
    assert list(config["inputs"]) == list(INPUTS)
    assert config["default_input"] == parse([]).input
    for name, chosen in INPUTS.items():
        one = config["inputs"][name]
        words: Sequence[str] = one["description"].split(", ")
        assert words[0] == f"{show_shape(chosen.size)} cells"
        assert words[1] == f"{chosen.variables} variable{'s' * (chosen.variables > 1)}"
        assert words[2].split(":")[0] == f"{chosen.steps} steps"
        assert tuple(one["facts"].values()) == (*chosen.size, chosen.variables)
