"""The execution of the tasks, as a checked configuration and as command-line switches."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from runner.runtimes.mate.config import AFFINITIES
from runner.runtimes.tpod.blocks import Shape
from runner.runtimes.tpod.errors import ConfigError
from runner.runtimes.tpod.order import ORDERS

CALLS = ("SR", "ISR", "SIR", "ISIR")
POSTING = ("SIR", "ISIR")
"""The orders of calls whose receives do not block."""
MESSAGES = ("block", "face")
BARRIERS = ("global", "process", "neighbours")
QUEUES = ("shared", "private", "stealing")
THREAD_LEVELS = ("multiple", "serialized", "funneled")


@dataclass(frozen=True)
class Config:
    """The configuration of a process; raises :class:`ConfigError` for an impossible one.

    ``edge``: cells of a block along x, y, z; 0 leaves an axis whole. ``parts``: blocks of
    a process, where no edge is given (0: one). ``order``: the order in which
    the blocks of a step start. ``messages``: one for each face of a block, or one for each face of
    the process. ``calls``: sends (S) and receives (R), nonblocking with an I. ``prepost``: receives
    are posted when the previous step is over. ``barrier``: what a step waits for: all blocks of all
    processes, all of this process, or the neighbours of the block. ``polls``: looks for its
    messages before a task is swapped out. ``queue``: where ready tasks wait. ``thread_level``: who
    locks MPI calls of several workers, the library or the runtime; or (``funneled``) they all move
    to the first worker.
    """

    edge: Shape = (0, 0, 0)
    parts: int = 0
    order: str = "random"
    messages: str = "block"
    calls: str = "ISIR"
    prepost: bool = False
    barrier: str = "global"
    workers: int = 1
    queue: str = "shared"
    polls: int = 0
    thread_level: str = "multiple"
    pinning: str = "compact"
    seed: int = 1
    idle_spin_us: int = 200
    idle_sleep_us: int = 1000
    schedule_seed: int | None = None
    """For tests: tasks run in any order."""

    @property
    def is_funneled(self) -> bool:
        """True if MPI calls move to the first worker."""
        return self.workers > 1 and self.thread_level == "funneled"

    def __post_init__(self) -> None:
        for switch, value, choices in (
            ("--block-order", self.order, tuple(ORDERS)),
            ("--block-messages", self.messages, MESSAGES),
            ("--order", self.calls, CALLS),
            ("--barrier", self.barrier, BARRIERS),
            ("--task-queue", self.queue, QUEUES),
            ("--affinity", self.pinning, AFFINITIES),
            ("--thread-level", self.thread_level, THREAD_LEVELS),
        ):
            if value not in choices:
                raise ConfigError(
                    f"{switch} {value}: expected one of {', '.join(choices)}", code="tpod.option"
                )
        if min(self.edge) < 0:
            raise ConfigError(
                f"--block-edge {self.edge}: expected 0 or more cells", code="tpod.option"
            )
        if not 1 <= self.workers <= 256:
            raise ConfigError(f"--workers {self.workers}: expected 1 to 256", code="tpod.option")
        if not 0 <= self.polls <= 1 << 20:
            raise ConfigError(f"--polls {self.polls}: expected 0 to {1 << 20}", code="tpod.option")
        if self.prepost and self.calls not in POSTING:
            raise ConfigError(
                f"--prepost needs receives that do not block, and those of --order {self.calls} "
                f"do: leave it out, or choose --order {' or '.join(POSTING)}",
                code="tpod.option",
            )


_DEFAULT = Config()


def add_arguments(parser: argparse.ArgumentParser, calls: bool = False) -> None:
    """Add the switches that no other runtime has, in a separate group.

    Workers, queue, pinning and thread level are switches of the application or of another runtime,
    with the same meaning; so are ``--order`` and ``--prepost`` unless ``calls`` adds them.
    """
    group = parser.add_argument_group("TPOD runtime")
    add = group.add_argument
    add("--block-edge", metavar="N|NXxNYxNZ", default=None,
        help="cells of a block along each axis; 0: the whole axis; default: one block")  # fmt: skip
    orders = "; ".join(f"{name}: {words}" for name, words in ORDERS.items())
    add(
        "--block-order",
        default=_DEFAULT.order,
        help=f"which block of a step begins first. {orders}",
    )
    add("--block-messages", default=_DEFAULT.messages,
        help="block: one for a face of a block; face: one for a face of the process")  # fmt: skip
    add("--barrier", default=_DEFAULT.barrier,
        help="what a step waits for: global (all blocks of all processes), process (all of this "
        "one), neighbours (the blocks beside it)")  # fmt: skip
    add("--polls", type=int, default=_DEFAULT.polls, metavar="N",
        help="looks for its messages before a task is swapped out; default 0")  # fmt: skip
    if calls:
        add("--order", default=_DEFAULT.calls,
            help=f"sends (S), receives (R), I: nonblocking. One of {', '.join(CALLS)}")  # fmt: skip
        add("--prepost", action="store_true",
            help="post the receives of the next step when a step is over")  # fmt: skip


def from_arguments(options: argparse.Namespace, **others: object) -> Config:
    """The configuration; ``others``: values of the application's own switches.

    Raises :class:`ConfigError` with the invalid switch.
    """
    return Config(
        edge=_edge(options.block_edge),
        order=options.block_order,
        messages=options.block_messages,
        barrier=options.barrier,
        polls=options.polls,
        **others,  # type: ignore[arg-type]
    )


def _edge(text: str | None) -> Shape:
    if text is None:
        return 0, 0, 0
    words = text.lower().split("x")
    words = words * 3 if len(words) == 1 else words
    if len(words) != 3 or not all(word.isdigit() for word in words):
        raise ConfigError(
            f"--block-edge {text}: expected a number of cells, or three as 32x16x16",
            code="tpod.option",
        )
    x, y, z = map(int, words)
    return x, y, z


def thread_level(config: Config) -> str:
    """The thread level that MPI has to be initialised with."""
    return "single" if config.workers == 1 else config.thread_level
