"""What a parameter can touch in a program, and the model that learns from it."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from autotune.prediction import (
    Example,
    TrainingSet,
    evaluate,
    model_of,
    train,
    warm_start_settings,
)
from autotune.prediction.exposure import Exposure, ExposureModel
from autotune.prediction.scorer import NODES, model_values
from autotune.space import DEFAULT, Parameter, Setting, Space
from runner.trace import FEATURES, Features
from tests.prediction.family import traced
from tests.refusals import refusal

TCP, BCAST = "btl_tcp_eager_limit", "coll_tuned_bcast_algorithm"
SETTINGS = (
    DEFAULT,
    *(Setting({TCP: size}) for size in (4096, 262144, 524288)),
    *(Setting({BCAST: number}) for number in (1, 6)),
    *(Setting({TCP: size, BCAST: 6}) for size in (4096, 524288)),
)
DEFAULTS = {TCP: 65536, BCAST: 0}


def program(p2p: float, size: int, bcast: float = 0.0, nodes: int = 2) -> Features:
    """Messages of so many bytes take the share ``p2p`` of the time, broadcasts ``bcast``."""
    found = traced(float(size))
    both = p2p + bcast
    values = found.values | {
        "comm_fraction": both,
        "p2p_share": p2p / both if both else 0.0,
        "coll_share": bcast / both if both else 0.0,
        "one_to_n_share": bcast / both if both else 0.0,
        "bcast_calls": 10.0 if bcast else 0.0,
        "bcast_bytes": 131072.0 if bcast else 0.0,
        "p2p_distance": 1.0,
    }
    values |= {f"p2p_size_2e{int(math.log2(size)):02d}": 1.0} if p2p else {}
    return dataclasses.replace(found, values=values, nodes=nodes)


def truth(p2p: float, size: int, bcast: float, setting: Setting) -> float:
    """T / T_default: a limit helps what it lets pass; the tree helps broadcasts; a new limit costs
    broadcasts something."""
    limit = setting.get(TCP, 65536)
    assert isinstance(limit, int)
    gain = 0.6 * p2p * (65536 < size <= limit) - 0.5 * p2p * (limit < size <= 65536)
    gain += {6: 0.5, 1: -0.4}.get(int(setting.get(BCAST, 0)), 0.0) * bcast
    return math.exp(-gain + 0.1 * bcast * (limit != 65536))


def cell(app: str, p2p: float, size: int, bcast: float) -> Example:
    ratios = [truth(p2p, size, bcast, s) for s in SETTINGS]
    best = min(ratios)
    draw = np.random.default_rng([int(100 * p2p), size])
    return Example(
        key=app,
        app=app,
        ranks=4,
        cluster="two",
        features=program(p2p, size, bcast),
        settings=SETTINGS,
        runs=tuple(tuple(r * math.exp(draw.normal(0, 0.01)) for _ in range(5)) for r in ratios),
        opub=best if best < 0.97 else 1.0,
        null=best >= 0.97,
    )


CELLS = tuple(
    cell(f"a{number}", p2p, size, bcast)
    for number, (p2p, size, bcast) in enumerate(
        [
            *((0.5, 2**17, 0.0), (0.4, 2**17, 0.1), (0.3, 2**10, 0.0), (0.6, 2**10, 0.0)),
            *((0.0, 2**10, 0.5), (0.1, 2**10, 0.4), (0.3, 2**15, 0.3), (0.02, 2**17, 0.01)),
        ]
    )
)
FAMILY = TrainingSet(CELLS, defaults=DEFAULTS)


def test_what_a_program_never_does_cannot_be_touched() -> None:
    quiet = Exposure(model_values(program(0.5, 2**17)))
    assert quiet.to(BCAST) == (0.0, 0.0)
    assert quiet.to("coll_han_priority") == (0.0, 0.0)
    assert quiet.to("pml_ob1_send_pipeline_depth") == (0.5, 0.0)
    loud = Exposure(model_values(program(0.2, 2**17, 0.3)))
    assert loud.to(BCAST) == pytest.approx((0.0, 0.3))
    assert loud.to("coll_tuned_allreduce_algorithm") == (0.0, 0.0)
    assert loud.to("map_by") == pytest.approx((0.2, 0.3))
    assert loud.to("MPIR_CVAR_BCAST_INTRA_ALGORITHM") == loud.to(BCAST)
    assert (loud.large(BCAST), loud.large("coll_tuned_barrier_algorithm")) == (1.0, 0.0)


def test_the_network_matters_between_nodes_only() -> None:
    for nodes, touched in ((1, 0.0), (2, 0.5)):
        exposure = Exposure(model_values(program(0.5, 2**17, nodes=nodes)))
        assert exposure.to(TCP)[0] == touched
        assert exposure.crossing(TCP, 65536, 524288) == touched


def test_a_limit_moves_messages_between_its_old_and_its_new_value() -> None:
    exposure = Exposure(model_values(program(0.5, 2**17)))
    assert exposure.crossing(TCP, 65536, 524288) == 0.5
    assert exposure.crossing(TCP, 524288, 65536) == 0.5
    assert exposure.crossing(TCP, 65536, 65536) == 0.0
    assert exposure.crossing(TCP, 262144, 524288) == 0.0
    for name in ("btl_tcp_links", "btl_tcp_rndv_eager_limit", "btl_sm_fbox_threshold"):
        assert exposure.crossing(name, 1, 524288) == 0.0
    # A rank hands the parts for all of them to an all-to-all: each message is one of them.
    values = exposure.values | {"alltoall_calls": 5.0, "alltoall_bytes": 4 * 100000.0}
    values |= {"n_to_n_share": 1.0, "p2p_share": 0.0, "coll_share": 1.0}
    spread = Exposure(values)
    assert spread.crossing(TCP, 65536, 131072) == 0.5
    assert spread.crossing(TCP, 131072, 524288) == 0.0


SHARES = {f.name: st.floats(0, f.largest or 1e7) for f in FEATURES}


@given(st.fixed_dictionaries(SHARES), st.sampled_from([1.0, 2.0]))
def test_no_share_is_below_nothing_or_infinite(values: dict[str, float], nodes: float) -> None:
    exposure = Exposure(values | {NODES: nodes})
    names = [TCP, BCAST, "map_by", "coll_han_priority", "btl_sm_eager_limit", "anything"]
    for name in [*names, "coll_tuned_barrier_algorithm", "coll_tuned_alltoallv_algorithm"]:
        figures = [*exposure.to(name), exposure.crossing(name, 10, 1e6), exposure.large(name)]
        assert all(0 <= x < 10 for x in figures)


def test_each_program_is_judged_by_what_the_others_show_of_its_messages() -> None:
    found = {r.method: r for r in evaluate(FAMILY, kinds=("exposure",)).rows}
    assert found["exposure"].performance > 0.98 > found["default"].performance + 0.1
    assert found["exposure"].slower == 0
    assert found["exposure"].false == 0 < found["best single"].false


def test_short_messages_and_no_broadcast_keep_the_default() -> None:
    predictor = train("exposure", CELLS, DEFAULTS).predictor
    assert predictor.name(model_values(program(0.5, 2**10)), SETTINGS).setting == DEFAULT
    named = predictor.name(model_values(program(0.5, 2**17)), SETTINGS)
    assert named.setting.get(TCP) in (262144, 524288)
    named = predictor.name(model_values(program(0.01, 2**10, 0.45)), SETTINGS)
    assert named.setting == Setting({BCAST: 6})


def test_the_default_scores_zero_and_what_nobody_ran_is_doubted() -> None:
    options = {"ridge": 0.3, "caution": 0.4}
    model = ExposureModel.fit(CELLS, options, DEFAULTS)
    values = model_values(program(0.5, 2**17))
    strange = Setting({TCP: 524288, "btl_tcp_links": 4})
    scores = model.scores(values, [DEFAULT, Setting({TCP: 524288}), strange])
    assert scores[0] == 0.0
    assert scores[1] < scores[2]
    # On one node the network is not used: nothing is known, nothing expected.
    here = model_values(program(0.5, 2**17, nodes=1))
    assert model.scores(here, [Setting({TCP: 524288})])[0] == 0.0
    assert len(model.scores(values, [])) == 0


def test_a_search_begins_with_a_level_too_that_nobody_ran() -> None:
    levels = (16384, 393216)
    space = Space("narrow", (Parameter(TCP, levels, default=65536),))
    model = model_of(train("exposure", CELLS, DEFAULTS), FAMILY, {})
    first = warm_start_settings(program(0.5, 2**17), space, model, "openmpi")
    assert first == [Setting({TCP: 393216})]


def test_it_says_what_it_expects_of_each_parameter() -> None:
    predictor = train("exposure", CELLS, DEFAULTS).predictor
    named = predictor.name(model_values(program(0.4, 2**17, 0.1)), SETTINGS)
    assert named.setting == Setting({TCP: 524288, BCAST: 6})
    assert named.why[TCP].touched == pytest.approx(0.5)
    assert named.why[BCAST].touched == pytest.approx(0.1)
    assert -0.4 < named.why[TCP].log < -0.1 < named.why[BCAST].log < 0
    assert (
        train("knn", CELLS, DEFAULTS)
        .predictor.name(model_values(program(0.4, 2**17)), SETTINGS)
        .why
        == {}
    )


def test_what_is_wrong_in_a_file_is_named(snapshot: SnapshotAssertion) -> None:
    changes: list[dict[str, object]] = [
        {"effects": {"x": {"sideways": []}}},
        {"effects": {"x": {"within p2p": [[1, 2]]}}},
        {"effects": {"x": {"within p2p": [[None, 0, 0]]}}},
        {"effects": {"x": {"within up": [[1, 0, 0]]}}},
        {"effects": {"x": {"within p2p": [[[], 0, 0]]}}},
        {"effects": {"a b": {"within p2p": [[1, 0, 0]]}}},
        {"effects": {"x": {"within p2p": [[1, 0, 0], [1, 0, 0]]}}},
        {"effects": {"x": {"within p2p": [[1, 0, -1]]}}},
        {"effects": {"x": {"within p2p": [[1, "much", 0]]}}},
        {"unseen": -1},
        {"defaults": {"x": "y"}},
    ]
    data = ExposureModel.fit(CELLS, {"ridge": 0.3, "caution": 0.1}, DEFAULTS).to_json()
    assert [
        refusal(ValueError, ExposureModel.from_json, data | change) for change in changes
    ] == snapshot
