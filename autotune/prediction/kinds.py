"""The models by name."""

from __future__ import annotations

from autotune.prediction.exposed import Exposed
from autotune.prediction.neighbours import Neighbours, ThesisNeighbours
from autotune.prediction.network import Network, ThesisNetwork
from autotune.prediction.ranking import Ranking
from autotune.prediction.scorer import Scorer

KINDS: dict[str, type[Scorer]] = {
    kind.kind: kind
    for kind in (Neighbours, ThesisNeighbours, Network, ThesisNetwork, Ranking, Exposed)
}
CHOICES = (Neighbours.kind, Network.kind, Ranking.kind, Exposed.kind)
"""Models that cross-validation chooses from when none is asked for."""
THESIS = {Neighbours.kind: ThesisNeighbours.kind, Network.kind: ThesisNetwork.kind}
"""What ``--preset thesis`` makes of a model."""


def careful(kind: str) -> bool:
    """Whether a model names the default when it is unsure; the thesis's forms never do."""
    return kind not in THESIS.values()


def find(kind: str) -> type[Scorer]:
    """The class of that name; raises ValueError naming those there are."""
    if kind not in KINDS:
        raise ValueError(f"kind: model {kind!r} is not known; expected one of {', '.join(KINDS)}")
    return KINDS[kind]
