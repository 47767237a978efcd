"""Datasets: measured runs as files, each dataset a folder of Parquet shards with a card.

Grids are complete products of a few parameters; strategies are replayed on them.  Explorations are
random settings of a large space, for importance, analysis and training.  See
docs/howto/datasets.md.
"""

from typing import TYPE_CHECKING

from autotune.lazy import lazy_names

if TYPE_CHECKING:
    from autotune.datasets.card import Card, Cell, RecordedMachine
    from autotune.datasets.dataset import Dataset, create_dataset, load, ratios, write_card
    from autotune.datasets.recorded_space import narrow_space
    from autotune.datasets.replay import Landscape, ReplayOptimum
    from autotune.datasets.shards import RunRow, read_shard, write_shard
    from autotune.datasets.significance import RecordedRun

__all__ = [
    "Card",
    "Cell",
    "Dataset",
    "Landscape",
    "RecordedMachine",
    "RecordedRun",
    "ReplayOptimum",
    "RunRow",
    "create_dataset",
    "load",
    "narrow_space",
    "ratios",
    "read_shard",
    "write_card",
    "write_shard",
]

__getattr__ = lazy_names(
    __name__,
    {
        "ReplayOptimum": "autotune.datasets.replay",
        "Card": "autotune.datasets.card",
        "Cell": "autotune.datasets.card",
        "Dataset": "autotune.datasets.dataset",
        "Landscape": "autotune.datasets.replay",
        "RecordedRun": "autotune.datasets.significance",
        "RecordedMachine": "autotune.datasets.card",
        "RunRow": "autotune.datasets.shards",
        "create_dataset": "autotune.datasets.dataset",
        "load": "autotune.datasets.dataset",
        "narrow_space": "autotune.datasets.recorded_space",
        "ratios": "autotune.datasets.dataset",
        "read_shard": "autotune.datasets.shards",
        "write_card": "autotune.datasets.dataset",
        "write_shard": "autotune.datasets.shards",
    },
)
