"""A process of some user that takes the machine lock in a directory of everybody.

Words: user id, directory, mode.  It prints a JSON line when it has the lock, or why it has not, and
another one for each line of its input, before which it looks at the lock as before a run.
"""

from __future__ import annotations

import codecs
import json
import os
import sys
from pathlib import Path

from runner.errors import RunnerError
from runner.lock import LockNews, MachineLock, inherited_mode, renew_locks
from runner.lock import place as lock_place
from runner.lock.lockfile import Mode

NEWS: list[LockNews] = []


def say(**what: object) -> None:
    news = [{"code": one.code, **one.data} for one in NEWS]
    print(json.dumps({"news": news, **what}), flush=True)
    NEWS.clear()


def main(user: int, place: str, mode: Mode) -> None:
    lock_place.COMMON = (place,)
    codecs.lookup("ascii")  # The other user may not be allowed to read this Python.
    if user != os.geteuid():
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    try:
        with MachineLock(mode, 0, NEWS.append):
            say(held=inherited_mode(), code=None)
            for _ in sys.stdin:
                renew_locks()
                say(held=inherited_mode(), code=None)
    except RunnerError as problem:
        say(held=None, code=problem.code)


if __name__ == "__main__":
    word = sys.argv[3]
    main(int(sys.argv[1]), str(Path(sys.argv[2])), "exclusive" if word == "exclusive" else "shared")
