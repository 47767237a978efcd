"""A skip is a test that did not run: only what ``allowed_skips.toml`` lists may be missing.

With pytest-xdist the process that the user started judges, after the others have ended.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

LIST = Path(__file__).with_name("allowed_skips.toml")
TABLE = "allowed"
_SBIN = "/usr/local/sbin:/usr/sbin:/sbin"


@dataclass(frozen=True)
class Allowed:
    """One reason that may stand for a skip; the fields are explained in the list."""

    reason: re.Pattern[str]
    machine: str
    get: str
    programs: tuple[str, ...] = ()
    cpus: int | None = None
    root: bool | None = None
    variable: str | None = None

    def there(self, found: re.Match[str]) -> str:
        """What the reason says is missing, and is there; empty if nothing is."""
        named = found.groupdict()
        programs = [*self.programs, *_names(named.get("programs"))]
        present = [f"the program {p}" for p in programs if _which(p)]
        modules = _names(named.get("modules"))
        present += [f"the module {m}" for m in modules if importlib.util.find_spec(m)]
        if self.cpus is not None and len(os.sched_getaffinity(0)) >= self.cpus:
            present.append(f"{self.cpus} CPUs")
        if self.root is False and os.geteuid() == 0:
            present.append("root")
        if self.variable is not None and self.variable in os.environ:
            present.append(f"the variable {self.variable}")
        return ", ".join(present)


def load(file: Path = LIST) -> list[Allowed]:
    """The list; raises ValueError naming the entry that is wrong."""
    rows = tomllib.loads(file.read_text())[TABLE]
    made = []
    for number, row in enumerate(rows, 1):
        try:
            programs = tuple(row.pop("programs", ()))
            made.append(Allowed(re.compile(row.pop("reason")), programs=programs, **row))
        except (KeyError, TypeError, re.error) as error:
            raise ValueError(f"{file}: entry {number} of {TABLE}: {error}") from None
    return made


def problem(reason: str, allowed: Iterable[Allowed]) -> str | None:
    """Why a skip with this reason is a failure; None if it is allowed."""
    for entry in allowed:
        found = entry.reason.fullmatch(reason)
        if found is None:
            continue
        there = entry.there(found)
        if there:
            return (
                f"skipped: {reason}\nbut {there} is there: the test does not find it, or asks for "
                "something else than it says"
            )
        return None
    return (
        f"skipped: {reason}\nand {LIST.name} does not list that: install what is missing, or add "
        "an entry with the reason and the machines that may lack it"
    )


def _names(text: str | None) -> list[str]:
    return re.findall(r"[\w.+-]+", text or "")


def _which(program: str) -> str | None:
    return shutil.which(program) or shutil.which(program, path=_SBIN)


def _reason(report: Any) -> str:
    """The words of a skipped test or file."""
    words = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return str(words).removeprefix("Skipped: ")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Make failures of the skips that are not allowed, before pytest counts and prints."""
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is None:  # a process of pytest-xdist
        return
    skipped = terminal.stats.get("skipped", [])
    allowed = load() if skipped else []
    for report in list(skipped):
        words = problem(_reason(report), allowed)
        if words is None:
            continue
        skipped.remove(report)
        report.outcome, report.longrepr = "failed", words
        terminal.stats.setdefault("failed", []).append(report)
        session.testsfailed += 1
    if session.testsfailed and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
