"""``python -m autotune`` is the command ``autotune``."""

from autotune.cli import entry

entry()
