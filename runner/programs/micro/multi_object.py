"""Collectives with several senders on each node instead of MPI's own
(runner.runtimes.intranode.mcoll).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from runner.programs.apps.common.errors import AppUsageError
from runner.programs.micro.operations import Operation
from runner.runtimes.intranode.mcoll import Collective, Config, MultiObject
from runner.runtimes.intranode.mcoll.config import AUTO, FORMS, LIBRARY

OPERATIONS = ("allgather", "allreduce")
"""The operations of the library, among those timed with all sizes."""
WORDS = {name: (AUTO, *(form for form in FORMS[name] if form != LIBRARY)) for name in OPERATIONS}
"""The values of ``--mcoll``, by operation."""


class Rival:
    """The library on this communicator; ``form``: its algorithm, ``objects``: its senders."""

    def __init__(self, comm: Any, operation: str, form: str, objects: int) -> None:
        if operation not in OPERATIONS:
            raise AppUsageError(
                f"--mcoll is for {' and '.join(OPERATIONS)}, not for {operation}",
                code="micro.not_applicable",
            )
        if form not in WORDS[operation]:
            raise AppUsageError(
                f"--mcoll {form}: expected one of {', '.join(WORDS[operation])} for {operation}",
                code="micro.operation_unknown",
            )
        config = replace(Config(objects=objects), **{operation: form})  # type: ignore[arg-type]
        self._multi_object = MultiObject(comm, config)
        self._operation = operation

    def build(self, comm: Any, size: int) -> Operation:
        """The operation as :data:`runner.programs.micro.operations.OPERATIONS` has it, prepared
        once.

        Raises :class:`AppUsageError` if its result is wrong.
        """
        if self._operation == "allgather":
            send, recv = np.full(size, 1, np.uint8), np.full(size * comm.size, 2, np.uint8)
            collective: Collective = self._multi_object.allgather_init(send, recv)
            right = 1.0
        else:
            numbers, sums = np.full(max(size // 8, 1), 1.0), np.zeros(max(size // 8, 1))
            collective = self._multi_object.allreduce_init(numbers, sums)
            recv, right = sums, float(comm.size)
        run = collective.run
        run()
        if not all(comm.allgather(bool((recv == right).all()))):
            raise AppUsageError(
                f"--mcoll: {self._operation} of {size} bytes gives a wrong result",
                code="micro.wrong_result",
            )

        def work(count: int) -> None:
            for _ in range(count):
                run()

        return work
