"""A worker says that it lives, whatever it does: its trials are then not taken for lost."""

from __future__ import annotations

import threading

from autotune.errors import AutotuneError
from autotune.store import Store
from autotune.store.leases import BEAT_S


class Heartbeat:
    """Renews the leases of this process in one study until it is stopped.

    A database that does not answer is asked again: whether the lease is lost then is for the next
    statement of the study itself to find out.
    """

    def __init__(self, store: Store, study_id: int, every_s: float = BEAT_S) -> None:
        self._store, self._study_id, self._every_s = store, study_id, every_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._every_s):
            try:
                self._store.beat(self._study_id)
            except AutotuneError:
                continue
