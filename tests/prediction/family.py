"""A family of programs whose best setting is a known function of their features."""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from autotune.prediction import Example, TrainingSet
from autotune.space import DEFAULT, Setting
from runner.trace import FEATURE_NAMES, Features

LIMIT = "btl_sm_eager_limit"
EAGER = [512, 8192, 32768]
BIND = ["core", "none"]
SETTINGS = (
    DEFAULT,
    *(
        Setting({k: v for k, v in ((LIMIT, e), ("bind_to", b)) if v is not None})
        for e, b in product([None, *EAGER], [None, *BIND])
        if (e, b) != (None, None)
    ),
)


def traced(p2p_bytes: float, ranks: int = 4, app: str = "toy") -> Features:
    """A program that sends messages of that size."""
    values = dict.fromkeys(FEATURE_NAMES, 0.0)
    values |= {"p2p_bytes": p2p_bytes, "ranks": float(ranks), "p2p_messages": 1000.0}
    values |= {"p2p_receivers": 2.0, "comm_to_comp": 1.0, "p2p_share": 1.0}
    values |= {"comm_fraction": 0.5}
    return Features(
        values=values,
        argv=("toy",),
        cwd=".",
        ranks=ranks,
        nodes=1,
        cores=2,
        mpi_name="openmpi",
        mpi_version="5.0.11",
        machine={"fingerprint": "f" * 16, "cpu_model": "", "hostname": ""},
        wall_s=1.0,
        app=app,
    )


def truth(p2p_bytes: float, setting: Setting) -> float:
    """T / T_default: the smallest limit that lets the messages pass is best; binding is bad."""
    eager = setting.get(LIMIT)
    best = min((e for e in EAGER if e >= p2p_bytes), default=None)
    log = 0.0
    if eager is not None:
        log = -0.3 if eager == best else 0.1
    if setting.get("bind_to") == "core":
        log += 0.2
    return math.exp(log)


def example(
    app: str,
    p2p_bytes: float,
    seed: int = 0,
    noise: float = 0.01,
    null: bool = False,
    ranks: int = 4,
) -> Example:
    rng = np.random.default_rng([seed, int(p2p_bytes), ranks])
    ratios = [1.0 if null else truth(p2p_bytes, s) for s in SETTINGS]
    runs = tuple(
        tuple(float(r * math.exp(rng.normal(0, noise))) for _ in range(5 if i == 0 else 3))
        for i, r in enumerate(ratios)
    )
    best = min(ratios)
    return Example(
        key=f"{app}-{ranks}",
        app=app,
        ranks=ranks,
        cluster="local",
        features=traced(p2p_bytes, ranks, app),
        settings=SETTINGS,
        runs=runs,
        opub=best if best < 1 else 1.0,
        null=best >= 1,
        machine="f" * 16,
        mpi="openmpi 5.0.11",
    )


SIZES = (100, 140, 200, 280, 1000, 1400, 2000, 2800, 9000, 11000, 16000, 22000)


def family(null: bool = False) -> TrainingSet:
    """Twelve programs, four for each best limit."""
    return TrainingSet(tuple(example(f"app{i:02d}", s, null=null) for i, s in enumerate(SIZES)))
