"""The class-wide setting as a row of the evaluation: one setting for all the other programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from autotune.anova.classwide import direct_setting
from autotune.anova.sources import dataset_table
from autotune.anova.worth import Worth
from autotune.datasets import load
from autotune.prediction.evaluation import ClassWide
from autotune.prediction.examples import Example
from autotune.space import Setting


def class_wide(places: Sequence[str | Path]) -> ClassWide | None:
    """Chooses the measured setting with the best mean share that slows no program it was given.

    None where there is more than one dataset, or no setting was run on every cell: then there is
    no list of settings for a class.
    """
    if len(places) != 1:
        return None
    table = dataset_table(load(places[0]))
    worth = Worth(table)
    if not worth.everywhere:
        return None

    def choose(examples: Sequence[Example]) -> Setting:
        keys = {example.key for example in examples}
        part = table.where(lambda place: place.key in keys)
        return direct_setting(part, worth.on(part))

    return choose
