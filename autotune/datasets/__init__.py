"""Measured runs as files: each dataset a folder of Parquet shards with a card (docs/datasets.md).

Grids are complete products of a few parameters, on which strategies are replayed; explorations are
random settings of a large space, for importance, analysis and training.
"""

from autotune.datasets.card import Card, Cell, RecordedMachine
from autotune.datasets.dataset import Dataset, create_dataset, load, ratios, write_card
from autotune.datasets.recorded_space import narrowed, recorded_space
from autotune.datasets.replay import BestRecorded, Landscape
from autotune.datasets.shards import RunRow, read_shard, write_shard
from autotune.datasets.significance import Recorded

__all__ = [
    "BestRecorded",
    "Card",
    "Cell",
    "Dataset",
    "Landscape",
    "Recorded",
    "RecordedMachine",
    "RunRow",
    "create_dataset",
    "load",
    "narrowed",
    "ratios",
    "read_shard",
    "recorded_space",
    "write_card",
    "write_shard",
]
