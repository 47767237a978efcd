"""A search in which several placements put the ranks on the same CPUs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from autotune.config.app import App, Input
from autotune.config.cluster import Cluster
from autotune.measurement.budget import SearchPlan
from autotune.measurement.rank_layouts import PlacementWatch
from autotune.space import DEFAULT, Parameter, Setting, Space
from autotune.space.equal_layouts import EqualLayouts
from autotune.strategies import EQUAL, create, equal_layouts
from autotune.study.loop import SearchLoop
from autotune.study.simulation import MemoryTrialStore, SimulatedEvaluator
from autotune.study.study_warnings import _inactive
from autotune.study.trial_store import Trial
from autotune.targets.target import Target
from runner.mpi.library import Library
from runner.mpi.rank_layout import RankLayout
from runner.types import LaunchSpec, RunRecord
from tests.space.libraries import NEW

MAP = Parameter("map_by", ("slot", "core", "numa"), "placement")
BIND = Parameter("bind_to", ("core", "none", "package"), "placement")
SIZE = Parameter("size", (1, 2, 3))
THREADS = Parameter("threads", (2,), "resource")
PLACED = Space("placed", (MAP, BIND, SIZE))
NAMES = frozenset({"map_by", "bind_to"})
FREE = ("none", "package")


class Launcher:
    """Plans two layouts: ranks bound to cores in turn, and ranks that may use all."""

    def __init__(self, speaks: bool = True) -> None:
        self.speaks = speaks
        self.specs: list[LaunchSpec] = []

    def __call__(self, specs: Sequence[LaunchSpec]) -> list[RankLayout | None]:
        self.specs += specs
        return [layout_of(spec) if self.speaks else None for spec in specs]


def layout_of(spec: LaunchSpec) -> RankLayout:
    if spec.placement.get("bind_to") in FREE:
        return ("0-3",) * spec.ranks
    return tuple(f"{rank}" for rank in range(spec.ranks))


def target(library: Library = NEW) -> Target:
    app = App(name="own", command=("program",), inputs={"default": Input()})
    return Target(app, "default", 4, Cluster(name="own", cores_per_node=4), library, 4)


def watch(launcher: Launcher, space: Space = PLACED) -> PlacementWatch:
    return PlacementWatch(space, target(), launcher)


class Evaluator(SimulatedEvaluator):
    """Runs that show the CPUs of their ranks; times depend on size and layout alone."""

    space: Space = PLACED

    def _record(self, setting: Setting, timeout_s: float | None) -> RunRecord:
        record = super()._record(setting, timeout_s)
        record.bindings = list(layout_of(target().spec(self.space, setting)))
        return record


def seconds(setting: Setting, rng: np.random.Generator) -> float:
    return 1.0 + 0.1 * (setting.get("bind_to") in FREE) + 0.1 * int(setting.get("size", 1))


def search(
    trial_store: MemoryTrialStore,
    placements: PlacementWatch | None,
    space: Space = PLACED,
    name: str = "exhaustive",
    trials: int | None = None,
) -> list[Trial]:
    evaluator = Evaluator(seconds, np.random.default_rng(0))
    evaluator.space = space
    plan = SearchPlan(trials=trials, promising_runs=1)
    strategy = create(name, space, seed=1)
    SearchLoop(evaluator, trial_store, strategy, space, plan, placements=placements).run()
    return trial_store.trials


@pytest.mark.parametrize("name", ["exhaustive", "auto"])
def test_each_layout_is_tried_once(name: str) -> None:
    launcher = Launcher()
    trials = search(MemoryTrialStore(), watch(launcher), name=name)
    assert len(launcher.specs) == 16
    # Two layouts and four sizes, without the default.
    assert len({t.effective for t in trials}) == len(trials) <= 2 * 4 - 1
    assert {t.effective.get("bind_to") for t in trials} == {None, "none"}
    assert not any("map_by" in t.effective or t.reused for t in trials)


def test_without_the_launcher_each_placement_is_a_setting() -> None:
    assert len(search(MemoryTrialStore(), None)) == 63


def test_a_trial_says_which_layouts_are_equal() -> None:
    trials = search(MemoryTrialStore(), watch(Launcher()))
    assert [bool(equal_layouts(t.attrs)) for t in trials] == [True] + [False] * (len(trials) - 1)
    (equal,) = equal_layouts(trials[0].attrs)
    assert [group[0] for group in equal.groups] == [DEFAULT, Setting({"bind_to": "none"})]
    (note,) = [n for n in _inactive(trials) if n.code == "placements.equal"]
    assert note.data == {"placements": 14, "parameters": ["bind_to", "map_by"]}


def test_a_continued_search_goes_on_without_asking_again() -> None:
    whole = search(MemoryTrialStore(), watch(Launcher()), name="auto")
    trial_store, launcher = MemoryTrialStore(), Launcher()
    search(trial_store, watch(launcher), name="auto", trials=3)
    asked = len(launcher.specs)
    again = search(trial_store, watch(launcher), name="auto")
    assert len(launcher.specs) == asked
    assert [t.setting for t in again] == [t.setting for t in whole]


def test_a_space_without_placement_asks_nothing() -> None:
    launcher = Launcher()
    space = Space("plain", (SIZE,))
    assert len(search(MemoryTrialStore(), watch(launcher, space), space)) == 3
    assert launcher.specs == []


def test_other_threads_are_asked_about_when_they_are_tried() -> None:
    space, launcher = Space("hybrid", (MAP, BIND, THREADS)), Launcher()
    placements = watch(launcher, space)
    assert placements.asked() is not None
    assert {spec.ranks for spec in launcher.specs} == {4}
    assert placements.asked(Setting({"map_by": "slot"})) is None
    answer = placements.asked(Setting({"threads": 2, "map_by": "slot"}))
    assert answer is not None
    assert answer.resources == Setting({"threads": 2})
    assert launcher.specs[-1].ranks == 2
    trials = search(MemoryTrialStore(), watch(launcher, space), space)
    assert len({t.effective for t in trials if not t.reused}) == sum(not t.reused for t in trials)
    assert not any("map_by" in t.effective for t in trials)


def test_masks_of_runs_decide_where_the_launcher_says_nothing() -> None:
    trials = search(MemoryTrialStore(), watch(Launcher(speaks=False)))
    launched = [t.effective for t in trials if not t.reused]
    # Each of 16 placements is seen in at most one run before it is known, then two are left.
    assert 8 <= len(launched) <= 16 + 2 * 4
    groups = {group for t in trials for equal in equal_layouts(t.attrs) for group in equal.groups}
    assert {len({s.get("bind_to") in FREE for s in group}) for group in groups} == {1}


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record.bindings.pop(),
        lambda record: setattr(record, "state", "failed"),
    ],
)
def test_an_incomplete_run_shows_no_layout(change: Callable[[RunRecord], object]) -> None:
    placements = watch(Launcher(speaks=False))
    assert placements.asked() is None
    record = RunRecord("ok", bindings=["0", "1", "2", "3"])
    assert placements.seen(DEFAULT, record) is None
    other = RunRecord("ok", bindings=["0", "1", "2", "3"])
    change(other)
    assert placements.seen(Setting({"map_by": "slot"}), other) is None
    group = (DEFAULT, Setting({"map_by": "slot"}))
    assert placements.seen(Setting({"map_by": "slot"}), record) == EqualLayouts(
        NAMES, DEFAULT, (group,)
    )


def test_what_others_wrote_is_not_trusted_blindly() -> None:
    trials = [Trial(0, DEFAULT, DEFAULT, attrs={EQUAL: [{"groups": "x"}, 7]})]
    assert [n.code for n in _inactive(trials)] == []
