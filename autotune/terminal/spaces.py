"""Terminal output of parameter spaces."""

from __future__ import annotations

from autotune.space import Parameter
from runner.mpi.library import ParamInfo

ENUM_SHOWN = 60


def levels_words(parameter: Parameter) -> str:
    return " ".join(str(level) for level in parameter.levels)


def kind_words(info: ParamInfo) -> str:
    names = " ".join(info.enum.values())
    return names if info.enum and len(names) <= ENUM_SHOWN else info.type
