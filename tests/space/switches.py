"""What the spaces of :mod:`runner.runtimes.intranode` have in common: settings are switches of a
library.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from autotune.space import Setting, Space
from runner.runtimes.intranode.published import TunedLibrary
from runner.runtimes.intranode.switches import OFF, ON


def words_of(made: Space, setting: Setting) -> list[str]:
    """The words that a program is started with; nothing but its resources is set beside them."""
    launched = made.launched(setting)
    assert set(launched) <= {"arg", "resource"}
    return [word for words in launched.get("arg", {}).values() for word in words.split()]


def expected(library: TunedLibrary, setting: Setting) -> Any:
    """The configuration that a program with this setting must have."""
    fields = {}
    for switch, (field, known, _) in library.table.items():
        value = setting.get(switch.replace("-", "_"))
        if value is not None:
            fields[field] = value == ON if known == (ON, OFF) else value
    return library.config(**fields)


def check_defaults(
    library: TunedLibrary, made: Space, left_out: Container[str], **others: object
) -> None:
    """A setting that names the library's default, or one of ``others``, is the empty one.

    ``left_out``: the parameters that the space may lack.
    """
    for switch, (field, _, _) in library.table.items():
        name = switch.replace("-", "_")
        if name not in made.names:
            assert name in left_out
            continue
        default = getattr(library.config(), field)
        value = (OFF, ON)[default] if isinstance(default, bool) else default
        text = f"{name}={others.get(name, value)}"
        assert made.canonical(Setting.parse(text)) == Setting.parse("default")


def fits(made: Space, text: str) -> bool:
    """Whether a setting is allowed, and all its values act."""
    setting = made.canonical(Setting.parse(text))
    return made.is_valid(setting) and setting == Setting.parse(text)
