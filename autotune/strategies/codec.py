"""Settings as vectors of small integers (codes), and their canonical form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from autotune.space import InactiveParameters, Parameter, Setting, Space, Value
from autotune.space.equal_layouts import EqualLayouts
from autotune.space.setting import normalise_value, write_value

UNSET = "unset"
INACTIVE = "inactive"
"""Key in a trial's attributes: parameters inactive under the conditions of its setting."""
UNUSED = "unused"
"""Key in a trial's attributes: parameters that are inactive in every setting of the study."""
DEFAULTS = "defaults"
"""Key in a trial's attributes: values of unset parameters, as a run showed."""
EQUAL = "equal_layouts"
"""Key in a trial's attributes: lists of placements that put the same ranks on the same CPUs."""
_CACHE_SIZE = 1000

Codes = tuple[int, ...]
"""One index per parameter into :attr:`Codec.choices`; 0 is unset if unset is allowed."""


class Codec:
    """Translates between settings, codes and the texts in Optuna's distributions.

    ``sizes`` (number of choices) and ``optional`` (unset allowed) have one entry per parameter.
    ``axis`` has for each parameter with ordered levels its codes in that order, else an empty
    tuple. If the default is known, unset has its position on the axis.
    """

    def __init__(self, space: Space) -> None:
        self.space = space
        self.names = space.names
        self.choices = tuple(parameter.choices for parameter in space.parameters)
        self.sizes: NDArray[np.intp] = np.array([len(c) for c in self.choices], dtype=np.intp)
        self.optional: NDArray[np.bool_] = np.array([p.unset for p in space.parameters])
        self.axis = tuple(_axis(parameter) for parameter in space.parameters)
        self.texts = tuple(
            tuple(UNSET if c is None else write_value(c) for c in choices)
            for choices in self.choices
        )
        self.idle = InactiveParameters(space)
        self._canonical_settings: dict[Setting, Setting | None] = {}
        self._settled_codes: dict[Codes, Codes | None] = {}
        self._in_order = self._values_in_order()
        self._plain = all(p.normalise(c) == c for p in space for c in p.choices if c is not None)
        self._codes = [{choice: i for i, choice in enumerate(c)} for c in self.choices]
        self._free = not space.constraints and all(p.when is None for p in space.parameters)

    def leave_out(self, attrs: Mapping[str, object], setting: Setting) -> bool:
        """Record what the ``attrs`` of the trial of ``setting`` say of settings with equal effects:
        inactive parameters and equal layouts.

        Returns True if any of it is new.
        """
        unused_names, idle, defaults = attrs.get(UNUSED), attrs.get(INACTIVE), attrs.get(DEFAULTS)
        fresh = (
            self.idle.learn_everywhere(unused_names)
            if isinstance(unused_names, list | tuple)
            else set()
        )
        if isinstance(idle, list | tuple):
            fresh = fresh | self.idle.learn(idle, setting)
        has_new_default = False
        if isinstance(defaults, dict):
            has_new_default = bool(
                [n for n, v in defaults.items() if self.idle.learn_default(n, v)]
            )
        new_layouts = [e for e in equal_layouts(attrs) if self.idle.learn_layouts(e)]
        is_new = bool(fresh) or has_new_default or bool(new_layouts)
        if is_new:
            self._canonical_settings.clear()
            self._settled_codes.clear()
        return is_new

    def encode(self, setting: Setting) -> Codes | None:
        """The codes of a canonical setting; None if a value is not on the grid."""
        values = setting.to_json()
        codes = [
            index.get(values.get(name)) for name, index in zip(self.names, self._codes, strict=True)
        ]
        if any(name not in self.space for name in values):
            return None
        return tuple(c for c in codes if c is not None) if None not in codes else None

    def decode(self, codes: Sequence[int]) -> Setting:
        """The setting of exactly these codes, canonical or not."""
        return Setting.from_sorted_items(self._values(codes))

    def settle(self, setting: Setting) -> Setting | None:
        """The canonical setting without inactive parameters, repaired if it breaks a rule.

        The repair leaves out the rule's last optional parameter, because a rule does not apply if
        none of its parameters is set. Returns None if this does not help.
        """
        if setting not in self._canonical_settings:
            if len(self._canonical_settings) >= _CACHE_SIZE:
                self._canonical_settings.clear()
            self._canonical_settings[setting] = self._settle(setting)
        return self._canonical_settings[setting]

    def _settle(self, setting: Setting) -> Setting | None:
        canonical = self.idle.strip(setting)
        while violations := self.space.broken_rules(canonical):
            names = [
                n
                for n in self.names
                if n in violations[0].expr.names and n in canonical and self.space[n].unset
            ]
            if not names:
                return None
            canonical = self.space.canonical(canonical.without(names[-1]))
        return canonical

    def settle_codes(self, codes: Codes) -> Codes | None:
        """Apply :meth:`settle` to codes."""
        if self._free and not self.idle:
            return codes
        if codes not in self._settled_codes:
            if len(self._settled_codes) >= _CACHE_SIZE:
                self._settled_codes.clear()
            canonical = self.settle(self.decode(codes))
            self._settled_codes[codes] = None if canonical is None else self.encode(canonical)
        return self._settled_codes[codes]

    def is_canonical(self, codes: Codes) -> bool:
        """True if these codes are a valid setting in canonical form."""
        if self._free:
            return True
        values = self._values(codes)
        if not self._plain:
            setting = Setting(values)
            return self.space.canonical(setting) == setting and not self.space.broken_rules(setting)
        # Most combinations of a large space have an inactive value, and one is enough.
        return not any(self.space.idle(values)) and not self.space.broken_rules(values)

    def _values(self, codes: Sequence[int]) -> dict[str, Value]:
        return {
            name: value
            for name, place, values in self._in_order
            if (value := values[codes[place]]) is not None
        }

    def _values_in_order(self) -> list[tuple[str, int, tuple[Value | None, ...]]]:
        """Each parameter's name, position and normalised choices, sorted by name."""
        Setting(dict.fromkeys(self.names, 0))  # Raises for an impossible parameter name.
        entries = [
            (name, place, tuple(None if c is None else normalise_value(c) for c in choices))
            for place, (name, choices) in enumerate(zip(self.names, self.choices, strict=True))
        ]
        return sorted(entries, key=lambda entry: entry[0])


def equal_layouts(attrs: Mapping[str, object]) -> list[EqualLayouts]:
    """The equal layouts in a trial's attributes."""
    entries = attrs.get(EQUAL)
    read = [EqualLayouts.from_json(one) for one in entries] if isinstance(entries, list) else []
    return [one for one in read if one is not None]


def _axis(parameter: Parameter) -> tuple[int, ...]:
    """Codes by increasing value, for three or more numbers that are quantities and not names."""
    if parameter.is_text or parameter.enum:
        return ()
    places: list[tuple[float, int]] = []
    for code, choice in enumerate(parameter.choices):
        value = parameter.default if choice is None else choice
        if value is not None and not isinstance(value, str):
            places.append((value, code))
    return tuple(code for _, code in sorted(places)) if len(places) > 2 else ()
