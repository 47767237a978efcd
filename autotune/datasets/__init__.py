"""Datasets: measured runs as files, each dataset a folder of Parquet shards with a card.

Grids are complete products of a few parameters; strategies are replayed on them.  Explorations are
random settings of a large space, for importance, analysis and training.  See
docs/howto/datasets.md.
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
