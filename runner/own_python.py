"""Starts this Python for code of this package, never with the current directory's modules.

``python -m`` and ``python -c`` look into the current directory first, so that a file ``json.py`` or
``runner.py`` there would be imported instead of the library's.
"""

from __future__ import annotations

import sys

OWN_PYTHON = (sys.executable, "-P")
"""The beginning of a command, before ``-m`` or ``-c``."""
