"""The benchmark of names: what it changes, and what it counts."""

from __future__ import annotations

import random

from benchmarks.parameter_names import Drawn, alarms, changed, misspelt, pool
from tests.parameters.catalogues import catalogue

EVERY = [catalogue(), catalogue("4.0.2", "mpich")]


def test_one_letter_is_changed_to_another_of_its_kind() -> None:
    generator = random.Random(2)
    for name in ("btl_sm_eager_limit", "UCX_TLS", "pml_v2"):
        for _ in range(50):
            other = changed(name, generator)
            assert sum(a != b for a, b in zip(name, other, strict=True)) == 1
            assert [c for c in other if c == "_"] == [c for c in name if c == "_"]
            assert other.isupper() == name.isupper()


def test_every_changed_name_is_counted_once() -> None:
    drawn = pool(EVERY)
    counts = misspelt(drawn, EVERY, 5)
    assert counts["named"] + counts["valid"] == len(drawn)
    right = counts["right"] + counts["tied"]
    assert right == counts["named"]


def test_a_false_alarm_is_seen() -> None:
    assert not list(alarms(pool(EVERY), EVERY))
    (alarm,) = alarms([Drawn(0, "prte", "btl")], EVERY)
    assert alarm[1].kind == "layer"
