"""A skip is a test that did not run: only what ``allowed_skips.txt`` lists may be missing."""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

LIST = Path(__file__).with_name("allowed_skips.txt")


def _entry(reason: str) -> tuple[re.Match[str], str] | None:
    """The entry of a reason: its match, and what is done about it."""
    for line in LIST.read_text().splitlines():
        pattern, _, words = line.partition("  # ")
        match = None if line.startswith("#") else re.fullmatch(pattern, reason)
        if match is not None and pattern:
            return match, words
    return None


def remedy(reason: str) -> str:
    """What is done about an allowed reason; empty for another one."""
    entry = _entry(reason)
    return "" if entry is None else entry[1]


def problem(reason: str) -> str | None:
    """Why a skip with this reason is a failure; None if it is allowed."""
    entry = _entry(reason)
    if entry is None:
        return f"skipped: {reason}\nnot listed in {LIST.name}"
    groups = entry[0].groupdict()
    programs = re.findall(r"[\w.+-]+", groups.get("programs") or "")
    modules = re.findall(r"\w+", groups.get("modules") or "")
    present = [name for name in programs if shutil.which(name)]
    present += [name for name in modules if importlib.util.find_spec(name)]
    return f"skipped: {reason}\npresent: {', '.join(present)}" if present else None


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Make failures of the skips that are not allowed, before pytest counts and prints."""
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is None:  # a process of pytest-xdist
        return
    for report in list(terminal.stats.get("skipped", [])):
        words: Any = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        fault = problem(str(words).removeprefix("Skipped: "))
        if fault is not None:
            terminal.stats["skipped"].remove(report)
            report.outcome, report.longrepr = "failed", fault
            terminal.stats.setdefault("failed", []).append(report)
            session.testsfailed += 1
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
