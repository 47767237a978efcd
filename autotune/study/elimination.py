"""Taking parameters out of a setting: which smaller settings there are, and which one it becomes.

Whether a parameter is missed is measured elsewhere: by a study on one program (``ablation``), by a
class-wide proof on several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from autotune.space import DEFAULT, Setting, Space

Group = tuple[str, ...]
"""Names of parameters that are taken out together."""


class Elimination:
    """``setting`` is what is left; ``spaces`` are those of the programs that it is used with."""

    def __init__(self, setting: Setting, spaces: Sequence[Space]) -> None:
        self.setting = setting
        self.spaces = tuple(spaces)

    def without(self, group: Group) -> Setting | None:
        """What is left without a group; None where that is not to be measured.

        What means nothing without the group in any of the spaces goes with it.  A setting of which
        nothing is left is the default, against which the proof compares; one that breaks a rule of
        a space is not launched.
        """
        smaller = self.setting.without(*group)
        acting = {name for space in self.spaces for name in space.canonical(smaller)}
        smaller = smaller.without(*(name for name in smaller if name not in acting))
        if smaller in (DEFAULT, self.setting):
            return None
        broken = any(space.violations(smaller, grid=False) for space in self.spaces)
        return None if broken else smaller

    def take_out(self, idle: Mapping[Group, float]) -> None:
        """Take idle groups out together, but never everything: the worst to miss stays.

        ``idle`` has T / T_whole of the setting without each group.
        """
        for group in sorted(idle, key=lambda group: idle[group]):
            self.setting = self.without(group) or self.setting


def groups(names: Group, pieces: int, singles: int) -> list[Group]:
    """Single parameters where they are few, else about ``singles * pieces`` groups."""
    if len(names) <= singles * pieces:
        return [(name,) for name in names]
    size = -(-len(names) // (singles * pieces))
    return [names[i : i + size] for i in range(0, len(names), size)]
