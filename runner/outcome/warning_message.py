"""Tells messages about errors from warnings, after which a program goes on.

Libraries warn about things they can do without: a missing network, a file that cannot be locked, a
renamed option. Such a message has the words of an error, and precedes the program's own.
"""

from __future__ import annotations

import re

_ERROR = re.compile(
    r"err(or|no)?\b|errors\b|fail|fatal|cannot|can't|could not|couldn't|unable|invalid|illegal|"
    r"not found|no such|not supported|not recognized|unrecognized|unknown|denied|missing|"
    r"exception|assert|undefined|terminate called|abort|severe|\bbad\b|\bkilled\b|too many|exceed|"
    r"out of memory|singular|diverge|\bstop\b|panic|already exists?|file exists|not exist|"
    r"not enough|incompatible|unreachable",
    re.IGNORECASE,
)
_FIGURE = re.compile(
    r"\bno errors?\b|\b0 errors?\b|error (norm|tolerance|bound|estimate)|"
    r"(errors?|residual|tolerance)\s*[:=]?\s*[-+]?\d*\.?\d+(e[-+]?\d+)?\s*$",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"warn(ing)?s?(?=[\s:>\]),;!-]|\.(\s|$)|$)|(^|[\s:<\[(])(note|notice|info)(?=[:>\])])|"
    r"^\W*note that\b|\bdeprecat",
    re.IGNORECASE,
)
"""Labels of a warning. If the first label in a message is one of these, it is a warning: "warning:
cannot ..." is one, "error: ... (see the warning)" is not.
"""
_GOES_ON = re.compile(
    r"\(ignored\)|\b(is|are|be|been|being) ignored\b|\bignoring\b|\bnow ignore\b|"
    r"\bfall(ing|s)? back\b|\bwill (now |try to |attempt to |still )?continue\b|"
    r"\battempt to continue\b|(?<!not )\bcontinuing\b|\bonly a warning\b|"
    r"\b(turn off|disable|suppress|silence) this (warning|message)\b|\bwill be used instead\b|"
    r"\bplease be advised\b|\b(lower|degraded?|reduced?|impact) performance\b|"
    r"\bperformance (degradation|may be)\b|"
    r"^Read -1, expected \d+|^PMIX ERROR: |\brequested component was not found\b|"
    r"\bcan('t|not) (set|change) .{0,20}locale\b|\bcannot set LC_|"
    r"\bfloating-point exceptions are signalling\b|\bieee_\w+ is signaling\b",
    re.IGNORECASE | re.MULTILINE,
)
"""Words which say that the program goes on, or that occur only in such messages."""


def is_warning(text: str) -> bool:
    """True if a message (a line, or a framed text) is a warning: its sender goes on after it."""
    if _GOES_ON.search(text):
        return True
    label, error = _LABEL.search(text), _ERROR.search(text)
    return label is not None and (error is None or label.start() <= error.start())


def is_error(text: str) -> bool:
    """True if a message is about an error, and neither a warning nor a figure."""
    return _ERROR.search(text) is not None and not _FIGURE.search(text) and not is_warning(text)
