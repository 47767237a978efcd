"""The command line of miniGhost, its inputs and its figure."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.grid import show_shape
from runner.programs.apps.common.layout import make_layout
from runner.programs.apps.minighost.inputs import INPUTS
from runner.programs.apps.minighost.options import VARIANTS, build_parser, parse, thread_level
from runner.programs.apps.minighost.output import grind_ns
from runner.programs.apps.minighost.problem import DEPTH
from tests.refusals import refused


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


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--input no", "--input no is unknown; there are tiny, small"),
        ("--input tiny --size 4", "exclude each other"),
        ("--size 4x4", "--size 4x4: expected 3 whole numbers"),
        ("--grid 2", "--grid 2: expected 3 whole numbers"),
        ("--steps 0", "argument --steps: expected a whole number above 0"),
        ("--variables none", "argument --variables: expected a whole number above 0"),
        ("--variables 5462 --messages variable", "--variables 5462: expected at most 5461"),
        ("--variables 5462 --variant mate", "--variables 5462: expected at most 5461 with --var"),
        ("--order RS", "argument --order: invalid choice: 'RS'"),
        ("--messages all", "argument --messages: invalid choice: 'all'"),
        ("--variant tpot", "argument --variant: invalid choice: 'tpot'"),
        ("--order SR --prepost", "leave it out, or choose --order SIR or ISIR"),
        ("--order ISR --prepost", "those of --order ISR do: leave it out"),
        ("--workers 2", "--workers means nothing to --variant mpi: leave it out, or choose"),
        ("--affinity none", "--affinity means nothing to --variant mpi"),
        ("7", "unrecognized arguments: 7"),
        ("--variant overlap --order SR", "--order SR sends and receives in turn, so no message"),
        ("--variant overlap --workers 2", "choose --variant threads or mate or tarragon or tpod"),
        ("--ranks-per-process 2", "leave it out, or choose --variant overlap or mate or tarragon"),
        ("--variant threads --local-grid 1x1x1", "--local-grid means nothing to --variant threads"),
        ("--variant mate --order SIR", "choose --variant mpi or overlap or threads or tpod"),
        ("--variant mate --prepost", "--prepost means nothing to --variant mate"),
        ("--variant mate --block-size 8", "--block-size means nothing to this program: leave it"),
        ("--variant mate --in-process", "--in-process means nothing to this program"),
        ("--variant mate --steal node", "--steal means nothing to this program"),
        ("--variant mate --local-grid 1x2x2 --ranks-per-process 3", "the product must be"),
        ("--variant mate --workers 4 --ranks-per-process 2", "use fewer workers"),
        ("--variant mate --task-queue stealing", "--task-queue means nothing to --variant mate"),
        ("--variant tarragon --split 2", "--split means nothing to --variant tarragon"),
        ("--variant tarragon --messages variable", "carries one message in a step, with all var"),
        ("--variant tarragon --aggregation", "--aggregation means nothing to compiled tasks"),
        ("--variant tarragon --workers 2", "--workers 2 needs --threads workers or service"),
        ("--variant tarragon --block-edge 4", "--block-edge means nothing to --variant tarragon"),
        ("--variant tpod --thread-level two", "--thread-level two: expected one of multiple"),
    ],
)
def test_wrong_options_are_named(options: str, words: str) -> None:
    with pytest.raises(AppUsageError) as caught:
        parse(options.split())
    assert words in str(caught.value)
    assert thread_level(options.split()) == "single"


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
