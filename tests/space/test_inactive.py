"""What does nothing, under which conditions."""

from __future__ import annotations

from autotune.space import DEFAULT, InactiveParameters, Parameter, Setting, Space, load_space
from autotune.space.inactive_parameters import decides
from tests.case_table import case_table
from tests.space.libraries import NEW

SPACE = Space(
    "s",
    (
        Parameter("map_by", ("node", "slot"), target="placement", default="slot"),
        Parameter("btl", ("tcp,self", "sm,self")),
        Parameter("btl_sm_eager_limit", (1024, 4096)),
        Parameter("workers", (1, 2), target="resource", unset=False),
    ),
)
EAGER = "btl_sm_eager_limit"


@case_table(
    "conditions", [{}, {"map_by": "node"}, {"btl": "tcp,self"}, {"map_by": "node", "workers": 2}]
)
def test_it_holds_under_its_conditions_alone(conditions: dict[str, str | int]) -> None:
    idle = InactiveParameters(SPACE)
    seen = Setting({**conditions, EAGER: 1024})
    assert idle.learn([EAGER], seen) == {EAGER}
    assert idle.learn([EAGER], Setting({**conditions, EAGER: 4096})) == set()
    assert idle.strip(Setting({**conditions, EAGER: 4096})) == Setting(conditions)
    for other in ({}, {"map_by": "node"}, {"btl": "tcp,self"}, {"btl": "sm,self"}, {"workers": 1}):
        if other != conditions:
            kept = Setting({**other, EAGER: 4096})
            assert idle.strip(kept) == kept


def test_what_is_the_default_is_no_condition_of_its_own() -> None:
    idle = InactiveParameters(SPACE)
    idle.learn([EAGER], Setting({"map_by": "slot", EAGER: 1024}))
    assert idle.strip(Setting({EAGER: 4096})) == DEFAULT
    assert idle.under == {"default": (EAGER,)}


def test_several_at_once_and_what_chooses_components() -> None:
    """A list of components that does nothing is no condition of what does nothing beside it."""
    idle = InactiveParameters(SPACE)
    idle.learn(["btl", EAGER], Setting({"btl": "sm,self", EAGER: 1024, "map_by": "node"}))
    assert idle.strip(Setting({"btl": "tcp,self", EAGER: 4096, "map_by": "node"})) == Setting(
        {"map_by": "node"}
    )
    assert idle.strip(Setting({EAGER: 4096})) == Setting({EAGER: 4096})


def test_what_must_be_given_stays_and_what_is_unused_goes_everywhere() -> None:
    idle = InactiveParameters(SPACE)
    idle.learn_everywhere([EAGER, "workers", "of another space"])
    assert idle.everywhere == {EAGER}
    assert idle.strip(Setting({"workers": 2, "map_by": "node", EAGER: 1024})) == Setting(
        {"workers": 2, "map_by": "node"}
    )
    assert len(idle) == 1
    assert not InactiveParameters(SPACE)


def test_which_parameters_of_the_library_choose_components() -> None:
    space = load_space("openmpi", NEW, {"ranks": 4, "cores": 4, "nodes": 2})
    chosen = {p.name for p in space if decides(p)}
    assert chosen == {"pml", "UCX_TLS", "smsc", "map_by", "bind_to", "rank_by", "coll_han_priority"}


def test_a_default_that_a_run_showed_decides_conditions() -> None:
    """Beside ob1, the default here, variables of UCX do nothing, and naming ob1 changes nothing."""
    space = load_space("openmpi", NEW, {"ranks": 2, "cores": 2, "nodes": 1})
    idle = InactiveParameters(space)
    alone = Setting({"UCX_RNDV_THRESH": 4096})
    assert idle.strip(Setting({"pml": "ob1"})) == Setting({"pml": "ob1"})
    assert idle.learn_default("pml", "ob1")
    assert not idle.learn_default("pml", "ob1")
    assert idle.strip(alone) == DEFAULT
    assert idle.strip(Setting({"pml": "ob1"})) == DEFAULT
    under = Setting({"pml": "ucx", "UCX_RNDV_THRESH": 4096})
    assert idle.strip(under) == under
    assert idle.strip(under.with_values({EAGER: 1024})) == under
    other = InactiveParameters(space)
    other.learn_default("pml", "ucx")
    assert other.strip(under) == alone
    chosen = Setting({"pml": "ob1", EAGER: 1024})
    assert other.strip(chosen) == chosen
    assert not other.learn_default("no such name", 1)
