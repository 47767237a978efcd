"""Measured runs as files: each dataset a folder of Parquet shards with a card (docs/datasets.md).

Grids are complete products of a few parameters, on which strategies are replayed; explorations are
random settings of a large space, for importance, analysis and training.
"""

from autotune.datasets.card import Card, Cell, Machine
from autotune.datasets.dataset import Dataset, create, load, ratios, write_card
from autotune.datasets.recorded_space import frozen, narrowed
from autotune.datasets.replay import Best, Landscape
from autotune.datasets.shards import Row, read_shard, write_shard
from autotune.datasets.significance import Draw

__all__ = [
    "Best",
    "Card",
    "Cell",
    "Dataset",
    "Draw",
    "Landscape",
    "Machine",
    "Row",
    "create",
    "frozen",
    "load",
    "narrowed",
    "ratios",
    "read_shard",
    "write_card",
    "write_shard",
]
