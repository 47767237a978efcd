"""Composition of a program's time from its work and known responses; and what is named from it."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.calibration.points import Point
from autotune.calibration.response import Response, ResponseTable
from autotune.prediction.composed import ComposedModel
from autotune.prediction.composition import Composition, proposals
from autotune.prediction.examples import Example
from autotune.prediction.program_effects import (
    ProgramEffects,
    Situation,
    SituationEffects,
    effects_from_json,
)
from autotune.prediction.workload import timed_s
from autotune.space import DEFAULT, Setting
from runner.trace import Features, Profile, ProfileRow
from runner.trace.partners import Pair, Partners
from tests.calibration.machines import BCAST, EAGER, FLAGS, PML, calibration, table
from tests.case_table import case_table
from tests.prediction.family import traced

LIMIT, GET, CHAIN = Setting({EAGER: 8192}), Setting({FLAGS: "get"}), Setting({BCAST: 2})
HERE = Situation(crowded=False, across=False)


def model(**fields: Any) -> ComposedModel:
    """With these effects on a node that has a core for each rank."""
    return ComposedModel(ProgramEffects({HERE: SituationEffects(**fields)}))


LEARNED = model(slope=1.0, between=0.1, floor=0.005, programs=20)


def row(operation: str, size: int, calls: float, seconds: float, **more: object) -> ProfileRow:
    """A row of ``calls`` with messages of ``size`` bytes."""
    found = ProfileRow(
        operation=operation,
        nonblocking=False,
        size_bin=size.bit_length(),
        comm_size=0 if operation in ("send", "wait", "recv") else 2,
        far=False,
        calls=calls,
        bytes=calls * size,
        seconds=seconds,
        least_seconds=seconds,
    )
    return dataclasses.replace(found, **more)  # type: ignore[arg-type]


def program(*rows: ProfileRow, figure_s: float = 1.0, ranks: int = 2) -> Features:
    """A program of one second that does these calls."""
    waiting = dict.fromkeys((one.operation for one in rows), 0.0)
    profile = Profile(rows, figure_s - sum(one.seconds for one in rows), waiting)
    base = traced(4096, ranks)
    return dataclasses.replace(base, profile=profile, figure_s=figure_s, wall_s=1.0)


def composed(features: Features, *settings: Setting) -> Composition:
    found = Composition.of(features, calibration(table(settings)))
    assert found is not None
    return found


def test_a_collective_answers_as_it_was_calibrated() -> None:
    """20,000 calls of 10 us are 0.2 of 1 s; their time falls by a factor of exp(-0.5)."""
    found = composed(program(row("bcast", 65536, 20000, 0.3)), CHAIN)
    assert found.responds == pytest.approx(0.2)
    gone = 0.2 * (1 - math.exp(Response(-0.5, 0.01, 3).shrunk))
    assert found.log(CHAIN).log == pytest.approx(math.log(1 - gone))
    assert found.most() == pytest.approx(1 / (1 - gone) - 1)
    assert found.log(DEFAULT).log == 0.0


def test_two_levels_do_not_gain_more_than_the_best_that_was_measured() -> None:
    found = composed(program(row("send", 4096, 40000, 0.3, nonblocking=True)), LIMIT, GET)
    alone = min(found.log(LIMIT).log, found.log(GET).log)
    assert found.log(LIMIT.with_values(GET)).log == pytest.approx(alone)


def test_only_allowed_settings_are_proposed() -> None:
    found = composed(program(row("send", 4096, 40000, 0.3, nonblocking=True)), LIMIT, GET, CHAIN)
    joint = LIMIT.with_values(GET)
    assert set(proposals(found, [LIMIT, GET, CHAIN])) == {LIMIT, GET, joint}  # No broadcasts.
    assert proposals(found, [LIMIT, GET], lambda setting: EAGER not in setting) == [GET]


def test_waiting_does_not_answer() -> None:
    """The trace saw 0.9 s in calls that cost 0.01 s here: the rest is waiting for others."""
    found = composed(program(row("bcast", 65536, 1000, 0.9)), CHAIN)
    assert found.responds == pytest.approx(0.01)


def test_no_more_answers_than_the_trace_saw() -> None:
    found = composed(program(row("bcast", 65536, 100000, 0.1)), CHAIN)
    assert found.responds == pytest.approx(0.1)


def test_a_latency_gain_is_not_carried_to_long_messages() -> None:
    short, long = (
        composed(program(row("send", size, 40000, 0.3)), LIMIT).log(LIMIT).log
        for size in (4096, 262144)
    )
    assert short < -0.05
    assert long > 0.05


def test_parameters_of_other_operations_do_nothing() -> None:
    found = composed(program(row("bcast", 65536, 20000, 0.3)), CHAIN, LIMIT)
    assert found.log(CHAIN.with_values(LIMIT)).log == pytest.approx(found.log(CHAIN).log)


def test_what_was_not_measured_is_not_touched() -> None:
    """A level that is known, joined by one that acts and was measured in another table only."""
    points = {
        Point("bcast", 65536): Response(-0.5, 0.01, 9),
        Point("bcast", 8): Response(0, 0.01, 9),
    }
    base = table([CHAIN])
    partly = ResponseTable(2, 1, 2, base.default, {CHAIN: points, GET.with_values(LIMIT): points})
    features = program(row("bcast", 65536, 20000, 0.3))
    found = Composition.of(features, calibration(partly))
    assert found is not None
    assert found.log(CHAIN).uncovered == 0.0
    assert found.log(GET).uncovered == pytest.approx(0.2)
    assert not LEARNED.judge(found, features, [GET])


def test_messages_within_a_node_of_a_program_across_nodes_are_not_judged() -> None:
    rows = (row("send", 4096, 20000, 0.2), row("send", 4096, 1000, 0.1, far=True))
    features = dataclasses.replace(program(*rows), nodes=2)
    found = Composition.of(features, calibration(table([LIMIT], nodes=2)))
    assert found is not None
    assert found.log(LIMIT).uncovered > 0.03
    assert Composition.of(features, calibration(table([LIMIT]))) is None


def test_the_time_is_the_program_s_own_figure() -> None:
    assert timed_s(program(row("bcast", 8, 10, 0.1), figure_s=0.5)) == 0.5
    # A figure that cannot hold the communication, as microseconds a call, is not the time of it.
    assert timed_s(program(row("bcast", 8, 10, 0.1), figure_s=0.01)) == 1.0


def test_features_without_a_profile_are_not_composed() -> None:
    assert Composition.of(traced(4096), calibration(table([LIMIT]))) is None


@given(st.floats(0, 20000), st.floats(0.001, 0.9), st.sampled_from((8, 4096, 65536, 1048576)))
def test_a_composed_time_is_never_negative(calls: float, seconds: float, size: int) -> None:
    found = composed(program(row("bcast", size, calls, seconds)), CHAIN, LIMIT)
    for setting in (DEFAULT, CHAIN, LIMIT, CHAIN.with_values(LIMIT)):
        seen = found.log(setting)
        assert math.isfinite(seen.log)
        assert seen.sd >= 0
    assert 0 <= found.responds <= 1 + 1e-9
    assert found.most() >= 0


def often(features: Features, runs: int = 12, sd: float = 0.01, **more: object) -> Composition:
    """On a machine whose responses have so many runs behind them."""
    found = Composition.of(features, calibration(often_table(runs, sd)))
    assert found is not None
    return found


def often_table(runs: int = 12, sd: float = 0.01) -> ResponseTable:
    base = table([CHAIN, LIMIT])
    responses = {
        s: {p: Response(r.log, sd, runs) for p, r in points.items()}
        for s, points in base.responses.items()
    }
    return dataclasses.replace(base, responses=responses)


LOUD = program(row("bcast", 65536, 40000, 0.5))


def test_a_gain_that_is_certain_is_named_with_its_chance_of_harm() -> None:
    found = often(LOUD)
    named = LEARNED.choose(LEARNED.judge(found, LOUD, proposals(found, [CHAIN, LIMIT])))
    assert named.setting == CHAIN
    assert named.harm < 0.05
    low, high = named.interval(LEARNED.effects.of(LOUD).dof)
    assert low < named.gain < high


@case_table(
    ("found", "judge"),
    [
        (often(LOUD, runs=1), LEARNED),  # Seen at one time only.
        (often(LOUD, sd=0.6), LEARNED),  # The machine changes its state.
        (often(LOUD), model(between=1.0, programs=20)),  # Programs differ.
        (often(LOUD), ComposedModel()),  # No program was seen.
        (often(program(row("bcast", 65536, 1000, 0.5))), LEARNED),  # Hardly anything responds.
    ],
)
def test_the_default_is_named_where_a_gain_is_not_certain(
    found: Composition, judge: ComposedModel
) -> None:
    judged = judge.judge(found, LOUD, [CHAIN, LIMIT])
    assert judge.choose(judged).setting == DEFAULT


def test_an_answer_says_what_dominates_and_what_can_be_gained() -> None:
    features = program(row("bcast", 65536, 20000, 0.3), row("send", 64, 1000, 0.1))
    known = calibration(table([CHAIN, LIMIT, Setting({PML: "ucx"})]))
    answer = LEARNED.answer(features, known, lambda setting: PML not in setting, 2.0)
    assert answer is not None
    assert answer.parts[0][0].operation == "bcast"
    assert answer.parts[0][1] == pytest.approx(0.2)
    assert answer.most > 0.05
    assert answer.best.setting == CHAIN
    elsewhere = dataclasses.replace(features, nodes=4)
    assert LEARNED.answer(elsewhere, known, lambda setting: True, 2.0) is None


def recorded(app: str, answers: float, **more: object) -> Example:
    """A program that answers ``answers`` times as strongly as its composition says."""
    known = calibration(table([CHAIN, LIMIT]))
    found = Composition.of(LOUD, known)
    assert found is not None
    ratio = math.exp(answers * found.log(CHAIN).log)
    example = Example(
        key=app,
        app=app,
        ranks=2,
        cluster="local",
        features=LOUD,
        settings=(DEFAULT, CHAIN, LIMIT),
        runs=((1.0, 1.0, 1.0), (ratio,) * 3, (1.0,) * 3),
        opub=ratio,
        null=False,
        calibration=known,
    )
    return dataclasses.replace(example, **more)  # type: ignore[arg-type]


def learned(*examples: Example) -> SituationEffects:
    """What is learned from programs on a node that has a core for each rank."""
    return ProgramEffects.fit(examples).situations[HERE]


def test_how_far_programs_differ_from_their_composition_is_learned() -> None:
    alike = learned(*(recorded(f"p{n}", 1.0) for n in range(20)))
    assert alike.programs == 20
    assert alike.slope == pytest.approx(1.0, abs=0.02)
    assert alike.between < 0.2
    mixed = learned(*(recorded(f"p{n}", n % 2) for n in range(20)))
    assert mixed.slope == pytest.approx(0.5, abs=0.06)
    assert mixed.between > 0.4
    # Ten inputs of one program are one witness.
    once = learned(*(recorded("p", 1.0) for _ in range(10)))
    assert once.programs == 1
    assert once.slope == pytest.approx(learned(recorded("p", 1.0)).slope)
    assert ProgramEffects.fit([]) == ProgramEffects()
    # Nothing was seen of programs with more ranks than cores.
    crowded = dataclasses.replace(LOUD, ranks=LOUD.cores * 2)
    assert ProgramEffects({HERE: alike}).of(crowded) == SituationEffects()


def test_waiting_for_messages_is_learned() -> None:
    """Twice as much time as the calls cost went into them on every rank, and all of it answers."""
    slow = program(row("bcast", 65536, 20000, 0.5))
    known = calibration(table([CHAIN, LIMIT]))
    whole = Composition.of(slow, known, 1.0)
    assert whole is not None
    assert whole.responds == pytest.approx(0.5)
    ratio = math.exp(whole.log(CHAIN).log)
    runs = ((1.0,) * 3, (ratio,) * 3, (1.0,) * 3)
    found = learned(*(recorded(f"p{n}", 1.0, features=slow, runs=runs) for n in range(8)))
    assert found.waiting >= 0.75  # The slope can tell the rest.
    # What other ranks did not need, as a barrier shows it, is waiting for computing.
    uneven = row("bcast", 65536, 20000, 0.5, least_seconds=0.2)
    found_uneven = Composition.of(program(uneven), known, 1.0)
    assert found_uneven is not None
    assert found_uneven.responds == pytest.approx(0.2)


YIELD = Setting({"mpi_yield_when_idle": True})
WAITING = program(row("bcast", 65536, 1000, 0.5))
"""Half of the time in MPI, hardly any of which responds."""


def yielding(app: str, ratio: float) -> Example:
    runs = ((1.0,) * 3, (ratio,) * 3)
    return recorded(app, 1.0, features=WAITING, settings=(DEFAULT, YIELD), runs=runs)


def test_what_cannot_be_composed_is_learned_from_programs() -> None:
    effects = ProgramEffects.fit([yielding(f"p{n}", 0.8) for n in range(30)])
    [residual] = effects.situations[HERE].residuals
    assert residual.part == YIELD
    assert residual.mean < -0.3  # Half of the time is waiting.
    found = often(WAITING)
    sure = ComposedModel(effects)
    named = sure.choose(sure.judge(found, WAITING, [YIELD]))
    assert named.setting == YIELD
    assert named.gain == pytest.approx(0.25, abs=0.05)
    # With other ranks for each core nothing was seen.
    crowded = dataclasses.replace(WAITING, ranks=WAITING.cores * 2)
    assert not sure.judge(found, crowded, [YIELD])
    mixed = ProgramEffects.fit([yielding(f"p{n}", 0.8 if n % 2 else 1.2) for n in range(30)])
    unsure = ComposedModel(mixed)
    assert unsure.choose(unsure.judge(found, WAITING, [YIELD])).setting == DEFAULT


def test_a_cell_s_default_that_was_lucky_does_not_count() -> None:
    """All ratios of the second cell are 5 % too large, those of settings without effect too."""
    runs = ((1.0,) * 3, (1.05 * 0.9,) * 3, (1.05,) * 3)
    unlucky = [recorded(f"p{n}", 1.0, runs=runs) for n in range(8)]
    fair = [recorded(f"p{n}", 1.0, runs=((1.0,) * 3, (0.9,) * 3, (1.0,) * 3)) for n in range(8)]
    # One setting shows it, so half of it is taken away; without that the slope would halve.
    assert learned(*unlucky).slope > 0.8 * learned(*fair).slope


def test_effects_come_back_from_their_file() -> None:
    effects = ProgramEffects.fit([yielding("p", 0.8), recorded("q", 0.9)])
    told = effects.to_json()
    assert effects_from_json(json.loads(json.dumps(told))) == effects
    assert ProgramEffects.from_package().of(LOUD).dof > 0
    [first] = told["situations"]
    for key, wrong in (("slope", "1"), ("waiting", 2), ("residuals", {}), ("crowded", None)):
        damaged = {k: v for k, v in first.items() if wrong is not None or k != key}
        if wrong is not None:
            damaged[key] = wrong
        with pytest.raises(ValueError, match=key):
            effects_from_json(told | {"situations": [damaged]})
    with pytest.raises(ValueError, match="schema"):
        effects_from_json(told | {"schema": "x"})


# Mapping ------------------------------------------------------------------------------------------

IN_TURN = Setting({"map_by": "node"})


def across(pairs: dict[tuple[int, int], int], share: float) -> Features:
    """Four ranks, two on each of two nodes, with so many messages of 64 KiB between each pair; the
    share of the run time is that of the messages."""
    nodes = (0, 0, 1, 1)
    partners = Partners(nodes, tuple(Pair(*one, n, n * 65536) for one, n in pairs.items()))
    far = sum(n for one, n in pairs.items() if nodes[one[0]] != nodes[one[1]]) / 4
    near = sum(pairs.values()) / 4 - far
    rows = [
        row("send", 65536, calls, share * calls / (far + near), far=there)
        for calls, there in ((far, True), (near, False))
        if calls
    ]
    return dataclasses.replace(program(*rows, ranks=4), nodes=2, partners=partners)


def of_testbed(features: Features, *settings: Setting, us: float = 2000.0) -> Composition:
    """On two nodes, where every operation takes so long."""
    found = Composition.of(features, calibration(table(settings, us=us, ranks=4, nodes=2)))
    assert found is not None
    return found


AFTER_NEXT = {(0, 2): 400, (2, 0): 400, (1, 3): 400, (3, 1): 400}
NEXT = {(0, 1): 400, (1, 0): 400, (2, 3): 400, (3, 2): 400}


def test_partners_that_would_share_a_node_gain_by_the_mapping() -> None:
    found = of_testbed(across(AFTER_NEXT, 0.5))
    assert found.moved is not None
    assert (found.moved.before, found.moved.after) == (1.0, 0.0)
    effect = found.log(IN_TURN)
    assert effect.log == pytest.approx(math.log(1 - found.responds), abs=0.02)
    assert found.responds > 0.3
    assert effect.sd < 0.05
    assert found.most() == pytest.approx(math.expm1(-effect.log), rel=0.01)
    assert IN_TURN in proposals(found, [LIMIT, IN_TURN])


def test_partners_that_share_a_node_lose_by_it() -> None:
    found = of_testbed(across(NEXT, 0.5))
    assert found.moved is not None
    assert (found.moved.before, found.moved.after) == (0.0, 1.0)
    effect = found.log(IN_TURN)
    assert effect.log > 0.2
    assert IN_TURN not in proposals(found, [IN_TURN])
    assert found.most() == 0.0


def test_everyone_with_everyone_does_not_answer_to_it() -> None:
    every = {(a, b): 100 for a in range(4) for b in range(4) if a != b}
    found = of_testbed(across(every, 0.5))
    assert found.moved is None
    assert found.log(IN_TURN).log == 0.0


def test_a_limit_acts_on_the_messages_that_stay_between_nodes() -> None:
    features = across({**AFTER_NEXT, (0, 3): 800, (3, 0): 800}, 0.5)
    found = of_testbed(features, LIMIT)
    assert found.moved is not None
    assert found.moved.after == 0.5
    both, mapped = found.log(IN_TURN.with_values(LIMIT)), found.log(IN_TURN)
    alone = found.log(LIMIT)
    change = [math.expm1(one.log) for one in (both, mapped, alone)]
    assert change[0] == pytest.approx(change[1] + change[2] / 2)


def test_what_another_parameter_does_to_moved_messages_is_not_covered() -> None:
    found = of_testbed(across(AFTER_NEXT, 0.5), LIMIT)
    assert found.log(IN_TURN).uncovered == 0.0
    # Only what is left of their time counts: little of what was between nodes, all of the others.
    assert 0.0 < found.log(IN_TURN.with_values(LIMIT)).uncovered < 0.01
    back = of_testbed(across(NEXT, 0.5), LIMIT)
    assert back.log(IN_TURN.with_values(LIMIT)).uncovered > 0.1


def test_nodes_with_other_numbers_of_ranks_are_not_judged() -> None:
    features = across(AFTER_NEXT, 0.5)
    assert features.partners is not None
    lopsided = dataclasses.replace(features.partners, nodes=(0, 0, 0, 1))
    assert of_testbed(dataclasses.replace(features, partners=lopsided)).moved is None


def test_collectives_make_a_mapping_uncertain() -> None:
    features = across(AFTER_NEXT, 0.4)
    assert features.profile is not None
    rows = (*features.profile.rows, row("allreduce", 65536, 150, 0.4, far=True, comm_size=4))
    profile = Profile(rows, 0.2, {"send": 0.0, "allreduce": 0.0})
    found = of_testbed(dataclasses.replace(features, profile=profile))
    assert found.log(IN_TURN).sd > of_testbed(features).log(IN_TURN).sd + 0.05
