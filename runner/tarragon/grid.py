"""Tasks that go through the steps of an iteration together with their neighbours (``GridTask``)."""

from __future__ import annotations

from abc import ABC, abstractmethod

from runner.tarragon.message import Message
from runner.tarragon.task import DONE, EXEC, WAIT, Dependency, Task


class GridTask(Task, ABC):
    """A task that runs step ``i`` when each neighbour has run step ``i - 1``.

    Its edges lead to its neighbours, and each of them has one back.  After a step it sends each one
    a message with the number of the next step as key, so a neighbour is at most one step ahead.
    With 0 ``steps`` the first messages alone go round, before anything is computed.
    """

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.steps = steps
        self.step = 0
        """The step that runs next."""
        self._came: tuple[list[Message], list[Message]] = ([], [])
        """Messages for even and odd steps."""

    @abstractmethod
    def compute(self, step: int, messages: list[Message]) -> None:
        """Run a step; ``messages``: one from each neighbour, in any order; none in step 0."""

    @abstractmethod
    def message(self, edge: Dependency, step: int) -> Message:
        """What the neighbour behind an edge needs for a step; its key is set here."""

    def vinit(self) -> None:
        self.state = EXEC
        if self.steps == 0:
            self._send()
            self._wait()

    def vinject(self, message: Message) -> None:
        self._came[message.key % 2].append(message)
        if self.state == WAIT:
            self._wait()

    def vexecute(self) -> None:
        came = self._came[self.step % 2]
        if self.step == self.steps:
            self.state = DONE
            return
        self.compute(self.step, came)
        came.clear()
        self.step += 1
        if self.step == self.steps:
            self.state = DONE
            return
        self._send()
        self._wait()

    def _send(self) -> None:
        for edge in self.dependencies:
            message = self.message(edge, self.step)
            message.key = self.step
            edge.put(message)

    def _wait(self) -> None:
        all_here = len(self._came[self.step % 2]) == len(self.dependencies)
        self.state = EXEC if all_here else WAIT

    def describe(self) -> str:
        came = len(self._came[self.step % 2])
        return f"step {self.step} waits for {len(self.dependencies) - came} of its neighbours"
