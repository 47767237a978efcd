"""The model of ``auto`` for a small space, in which every setting is scored."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from autotune.strategies.candidates import Listing
from autotune.strategies.codec import Codec, Codes
from autotune.strategies.levels import Floats
from autotune.strategies.models.additive import Prior
from autotune.strategies.models.estimates import Estimates


class ListedModel:
    """Effects of levels and of pairs; the candidates are all settings of the ``listing``.

    It has the methods of :class:`~autotune.strategies.models.joint_model.JointModel`.
    """

    def __init__(self, codec: Codec, listing: Listing, clip: float, *, has_default: bool) -> None:
        self._listing = listing
        self._estimates = Estimates(codec, Prior(), clip, has_default=has_default)

    def fit(self, ratios: Mapping[Codes, float], scatter: tuple[float, float] | None) -> None:
        """Replace the data by these ratios to the default (infinite: failed)."""
        self._estimates.fit(ratios, scatter)

    def candidates(self, is_new: Callable[[Codes], bool]) -> tuple[list[Codes], Floats]:
        """The new settings and the expected improvement of each."""
        new = [codes for codes in self._listing.settings() if is_new(codes)]
        if not new:
            return [], np.zeros(0)
        return new, self._estimates.improvement(np.array(new, dtype=np.intp))

    def favourite(self) -> Codes | None:
        """The measured setting with the best estimate; None if none is below the default's 0."""
        return self._estimates.favourite()
