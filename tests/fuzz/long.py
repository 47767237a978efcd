"""Fuzzing for long: inputs tried and crashes found.

    python -m tests.fuzz.long [--tries 100000] [--only NAME] [--seed N]

Each crash is printed once per parser and place in the code, with the seed that shows it again.
"""

from __future__ import annotations

import argparse
import time
import traceback

from tests.fuzz.parsers import PARSERS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=100_000, help="for each parser")
    parser.add_argument("--only", choices=list(PARSERS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0, help="at most, for each parser")
    given = parser.parse_args()
    crashes = 0
    for name in [given.only] if given.only else PARSERS:
        tried, refused, found = fuzz(name, given.tries, given.seed, given.seconds)
        crashes += len(found)
        print(
            f"{name:<20}{tried:>9} tried {refused:>9} refused {len(found):>4} crashes", flush=True
        )
        for place, seed in found.items():
            print(f"    seed {seed}: {place}")
    return 1 if crashes else 0


def fuzz(name: str, tries: int, first: int, seconds: float) -> tuple[int, int, dict[str, int]]:
    """Inputs tried, those refused, and the seed of the first crash at each place."""
    parser, end = PARSERS[name], time.monotonic() + seconds
    refused, found = 0, dict[str, int]()
    number = 0
    for number in range(tries):
        seed = first + number
        try:
            parser.read(parser.damage(parser.seeds, seed))
        except parser.promised:
            refused += 1
        except Exception as problem:
            frame = traceback.extract_tb(problem.__traceback__)[-1]
            found.setdefault(f"{type(problem).__name__} at {frame.filename}:{frame.lineno}", seed)
        if time.monotonic() > end:
            break
    return number + 1, refused, found


if __name__ == "__main__":
    raise SystemExit(main())
