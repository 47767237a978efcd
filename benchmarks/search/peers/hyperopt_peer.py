"""The peer hyperopt: its TPE; the adapter keeps the list of trials as hyperopt's own loop does."""

# mypy: disable-error-code="import-not-found, import-untyped, misc"

from __future__ import annotations

from functools import partial

import numpy as np
from hyperopt import JOB_STATE_DONE, STATUS_OK, Trials, hp, tpe
from hyperopt.base import Domain

from autotune.strategies.codec import Codes
from benchmarks.search.peers.base import STARTUP, Peer


class Hyperopt(Peer):
    """tpe.suggest of hyperopt; matched: five start-up trials, integers for ordered levels."""

    name = "hyperopt"

    def prepare(self) -> None:
        names = [f"p{i:03d}" for i in range(len(self.sizes))]
        sizes = zip(names, self.sizes, self.ordered, strict=True)
        space = {
            name: hp.uniformint(name, 0, size - 1)
            if ordered
            else hp.choice(name, list(range(size)))
            for name, size, ordered in sizes
        }
        self._domain = Domain(lambda values: 0.0, space)
        self._trials = Trials()
        self._random = np.random.default_rng(self.seed)
        self._suggest = tpe.suggest
        if self.trials is not None:
            self._suggest = partial(tpe.suggest, n_startup_jobs=STARTUP)
            if self.default is not None:
                self.draw()
                values = self._document["misc"]["vals"]
                values.update({n: [r] for n, r in zip(sorted(values), self.default, strict=True)})
                self.report(self.default, 1.0)

    def draw(self) -> Codes:
        ids = self._trials.new_trial_ids(1)
        self._trials.refresh()
        (self._document,) = self._suggest(
            ids, self._domain, self._trials, int(self._random.integers(2**31 - 1))
        )
        values = self._document["misc"]["vals"]
        return tuple(int(values[name][0]) for name in sorted(values))

    def report(self, ranks: Codes, loss: float) -> None:
        self._document["state"] = JOB_STATE_DONE
        self._document["result"] = {"status": STATUS_OK, "loss": loss}
        self._trials.insert_trial_docs([self._document])
        self._trials.refresh()
