"""``python -m runner.lock --shared -- COMMAND``: run a command while the machine lock is held."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import cast

from runner.errors import RunnerError
from runner.lock import MachineLock
from runner.lock.lockfile import Mode


def main(words: Sequence[str] | None = None) -> int:
    """Command line of the wrapper; returns only if the command was not started."""
    parser = argparse.ArgumentParser(
        prog="python -m runner.lock", description="Run a command while holding the machine lock."
    )
    group = parser.add_mutually_exclusive_group(required=True)
    for mode, meaning in (
        ("shared", "hold the lock together with other shared holders (tests, builds)"),
        ("exclusive", "hold the lock alone (measurements)"),
    ):
        group.add_argument(f"--{mode}", dest="mode", action="store_const", const=mode, help=meaning)
    parser.add_argument(
        "--wait", type=float, metavar="S", help="longest time to wait for the lock, in seconds"
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND ARGS")
    options = parser.parse_args(words)
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        parser.error("no command given; expected -- COMMAND ARGS")
    return _run_under(cast(Mode, options.mode), options.wait, command)


def _run_under(mode: Mode, wait_s: float | None, command: list[str]) -> int:
    def say(text: str) -> None:
        print(f"runner.lock: {text}", file=sys.stderr, flush=True)

    try:
        with MachineLock(mode, wait_s, lambda news: say(news.words)) as lock:
            lock.become(command)
    except RunnerError as error:
        say(str(error))
        return 1
    except OSError as error:
        say(f"cannot start {command[0]!r}: {error.strerror}")
        return 127 if isinstance(error, FileNotFoundError) else 126


if __name__ == "__main__":
    sys.exit(main())
