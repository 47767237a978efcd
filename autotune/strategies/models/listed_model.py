"""The model of effects that add up for a small space, in which every setting is scored."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from autotune.strategies.candidates import Listing
from autotune.strategies.codec import Codec, Codes
from autotune.strategies.levels import Floats
from autotune.strategies.models.additive import Prior
from autotune.strategies.models.estimates import Estimates


class ListedModel(Estimates):
    """Effects of levels and of pairs; the candidates are all settings of the ``listing``.

    It has the methods of :class:`~autotune.strategies.models.joint_model.JointModel`.
    """

    def __init__(
        self, codec: Codec, listing: Listing, belief: Prior, clip: float, *, has_default: bool
    ) -> None:
        super().__init__(codec, belief, clip, has_default=has_default)
        self._listing = listing

    def candidates(self, is_new: Callable[[Codes], bool]) -> tuple[list[Codes], Floats]:
        """The new settings and the expected improvement of each."""
        new = [codes for codes in self._listing.settings() if is_new(codes)]
        if not new:
            return [], np.zeros(0)
        return new, self.improvement(np.array(new, dtype=np.intp))
