"""Ids of parameters that a snapshot's name may contain.

syrupy parts a name at dots and brackets. A test of which only some cases are slow must not have a
snapshot for those: syrupy looks at the test's name alone, so a run without slow tests calls their
snapshots unused, and fails.
"""

from __future__ import annotations

import re


def word_id(value: object) -> str | None:
    """The words of a text, joined; None: pytest's own id, for what is no text."""
    return "_".join(re.findall(r"\w+", value)) if isinstance(value, str) else None
