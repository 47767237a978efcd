"""Placements with equal layouts: which there are, and the one that stands for them."""

from __future__ import annotations

from autotune.space import DEFAULT, Constraint, Parameter, Setting, Space, parse_expression
from autotune.space.equal_layouts import (
    MOST_PLACEMENTS,
    EqualLayouts,
    KnownLayouts,
    placement_names,
    placements,
)
from autotune.space.inactive_parameters import InactiveParameters
from autotune.strategies import EQUAL, create, equal_layouts
from autotune.strategies.codec import Codec
from tests.case_table import case_table

MAP = Parameter("map_by", ("slot", "numa"), "placement")
BIND = Parameter("bind_to", ("core", "package"), "placement")
ORDER = Parameter(
    "rank_by",
    ("fill", "span"),
    "placement",
    when=parse_expression("set(map_by) and map_by == 'numa'"),
)
SIZE = Parameter("size", (1, 2))
LATE = Parameter("late", (1, 2), when=parse_expression("set(bind_to)"))
PINS = Parameter("pins", (1,), implies={"bind_to": "core"})
THREADS = Parameter("threads", (2, 4), "resource")
SPACE = Space("placed", (MAP, BIND, ORDER, SIZE, THREADS))
NAMES = frozenset({"map_by", "bind_to", "rank_by"})


def setting(text: str) -> Setting:
    return Setting.parse(text)


def equal(*groups: str, resources: str = "default") -> EqualLayouts:
    """Groups of settings, each as texts with blanks between them."""
    members = tuple(tuple(map(setting, group.split())) for group in groups)
    return EqualLayouts(NAMES, setting(resources), members)


BY_SLOT = equal("default map_by=slot bind_to=core bind_to=core,map_by=slot")


def test_the_parameters_of_a_placement() -> None:
    space = Space("more", (*SPACE, PINS, Parameter("pin_order", ("a", "b"))))
    assert placement_names(SPACE) == NAMES
    assert placement_names(space, ["pin_order"]) == NAMES | {"pins", "pin_order"}
    assert placement_names(Space("none", (SIZE,))) == frozenset()


def test_all_placements_are_listed_the_simplest_first() -> None:
    rule = Constraint(parse_expression("not (map_by == 'slot' and bind_to == 'package')"))
    space = Space("ruled", (MAP, BIND, ORDER, SIZE), (rule,))
    listed = placements(space, NAMES, DEFAULT)
    assert listed[0] == DEFAULT
    assert [len(s) for s in listed] == sorted(len(s) for s in listed)
    # Without a map, by slot (one binding less), by NUMA node in three orders.
    assert len(set(listed)) == len(listed) == 3 + 2 + 3 * 3
    wide = Space("wide", (Parameter("map_by", tuple(range(MOST_PLACEMENTS)), "placement"),))
    assert placements(wide, NAMES, DEFAULT) == []


def test_placements_are_grouped_by_known_layouts() -> None:
    layouts = {
        setting("default"): ("a", "b"),
        setting("map_by=slot"): ("a", "b"),
        setting("map_by=numa"): ("b", "a"),
        setting("bind_to=core"): None,
        setting("bind_to=package"): None,
    }
    assert EqualLayouts.of(NAMES, DEFAULT, layouts) == equal("default map_by=slot")


def test_an_attribute_is_read_back_and_others_are_refused() -> None:
    assert EqualLayouts.from_json(BY_SLOT.to_json()) == BY_SLOT
    assert equal_layouts({EQUAL: [BY_SLOT.to_json()]}) == [BY_SLOT]
    whole = BY_SLOT.to_json()
    broken = [{**whole, "groups": 3}, {**whole, "groups": [[{"": 1}]]}, {"groups": []}, 3, None]
    assert equal_layouts({EQUAL: broken}) == []
    assert equal_layouts({EQUAL: whole}) == []


@case_table(
    ("text", "simplest"),
    [
        ("map_by=slot", "default"),
        ("bind_to=core,map_by=slot,size=2", "size=2"),
        ("bind_to=package,size=2", "bind_to=package,size=2"),
        ("map_by=slot,threads=2", "map_by=slot,threads=2"),
        ("bind_to=core,threads=4", "map_by=numa,threads=4"),
    ],
)
def test_the_simplest_placement_stands_for_its_layout(text: str, simplest: str) -> None:
    known = InactiveParameters(SPACE)
    assert known.learn_layouts(BY_SLOT)
    assert not known.learn_layouts(BY_SLOT)
    assert known.learn_layouts(equal("map_by=numa bind_to=core", resources="threads=4"))
    assert len(known) == 2
    assert known.strip(setting(text)) == setting(simplest)


def test_a_placement_stands_only_where_the_other_values_act_and_are_allowed() -> None:
    rule = Constraint(parse_expression("size != 2 or set(map_by)"))
    space = Space("ruled", (MAP, BIND, ORDER, SIZE, LATE), (rule,))
    known = KnownLayouts(space)
    known.learn(BY_SLOT)
    both = setting("bind_to=core,map_by=slot,size=2")
    assert known.simplest(both, space) == setting("map_by=slot,size=2")
    acting = setting("bind_to=core,late=1,map_by=slot")
    assert known.simplest(acting, space) == setting("bind_to=core,late=1")


def test_inactive_parameters_are_known_under_the_simplest_placement() -> None:
    known = InactiveParameters(SPACE)
    known.learn_layouts(BY_SLOT)
    known.learn(["size"], setting("map_by=slot,size=1"))
    assert known.strip(setting("bind_to=core,size=2")) == DEFAULT
    assert known.strip(setting("bind_to=package,size=2")) == setting("bind_to=package,size=2")


def test_a_codec_learns_layouts_once() -> None:
    codec = Codec(SPACE)
    assert codec.settle(setting("map_by=slot")) == setting("map_by=slot")
    assert codec.leave_out({EQUAL: [BY_SLOT.to_json()]}, DEFAULT)
    assert not codec.leave_out({EQUAL: [BY_SLOT.to_json()]}, DEFAULT)
    assert codec.settle(setting("map_by=slot")) == DEFAULT


@case_table("name", ["exhaustive", "auto", "random", "ga"])
def test_strategies_propose_a_layout_once(name: str) -> None:
    space = Space("small", (MAP, BIND))
    strategy = create(name, space, seed=1, options={})
    strategy.learn_equal({EQUAL: [BY_SLOT.to_json()]})
    proposals = [p.setting for _ in range(20) if (p := strategy.ask()) is not None]
    # Of nine combinations four are the default.
    assert len(proposals) == len(set(proposals)) <= 5
    assert all(s not in BY_SLOT.groups[0] for s in proposals)
