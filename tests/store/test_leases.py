"""Leases are counted in beats: no step of a clock, and no pause of this process, ends one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from autotune.store.leases import BEAT_S, GIVEN_UP, LEASE_BEATS, Lease, LeaseWatch, Sign

GROUP = ("trial", 1)
STEPS = st.sampled_from([0.0, 0.0, 0.0, 61.0, -61.0, 3600.0, -3600.0, 1e6, -1e6])


class Worker:
    """A worker on another host; the database's clock gives the time of its sign."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.heartbeat = 1e9

    def beat(self, wall: float) -> None:
        self.heartbeat = wall if wall != self.heartbeat else wall + 0.001

    @property
    def sign(self) -> Sign:
        return Sign(self.name, self.heartbeat)


class World:
    """A process that watches two workers, with its monotonic clock and the database's clock."""

    def __init__(self) -> None:
        self.now = self.wall = 1e9
        self.watch = LeaseWatch(lambda: self.now)
        self.living, self.dead = Worker("living"), Worker("dead")

    def passes(self, seconds: float) -> None:
        self.now += seconds
        self.wall += seconds

    def look(self) -> dict[str, Lease]:
        return self.watch.look(GROUP, {w.name: w.sign for w in (self.living, self.dead)})


@given(st.lists(st.tuples(STEPS, st.floats(0.0, BEAT_S), st.integers(1, 3)), max_size=60))
def test_the_living_keep_their_leases_and_the_dead_lose_them(
    script: list[tuple[float, float, int]],
) -> None:
    """Each entry is a beat: a step of the clock after the sign of life, how late the look is, and
    how often one looks then.
    """
    world = World()
    known = world.look()
    assert set(known.values()) == {Lease.UNKNOWN}
    for number, (step, late, looks) in enumerate(script, 1):
        world.passes(BEAT_S)
        world.living.beat(world.wall)
        world.wall += step
        world.passes(late)
        for _ in range(looks):
            known = world.look()
        assert known["living"] is Lease.ACTIVE
        assert (known["dead"] is Lease.OVER) == (number >= LEASE_BEATS)


@given(st.lists(st.floats(0.0, 10 * BEAT_S), max_size=40))
def test_a_lease_is_over_only_after_its_beats_and_its_time(pauses: list[float]) -> None:
    world = World()
    world.look()
    began = world.now
    for looks, pause in enumerate(pauses, 1):
        world.passes(pause)
        over = world.look()["dead"] is Lease.OVER
        if over:
            assert looks >= LEASE_BEATS
            assert world.now - began >= LEASE_BEATS * BEAT_S
        if looks >= LEASE_BEATS and all(p >= BEAT_S for p in pauses[:looks]):
            assert over


@given(st.floats(BEAT_S, 1e7))
def test_a_pause_of_the_watching_process_counts_as_one_beat(pause: float) -> None:
    """As when the whole machine was suspended: the others had no time to renew anything."""
    world = World()
    world.look()
    world.passes(pause)
    assert world.look()["living"] is not Lease.OVER
    world.living.beat(world.wall)
    assert world.look()["living"] is Lease.ACTIVE


def test_what_was_given_up_is_free_at_once_and_another_holder_begins_anew() -> None:
    watch = LeaseWatch(lambda: 0.0)
    assert watch.look(GROUP, {1: Sign("a", GIVEN_UP)}) == {1: Lease.OVER}
    assert watch.look(GROUP, {1: Sign("b", 5.0)}) == {1: Lease.ACTIVE}


def test_what_is_gone_is_forgotten_and_groups_are_apart() -> None:
    now = 0.0
    watch = LeaseWatch(lambda: now)
    for _ in range(LEASE_BEATS + 1):
        known = watch.look(GROUP, {1: Sign("a", None)})
        other = watch.look(("role", 1), {1: Sign("a", now)})
        now += BEAT_S
    assert (known[1], other[1]) == (Lease.OVER, Lease.ACTIVE)
    assert watch.look(GROUP, {}) == {}
    assert watch.look(GROUP, {1: Sign("a", None)}) == {1: Lease.UNKNOWN}
