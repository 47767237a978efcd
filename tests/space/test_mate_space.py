"""The space of MATE: its size, its default, and that every setting can be laid out."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.config.app import load_app
from autotune.space import DEFAULT, Setting, Space, load_space
from runner.mpi.library import Library
from runner.runtimes.mate.config import Config
from tests.case_table import case_table
from tests.space.libraries import NEW, OLD

APPS = ("cannon", "cloverleaf3d", "flowcart", "jacobi3d", "minighost")
KERNELS = ("nas-cg", "nas-ft", "nas-is", "nas-lu", "nas-mg")
LAYOUT = {"variant", "workers", "odf", "local_x", "local_y"}
WORKERS = "--workers {workers}"
RANKS = "--ranks-per-process {ranks_per_process} --local-grid {local_x}x{local_y}x{local_z}"


def mate(cores: int, *cells: int, nodes: int = 1) -> Space:
    facts = {"ranks": cores, "cores": cores, "nodes": nodes}
    told = dict(zip(("cells_x", "cells_y", "cells_z"), cells, strict=False))
    return load_space("mate", None, facts, told)


@case_table("app", [*APPS, *KERNELS])
def test_an_application_has_its_own_form_of_the_space(app: str) -> None:
    program = load_app(app)
    own = f"mate-{app}"
    assert program.space("openmpi+mate") == f"openmpi+{own}"
    assert program.space("openmpi") == "openmpi"
    space = load_space(program.space("mate"), None, {"ranks": 4, "cores": 4, "nodes": 1})
    assert space.requires <= set(program.tunable)
    runtime = load_space("mate-runtime", None, {"ranks": 4, "cores": 4, "nodes": 1})
    assert set(runtime.names) < set(space.names)


def test_what_cannot_act_on_a_program_is_not_in_its_space() -> None:
    """Data of ranks in one process are never messages there; Cloverleaf3D has no cache blocks."""
    facts = {"ranks": 2, "cores": 2, "nodes": 1}
    spaces = {name: load_space(f"mate-{name}", None, facts) for name in APPS}
    assert "in_process" in load_space("mate", None, facts).names
    assert not [name for name, space in spaces.items() if "in_process" in space.names]
    assert [name for name, space in spaces.items() if "block_size" in space.names] == ["jacobi3d"]
    for name in ("cloverleaf3d", "minighost"):
        assert "cache blocks" in spaces[name].absent["block_size"]


@pytest.mark.parametrize(("workers", "allowed"), [(1, True), (2, False)])
def test_one_process_has_no_messages_to_cut(workers: int, allowed: bool) -> None:
    for name in ("mate", "mate-jacobi3d", "mate-cloverleaf3d", "mate-minighost"):
        space = load_space(name, None, {"ranks": 2, "cores": 2, "nodes": 1})
        cut = Setting.parse(f"variant=mate,workers={workers},odf=4,split=2")
        assert space.is_valid(cut) is allowed


def test_with_one_process_on_a_node_nothing_can_be_exchanged() -> None:
    text = "variant=mate,odf=4,balance=shuffle"
    for nodes, allowed in ((1, True), (2, False)):
        space = load_space("mate-flowcart", None, {"ranks": 2, "cores": 2, "nodes": nodes})
        assert space.is_valid(Setting.parse(text)) is allowed
        assert space.is_valid(Setting.parse("variant=mate,odf=4,balance=consecutive"))
        assert bool(space.starts)


def cannon(cores: int, size: int | None = None) -> Space:
    facts = {"ranks": cores, "cores": cores, "nodes": 1}
    return load_space("mate-cannon", None, facts, {} if size is None else {"size": size})


def test_cannon_cuts_blocks_only_where_they_are_messages() -> None:
    space = cannon(4, 48)
    found = Setting.parse("variant=mate,side=4,split=2,workers=2")
    assert space.violations(found) == []
    words = space.launched(space.canonical(found))["arg"]
    assert words["--split {split}"] == "--split 2"
    whole = Setting.parse("variant=mate,side=4,split=2,workers=4")
    assert space.canonical(whole) == space.canonical(whole.without("split"))
    for variant in ("mpi", "overlap"):
        flat = Setting.parse(f"variant={variant},split=4")
        assert space.canonical(flat) == space.canonical(flat.without("split"))


@case_table(
    ("text", "allowed"),
    [
        ("variant=mate,side=12,split=4", True),
        ("variant=mate,side=8,split=2", True),
        ("variant=mate,side=8,split=4", False),  # Blocks of 6 rows.
        ("variant=mate,side=16,split=2", False),  # Blocks of 3 rows.
        ("variant=mate,split=4", True),  # A side that is left out counts with its default.
        ("variant=mate,side=4,split=3", False),
    ],
)
def test_pieces_of_a_block_are_whole_rows(text: str, allowed: bool) -> None:
    assert cannon(4, 48).is_valid(Setting.parse(text)) is allowed


def test_in_one_process_there_is_nothing_to_balance() -> None:
    space = load_space("mate-flowcart", None, {"ranks": 2, "cores": 2, "nodes": 1})
    two = Setting.parse("variant=mate,odf=4,balance=shuffle")
    assert space.canonical(two) == two
    one = Setting.parse("variant=mate,odf=4,balance=shuffle,workers=2")
    assert space.canonical(one) == one.without("balance")


def only_layouts(space: Space) -> Space:
    return replace(space, parameters=tuple(p for p in space if p.name in LAYOUT))


@case_table(
    ("cores", "points", "shapes", "uncut"),
    [(2, 10, 90, 35), (16, 25, 425, 125), (32, 29, 555, 155), (64, 32, 664, 179)],
)
def test_as_many_layouts_as_counted(cores: int, points: int, shapes: int, uncut: int) -> None:
    """The table of section 16.1 of our digest of Martin 2018: (p, n, odf), with all local shapes,
    with x uncut.  Flat MPI comes on top."""
    space = only_layouts(mate(cores))
    flat, *layouts = space.enumerate()
    assert flat == DEFAULT
    assert len(layouts) == shapes
    assert sum("local_x" not in setting for setting in layouts) == uncut
    assert len({(s.get("workers", 1), s.get("odf", 1)) for s in layouts}) == points
    assert all(setting["variant"] == "mate" for setting in layouts)


def test_a_walk_in_order_begins_with_flat_mpi_and_the_layouts() -> None:
    space = mate(2)
    _, *layouts = only_layouts(space).enumerate()
    walked = list(itertools.islice(space.enumerate(), 5 + len(layouts) + 1))
    assert [s.key for s in walked[:2]] == ["default", "block_size=16"]
    assert walked[5:-1] == layouts
    assert not LAYOUT.issuperset(walked[-1])


def test_a_line_of_cells_may_be_cut_along_itself_alone() -> None:
    space = mate(2, 1, 1, 400)
    assert space.is_valid(Setting.parse("variant=mate,workers=2,odf=4"))
    assert not space.is_valid(Setting.parse("variant=mate,workers=2,local_x=2"))


def test_flat_mpi_is_the_default_and_takes_no_option() -> None:
    space = mate(4)
    assert space.launched(DEFAULT) == {}
    for text in ("variant=mpi", "workers=2,odf=4", "variant=mpi,split=2,thread_level=serialized"):
        assert space.canonical(Setting.parse(text)) == DEFAULT
    # Every parameter but these two does nothing without the runtime.
    assert [p.name for p in space if p.when is None] == ["variant", "block_size"]
    blocks = space.launched(Setting.parse("block_size=32"))
    assert blocks == {"arg": {"--block-size {block_size}": "--block-size 32"}}


def test_one_setting_as_words() -> None:
    space = mate(4, 64, 64, 64)
    setting = Setting.parse(
        "variant=mate,workers=2,odf=4,local_x=1,local_y=2,block_size=32,split=2,in_process=1,"
        "affinity=scatter,idle_spin=50,queue=shared,thread_level=serialized"
    )
    launch = space.launched(space.canonical(setting))
    assert launch["resource"] == {"workers": "2", "processes": "2"}
    assert set(launch["arg"].values()) == {
        "--variant mate",  # data
        "--workers 2",
        "--ranks-per-process 8 --local-grid 1x2x4",
        "--queue shared",  # data
        "--block-size 32",
        "--split 2",
        "--in-process",
        "--affinity scatter",  # data
        "--idle 50:3000",
        "--thread-level serialized",  # data
    }


def test_workers_alone_are_a_layout() -> None:
    """A setting from which parameters are taken out stays one that can be run."""
    space = mate(8, 64, 64, 64)
    for text in ("variant=mate", "variant=mate,workers=8", "variant=mate,odf=16"):
        assert space.violations(Setting.parse(text)) == []
    words = space.launched(Setting.parse("variant=mate,workers=8"))["arg"]
    assert words[WORKERS] == "--workers 8"
    assert words[RANKS] == "--ranks-per-process 8 --local-grid 1x1x8"


@case_table(
    ("text", "rule"),
    [
        ("variant=mate,workers=3", "(ranks % workers) == 0"),
        ("variant=mate,odf=2,local_x=4", "ranks_per_process % (local_x * local_y)"),
        ("variant=mate,workers=64,odf=8", "ranks_per_process <= 256"),
        ("variant=mate,odf=16,local_y=16", "cells_y >= (2 * local_y)"),
        ("variant=mate,odf=16", "cells_z >= (2 * local_z)"),
        ("variant=mate,affinity=scatter", "affinity != 'scatter'"),
        ("variant=mate,queue=shared", "queue == 'home'"),
    ],
)
def test_what_is_ruled_out(text: str, rule: str) -> None:
    space = mate(64, 16, 24, 24)
    assert any(rule in problem for problem in space.violations(Setting.parse(text), grid=False))


@case_table(
    ("text", "allowed"),
    [
        # The largest face is 16 * 48 * 64 = 48 KiB.
        ("variant=mate,workers=4", True),
        ("variant=mate,workers=4,split=2", False),
        ("variant=mate,workers=2,split=8", True),
        # Cut along z that face stays; cut along x and y it shrinks.
        ("variant=mate,workers=4,odf=2", True),
        ("variant=mate,workers=4,odf=2,local_x=8", False),
    ],
)
def test_short_messages_want_few_workers_in_a_process(text: str, allowed: bool) -> None:
    """Rule 11.4 of our digest of Martin 2018 (appendix C)."""
    setting = Setting.parse(text)
    problems = mate(8, 64, 48, 32).violations(setting)
    assert (problems == []) is allowed, problems
    assert all("32 KiB" in problem for problem in problems)
    assert mate(8).violations(setting) == []


def test_workers_stay_on_one_node() -> None:
    space = mate(8, nodes=4)
    assert space.is_valid(Setting.parse("variant=mate,workers=2"))
    assert not space.is_valid(Setting.parse("variant=mate,workers=4"))


def check(space: Space, setting: Setting, cores: int) -> None:
    """The rules of Martin 2018, said again without the space's own expressions."""
    if "variant" not in setting:
        assert set(setting) <= {"block_size"}
        return
    launch = space.launched(setting)
    workers = int(launch["arg"][WORKERS].split()[1])
    words = launch["arg"][RANKS].split()
    ranks = int(words[1])
    x, y, z = (int(part) for part in words[3].split("x"))
    assert workers * int(launch.get("resource", {}).get("processes", cores)) == cores
    assert x * y * z == ranks
    assert workers <= ranks <= 256
    assert ranks % workers == 0
    # What the runtime itself makes of it: it raises for an impossible configuration.
    config = Config(workers=workers, ranks_per_process=ranks, local_grid=(x, y, z))
    config.require_useful()
    if "cells_x" in space.facts:
        assert config.rank_extent((64, 32, 48), ghost=2)


@given(st.sampled_from([1, 2, 3, 4, 6, 8, 24, 64]), st.integers(0, 10**6), st.booleans())
def test_every_sampled_setting_can_be_laid_out(cores: int, seed: int, told: bool) -> None:
    space = mate(cores, *(64, 32, 48) if told else ())
    setting = space.sample(np.random.default_rng(seed))
    assert space.violations(setting) == []
    assert space.canonical(setting) == setting
    check(space, setting, cores)


@pytest.mark.parametrize("cores", [2, 6])
def test_every_layout_stays_one_without_its_shape(cores: int) -> None:
    """A study takes parameters out of a winner; what is left should be runnable."""
    space = only_layouts(mate(cores))
    for setting in space.enumerate():
        for name in {"local_x", "local_y"} & set(setting):
            smaller = space.canonical(setting.without(name))
            assert space.violations(smaller) == []
            check(space, smaller, cores)


def kernel(app: str, ranks: int) -> Space:
    facts = {"ranks": ranks, "cores": ranks, "nodes": 1}
    return load_space(f"mate-{app}", None, facts, load_app(app).input("S").facts)


def test_a_kernel_is_cut_no_further_than_its_problem() -> None:
    """LU of class S has 12 points along x, three for each of four ranks; FT has 64 planes."""
    odf = Setting.parse("variant=mate,odf=8")
    for app, fits in (("nas-lu", 2), ("nas-ft", 8), ("nas-cg", 64)):
        assert kernel(app, fits).is_valid(odf), app
    for app, too_many in (("nas-lu", 4), ("nas-ft", 16)):
        assert not kernel(app, too_many).is_valid(odf), app
    lu = kernel("nas-lu", 2)
    words = lu.launched(Setting.parse("variant=mate,workers=2,odf=4,planes=2,in_process=1"))["arg"]
    assert "--ranks-per-process 8" in words.values()
    assert "--planes 2" in words.values()
    assert "split" not in lu.names


@pytest.mark.parametrize("library", [OLD, NEW], ids=["4.1", "5.0"])
def test_it_joins_the_space_of_the_library(library: Library) -> None:
    facts = {"ranks": 4, "cores": 4, "nodes": 1}
    both = load_space("openmpi+mate", library, facts)
    assert both.requires == {"mate"}
    assert "bind_to" in both
    rng = np.random.default_rng(1)
    found = [both.sample(rng) for _ in range(40)]
    for setting in found:
        assert both.violations(setting) == []
        if "variant" in setting:
            check(both, setting, 4)
    assert any("variant" in setting and "resource" in both.launched(setting) for setting in found)


@pytest.mark.parametrize("library", [OLD, NEW], ids=["4.1", "5.0"])
def test_over_decomposition_is_tried_first(library: Library) -> None:
    facts = {"ranks": 2, "cores": 2, "nodes": 1}
    both = load_space("openmpi+mate", library, facts)
    first = ["odf=4,variant=mate", "odf=2,variant=mate"]
    assert [str(start) for start in both.starts[:2]] == first
    assert all("odf" in start and len(start) == 3 for start in both.starts[2:4])
    others = both.without({"odf": "not here"}).starts
    assert others == both.starts[4:] == load_space("openmpi", library, facts).starts


@case_table(
    ("variables", "messages", "allowed"),
    [(1, "aggregated", False), (40, "aggregated", True), (40, "variable", False)],
)
def test_a_face_has_the_variables_of_its_message(
    variables: int, messages: str, allowed: bool
) -> None:
    """More than two workers only where a face is above the eager limit: here 32 x 32 cells."""
    told = {"cells_x": 32, "cells_y": 32, "cells_z": 32, "variables": variables}
    space = load_space("mate-minighost", None, {"ranks": 8, "cores": 8, "nodes": 1}, told)
    setting = Setting.parse(f"variant=mate,workers=4,odf=1,messages={messages}")
    assert space.is_valid(setting) is allowed
