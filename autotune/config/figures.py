"""Figures of merit of known programs, ``configs/figures/NAME.toml``, and words of plain forms.

A file has the pattern of a line that identifies a program's output, the pattern of its figure of
merit, and its words for a right or wrong result. ``plain.toml`` has the words beside figures of
unknown programs.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from autotune.config.app import App
from autotune.config.find import ConfigFile, find_config, list_configs
from autotune.config.pattern import check_figure, check_pattern
from autotune.config.validated import read_toml
from runner.types import MetricChoice

KIND = "figures"
PLAIN = "plain"
"""Name of the file with the words of plain forms."""


class ProgramFigure(BaseModel):
    """One figure: the pattern of a time (``metric``) or of a rate, where larger is better.

    ``choice``: which of several counts; None: the default of the metric.  ``unit``: of the number,
    where the line does not say it.  ``caution``: what a user should know before the figure is used.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    metric: str | None = None
    metric_rate: str | None = None
    choice: MetricChoice | None = None
    unit: str = ""
    caution: str = ""

    @property
    def pattern(self) -> str:
        """The regular expression, of a time or of a rate."""
        return self.metric or self.metric_rate or ""


class ProgramFigures(BaseModel):
    """The content of a file.

    ``output`` is the pattern of a line that only this program prints. ``general``: it may be a part
    of other programs, which have precedence. ``figure``: the first one in the output counts.
    ``right`` and ``wrong``: patterns of lines that judge the result. ``stream`` and ``file`` say
    where the program prints its figure, and ``commands`` are names of its executable, by which it
    is known where its standard output is empty.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    program: str
    output: str
    general: bool = False
    figure: tuple[ProgramFigure, ...] = Field(min_length=1)
    right: str | None = None
    wrong: str | None = None
    stream: Literal["standard output", "standard error"] = "standard output"
    file: str = ""
    commands: tuple[str, ...] = ()


class PlainWords(BaseModel):
    """Regular expressions, without regard to case, of words in the line of a number."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    time: str
    total: str
    part: str
    none: str
    right: str
    wrong: str


def known_programs() -> tuple[ProgramFigures, ...]:
    """The programs of every file as it is now, general ones last.

    Raises UsageError with the file, the key and what was expected.
    """
    programs = [_program(file) for file in list_configs(KIND) if file.name != PLAIN]
    return tuple(sorted(programs, key=lambda program: program.general))


@lru_cache(maxsize=256)
def _program(file: ConfigFile) -> ProgramFigures:
    program = read_toml(file.text, file.path, ProgramFigures)
    for pattern in (program.output, program.right, program.wrong):
        check_pattern(file.path, pattern, 0)
    for figure in program.figure:
        where = f"{file.path}: metric", f"{file.path}: metric_rate"
        check_figure(figure.metric, figure.metric_rate, *where)
        check_pattern(file.path, figure.pattern, 1)
    return program


def with_known_figure(app: App) -> App:
    """The application with the first figure and the words of its file of figures, if it names one.

    What the application's own file says has precedence.  Raises UsageError for an unknown name.
    """
    if app.figures is None:
        return app
    program = _program(find_config(KIND, app.figures))
    figure = program.figure[0]
    updates: dict[str, object] = {
        "verify": app.verify or program.right,
        "verify_absent": app.verify_absent or program.wrong,
    }
    if app.figure is None:
        updates |= {"metric": figure.metric, "metric_rate": figure.metric_rate}
        updates["metric_choice"] = app.metric_choice or figure.choice
    return app.model_copy(update=updates)


def plain_words() -> dict[str, re.Pattern[str]]:
    """The compiled words of plain forms as they are now, by the name of their key."""
    return _plain_words(find_config(KIND, PLAIN))


@lru_cache(maxsize=4)
def _plain_words(file: ConfigFile) -> dict[str, re.Pattern[str]]:
    words = read_toml(file.text, file.path, PlainWords)
    for pattern in words.model_dump().values():
        check_pattern(file.path, pattern, 0)
    return {k: re.compile(v, re.IGNORECASE) for k, v in words.model_dump().items()}
