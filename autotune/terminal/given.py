"""The words of the command that runs, to say it again with other options."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence

_words: list[str] | None = None


def remember(words: Sequence[str] | None) -> None:
    """What :func:`autotune.cli.main` was called with; None: this process's own arguments."""
    global _words
    _words = None if words is None else list(words)


def this_command(changed: Mapping[str, str] | None = None) -> str:
    """The command line, to be copied; ``changed`` options replace or join those before ``--``."""
    words = list(sys.argv[1:] if _words is None else _words)
    end = words.index("--") if "--" in words else len(words)
    options, program = words[:end], words[end:]
    for name in changed or {}:
        for at, word in reversed(list(enumerate(options))):
            if word == name:
                del options[at : at + 2]
            elif word.startswith(f"{name}="):
                del options[at]
    for name, value in (changed or {}).items():
        options += [name, value]
    return shlex.join(["autotune", *options, *program])
