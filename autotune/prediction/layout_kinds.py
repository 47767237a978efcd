"""The kinds of models over layouts."""

from __future__ import annotations

from autotune.prediction.layout_composition import LayoutComposition
from autotune.prediction.layout_models import LayoutNeighbours, LayoutNetwork, LayoutScorer

LAYOUT_KINDS: dict[str, type[LayoutScorer]] = {
    model.kind: model for model in (LayoutNeighbours, LayoutNetwork, LayoutComposition)
}
"""By name, in the order of ``evaluate``. Of equally good ones, the first is taken."""
