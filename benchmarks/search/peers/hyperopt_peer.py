"""The peer hyperopt: its TPE; the adapter keeps the list of trials as hyperopt's own loop does."""

# mypy: disable-error-code="import-not-found, import-untyped, misc"

from __future__ import annotations

import numpy as np
from hyperopt import JOB_STATE_DONE, STATUS_OK, Trials, hp, tpe
from hyperopt.base import Domain

from autotune.strategies._codec import Codes
from benchmarks.search.peers.base import Peer


class Hyperopt(Peer):
    """tpe.suggest of hyperopt."""

    name = "hyperopt"

    def prepare(self) -> None:
        names = [f"p{i:03d}" for i in range(len(self.sizes))]
        sizes = zip(names, self.sizes, strict=True)
        space = {name: hp.choice(name, list(range(size))) for name, size in sizes}
        self._domain = Domain(lambda values: 0.0, space)
        self._trials = Trials()
        self._random = np.random.default_rng(self.seed)

    def draw(self) -> Codes:
        ids = self._trials.new_trial_ids(1)
        self._trials.refresh()
        (self._document,) = tpe.suggest(
            ids, self._domain, self._trials, int(self._random.integers(2**31 - 1))
        )
        values = self._document["misc"]["vals"]
        return tuple(int(values[name][0]) for name in sorted(values))

    def report(self, codes: Codes, loss: float) -> None:
        self._document["state"] = JOB_STATE_DONE
        self._document["result"] = {"status": STATUS_OK, "loss": loss}
        self._trials.insert_trial_docs([self._document])
        self._trials.refresh()
