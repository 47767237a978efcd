"""The Python API: the functions behind ``import autotune`` and behind the commands."""
