"""Command lines of applications: errors are raised, not printed, because every rank parses them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from runner.programs.apps.common.errors import AppUsageError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Options = TypeVar("Options", bound="DataclassInstance")


class OptionParser(argparse.ArgumentParser):
    """A parser that raises :class:`AppUsageError` instead of ending; ``--help`` is a plain flag."""

    def __init__(self, prog: str, description: str) -> None:
        super().__init__(prog=prog, description=description, add_help=False, allow_abbrev=False)
        self.add_argument("--help", "-h", action="store_true", help="show this text")

    def format_help(self) -> str:
        """The help; its line of usage names the arguments only, because the options follow it."""
        arguments = [f"[{one.metavar}]" for one in self._actions if not one.option_strings]
        self.usage = " ".join(["%(prog)s [OPTIONS]", *arguments])
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        raise AppUsageError(f"{message} (--help lists the options)", code="app_option.syntax")

    def record(self, kind: type[Options], options: argparse.Namespace, **values: Any) -> Options:
        """The options of a run: fields not in ``values`` come from the command line.

        Its field ``help`` is the text to print, or None.
        """
        all_values = {
            **vars(options),
            "help": self.format_help() if options.help else None,
            **values,
        }
        return kind(**{field.name: all_values[field.name] for field in fields(kind)})


def positive(text: str) -> int:
    """An integer above 0, for ``type=`` of an option."""
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, not {text!r}")
    return int(text)


def above_zero(text: str) -> float:
    """A finite number above 0; raises ValueError for anything else."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError
    return value


def changed_switches(
    options: argparse.Namespace, add: Callable[[argparse.ArgumentParser], None]
) -> list[str]:
    """The switches set by a command line, among those that ``add`` adds to a parser."""
    plain = argparse.ArgumentParser()
    add(plain)
    usual = vars(plain.parse_args([]))
    names = [name for name, value in usual.items() if getattr(options, name) != value]
    return [f"--{name.replace('_', '-')}" for name in names]


def meaningless(switch: str, variant: str, able: Iterable[str]) -> AppUsageError:
    """The error for a switch without a meaning for a variant; ``able``: the variants that have
    it."""
    others = " or ".join(able)
    if not others:
        return AppUsageError(
            f"{switch} means nothing to this program: leave it out",
            code="app_option.not_applicable",
        )
    return AppUsageError(
        f"{switch} means nothing to --variant {variant}: leave it out, or choose --variant "
        f"{others}",
        code="app_option.not_applicable",
    )
