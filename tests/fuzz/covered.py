"""Fuzzing guided by coverage: libFuzzer keeps every input that reaches a new path (atheris).

    pip install atheris
    python -m tests.fuzz.covered [NAME ...] [--seconds 60]

Each parser has a process of its own, for libFuzzer never returns. Inputs are changed by libFuzzer
and, every other time, in the ways of ``tests.fuzz.damage``. A crash is printed once per place in
the code, and its input is kept in a folder that is named at the end.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

HANG_S = 20
"""libFuzzer ends a process whose input takes longer."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: every parser")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each parser")
    parser.add_argument("--inputs", type=Path, help="where the inputs that crashed are kept")
    given = parser.parse_args()
    import atheris

    with atheris.instrument_imports(include=["autotune", "runner", "tomllib", "ast"]):
        from tests.fuzz.parsers import PARSERS

    unknown = [name for name in given.names if name not in PARSERS]
    if unknown:
        parser.error(f"no parser is called {unknown[0]}; there are: {', '.join(PARSERS)}")
    inputs = given.inputs or Path(tempfile.mkdtemp(prefix="autotune-fuzz-"))
    inputs.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in given.names or PARSERS:
        failed += _apart(name, PARSERS[name], given.seconds, inputs)
    if failed:
        print(f"inputs that crashed: {inputs}")
    return 1 if failed else 0


def _apart(name: str, parser: Any, seconds: float, inputs: Path) -> bool:
    """Fuzz one parser in a copy of this process, so that only one has to be instrumented."""
    with tempfile.TemporaryDirectory() as folder:
        sys.stdout.flush()
        child = os.fork()
        if not child:
            try:
                os.dup2(os.open(Path(folder, "said"), os.O_WRONLY | os.O_CREAT), 2)
                fuzz(name, parser, seconds, inputs, Path(folder, "seeds"))
            except BaseException:
                traceback.print_exc()
            os._exit(3)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code not in (0, 1):  # not ended by fuzz(): an input that hangs, or no fuzzing at all
            said = Path(folder, "said").read_text(errors="replace")
            print(f"{name:<20} ended with {code}:\n{said[-3000:]}", flush=True)
        return code != 0


def fuzz(name: str, parser: Any, seconds: float, inputs: Path, seeds: Path) -> None:
    """Fuzz one parser; ends the process, with code 1 where something crashed."""
    import atheris

    from tests.fuzz.damage import damaged

    end = time.monotonic() + seconds
    tried, refused, found = 0, 0, dict[str, bytes]()

    def one(data: bytes) -> None:
        nonlocal tried, refused
        tried += 1
        try:
            parser.read(data.decode("utf-8", "surrogateescape"))
        except parser.promised:
            refused += 1
        except Exception as problem:
            frame = traceback.extract_tb(problem.__traceback__)[-1]
            place = f"{type(problem).__name__} at {frame.filename}:{frame.lineno}"
            if place not in found:
                found[place] = data
                (inputs / f"{name.replace(' ', '-')}-{len(found)}").write_bytes(data)
        if time.monotonic() > end:
            print(f"{name:<20}{tried:>9} tried {refused:>9} refused {len(found):>4} crashes")
            for number, place in enumerate(found, 1):
                print(f"    {name}-{number}: {place}")
            sys.stdout.flush()
            os._exit(1 if found else 0)

    def change(data: bytes, most: int, seed: int) -> bytes:
        if seed % 2:
            return bytes(atheris.Mutate(data, most))
        # Half of these begin from a good document: of what libFuzzer changes, nearly none is valid.
        from_good = parser.seeds if seed % 4 else [data.decode("utf-8", "surrogateescape")]
        try:
            spoilt = parser.damage(from_good, seed)
        except (ValueError, IndexError, RecursionError):  # libFuzzer left nothing to look inside of
            spoilt = damaged(from_good, seed)
        return _bytes(spoilt)[:most]

    seeds.mkdir()
    for number, seed in enumerate(parser.seeds):
        (seeds / str(number)).write_bytes(_bytes(seed))
    line = [sys.argv[0], str(seeds), "-max_len=65536", f"-timeout={HANG_S}", "-verbosity=0"]
    line.append(f"-artifact_prefix={inputs / name.replace(' ', '-')}-")  # the input that hangs
    atheris.Setup(line, one, custom_mutator=change)
    atheris.Fuzz()


def _bytes(text: str) -> bytes:
    """The bytes that a binary document was read from; any others for what is no text at all."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


if __name__ == "__main__":
    raise SystemExit(main())
