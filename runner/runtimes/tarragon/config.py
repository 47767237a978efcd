"""The execution of a graph, as a checked configuration and as command-line switches."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from runner.runtimes.mate.config import AFFINITIES as PINNINGS
from runner.runtimes.mate.config import THREAD_LEVELS
from runner.runtimes.tarragon.errors import ConfigError

THREADS = ("single", "workers", "service")
SERVICES = ("shared", "dedicated")
QUEUES = ("shared", "private", "stealing")
PRIORITIES = ("none", "edges", "wavefront")
AFFINITIES = ("none", "block", "round_robin")


@dataclass(frozen=True)
class Config:
    """The configuration of a process; raises :class:`ConfigError` for an impossible one.

    ``threads``: ``single`` (one thread runs tasks and handles messages), ``workers`` (``workers``
    threads do both) or ``service`` (``workers`` threads run tasks, and one more handles messages).
    ``service``: whether that thread has its own core. ``queue``, ``priority`` and ``affinity``:
    where ready tasks wait, which comes first, and which worker's they are. ``aggregation_size``:
    bytes into which small messages to one process are packed. Times are in microseconds.
    """

    threads: str = "single"
    workers: int = 1
    service: str = "shared"
    queue: str = "shared"
    priority: str = "none"
    affinity: str = "none"
    tagging: bool = False
    aggregation: bool = False
    aggregation_size: int = 8192
    pinning: str = "compact"
    idle_spin_us: int = 200
    idle_sleep_us: int = 1000
    thread_level: str = "multiple"
    schedule_seed: int | None = None
    """For tests: ready tasks run in any order."""

    @property
    def is_single_threaded(self) -> bool:
        """True if one thread does everything."""
        return self.threads != "service" and self.workers == 1

    def __post_init__(self) -> None:
        for switch, value, choices in (
            ("--threads", self.threads, THREADS),
            ("--service", self.service, SERVICES),
            ("--task-queue", self.queue, QUEUES),
            ("--priority", self.priority, PRIORITIES),
            ("--task-affinity", self.affinity, AFFINITIES),
            ("--affinity", self.pinning, PINNINGS),
            ("--thread-level", self.thread_level, THREAD_LEVELS),
        ):
            if value not in choices:
                raise ConfigError(
                    f"{switch} {value}: expected one of {', '.join(choices)}",
                    code="tarragon.option",
                )
        if not 1 <= self.workers <= 256:
            raise ConfigError(
                f"--workers {self.workers}: expected 1 to 256", code="tarragon.option"
            )
        if self.threads == "single" and self.workers > 1:
            raise ConfigError(
                f"--workers {self.workers} needs --threads workers or service: with --threads "
                "single one thread does all",
                code="tarragon.option",
            )
        if self.affinity != "none" and self.queue == "shared":
            raise ConfigError(
                f"--task-affinity {self.affinity} needs a queue for each worker: --task-queue "
                "private or stealing",
                code="tarragon.option",
            )
        if not 256 <= self.aggregation_size <= 1 << 20:
            raise ConfigError(
                f"--aggregation-size {self.aggregation_size}: expected 256 to {1 << 20} bytes",
                code="tarragon.option",
            )
        for time in (self.idle_spin_us, self.idle_sleep_us):
            if not 0 <= time <= 10_000_000:
                raise ConfigError(
                    f"--idle {time}: expected 0 to 10000000 microseconds", code="tarragon.option"
                )


_DEFAULT = Config()


def add_arguments(parser: argparse.ArgumentParser, mate: bool = False) -> None:
    """Add the switches of the runtime in a separate group.

    ``mate``: the parser has those of :mod:`runner.runtimes.mate`, whose workers, affinity and
    thread level mean the same.
    """
    group = parser.add_argument_group("Tarragon runtime")
    add = group.add_argument
    add("--threads", default=_DEFAULT.threads,
        help="single: one thread runs tasks and looks after messages; workers: --workers threads "
        "do both; service: they run tasks, and one more looks after messages")  # fmt: skip
    add("--service", default=_DEFAULT.service,
        help="whether that thread has a core of its own: shared, dedicated")  # fmt: skip
    add("--task-queue", default=_DEFAULT.queue,
        help="where ready tasks wait: shared (one queue), private (one for each worker), stealing "
        "(private, and idle workers take the last task of another one)")  # fmt: skip
    add("--priority", default=_DEFAULT.priority,
        help="which ready task comes first: none (as they come), edges (more edges to other "
        "processes), wavefront (as the application says); stealing does not keep it")  # fmt: skip
    add("--task-affinity", default=_DEFAULT.affinity,
        help="whose a task is, with a queue for each worker: none, block, round_robin")  # fmt: skip
    add("--tagging", action="store_true",
        help="edges that carry the same message share it")  # fmt: skip
    add("--aggregation", action="store_true",
        help="pack small messages to the same process together")  # fmt: skip
    add("--aggregation-size", type=int, default=_DEFAULT.aggregation_size, metavar="BYTES",
        help=f"largest pack; default {_DEFAULT.aggregation_size}")  # fmt: skip
    if mate:
        return
    add("--workers", type=int, default=1, metavar="N", help="threads that run tasks")
    add("--affinity", default=_DEFAULT.pinning,
        help=f"how workers are pinned to CPUs: {', '.join(PINNINGS)}")  # fmt: skip
    add("--thread-level", default=_DEFAULT.thread_level,
        help=f"thread level asked of MPI: {', '.join(THREAD_LEVELS)}")  # fmt: skip


def from_arguments(options: argparse.Namespace) -> Config:
    """The configuration; raises :class:`ConfigError` with the invalid switch."""
    return Config(
        threads=options.threads,
        workers=options.workers,
        service=options.service,
        queue=options.task_queue,
        priority=options.priority,
        affinity=options.task_affinity,
        tagging=options.tagging,
        aggregation=options.aggregation,
        aggregation_size=options.aggregation_size,
        pinning=options.affinity,
        thread_level=options.thread_level,
    )


def check_compiled_tasks(config: Config) -> None:
    """Raise :class:`ConfigError` for options without a meaning for compiled tasks."""
    for switch, is_active in (("--tagging", config.tagging), ("--aggregation", config.aggregation)):
        if is_active:
            raise ConfigError(
                f"{switch} means nothing to compiled tasks: each of their edges has buffers of its "
                "own, which are sent as they lie; leave it out",
                code="tarragon.option",
            )


def thread_level(config: Config) -> str:
    """The thread level that MPI has to be initialised with."""
    return "single" if config.is_single_threaded else config.thread_level
