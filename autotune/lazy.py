"""Lazy names: a package offers names whose module is imported at first use (PEP 562).

So ``from autotune.space import Setting`` does not load the modules of the other names of that
package, and commands that need little start fast.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package; ``places`` gives the module of each name, such as
    ``{"Setting": "autotune.space.setting"}``.

    A name that was used once is an ordinary attribute of the package from then on.
    """

    def find(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(places[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return find
