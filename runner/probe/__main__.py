"""``python -m runner.probe LIBRARY OPERATION --size BYTES --count N [--thread-level LEVEL]``.

A rank of the compiled probe; :mod:`runner.probe.command` makes its command line.
"""

from __future__ import annotations

import ctypes
import os
import sys

LEVELS = ("single", "funneled", "serialized", "multiple")
"""Thread levels in the order of the probe's numbers."""


def main(words: list[str]) -> int:
    """Run the operation; the exit code of this rank, 2 for an unknown operation."""
    library, operation, *options = words
    values = dict(zip(options[::2], options[1::2], strict=True))
    level = LEVELS.index(values.get("--thread-level", LEVELS[0]))
    # MPI libraries load their components into the names that everybody sees.
    probe = ctypes.CDLL(library, mode=os.RTLD_NOW | os.RTLD_GLOBAL).probe
    return int(probe(operation.encode(), int(values["--size"]), int(values["--count"]), level))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
