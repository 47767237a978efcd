"""Ids of parameters that a snapshot's name may contain.

syrupy parts a name at dots and brackets: with others in an id it takes the snapshot of a test that
was not run for one that nobody uses, and fails the run.
"""

from __future__ import annotations

import re


def word_id(value: object) -> str | None:
    """The words of a text, joined; None: pytest's own id, for what is no text."""
    return "_".join(re.findall(r"\w+", value)) if isinstance(value, str) else None
