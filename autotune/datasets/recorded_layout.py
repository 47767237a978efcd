"""The layouts of a recorded cell: by the words of its own space file, or of the shipped space.

Datasets that were recorded before spaces had words say the name of their space. The shipped space
of that name, in the form that the application has today, provides the words. Parameters that were
not varied have the words of their defaults, and facts of the input come from the application.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from autotune.config.app import App, load_app
from autotune.config.find import find_config
from autotune.datasets.card import Cell
from autotune.errors import UsageError
from autotune.space import Space, Value, load_space
from autotune.space.definition import FACTS, KIND, read_definition
from autotune.space.vocabulary import LayoutRules


def with_words(space: Space, cell: Cell, space_name: str) -> Space:
    """The recorded space of a cell with words of layouts, as far as there are any.

    ``space_name`` is the name of the space that was measured.
    """
    try:
        app = load_app(cell.app)
        facts: dict[str, Value] = dict(app.input(cell.input or None).facts)
    except UsageError:  # The application of another user is not known here.
        return space
    if space.layout.words:
        return replace(space, layout=replace(space.layout, facts={**facts, **space.facts}))
    rules = _shipped(app, space_name, {"ranks": cell.ranks, **cell.facts}, facts)
    if rules is None:
        return space
    return replace(space, layout=replace(rules, facts={**rules.facts, **facts}))


def _shipped(
    app: App, space_name: str, facts: Mapping[str, Value], app_facts: Mapping[str, Value]
) -> LayoutRules | None:
    """The words of the spaces of this name, with the defaults of all their parameters as facts."""
    rules: LayoutRules | None = None
    for part in app.space(space_name).split("+"):
        try:
            if not read_definition(find_config(KIND, part)).layout.words:
                continue
            known = {name: value for name, value in facts.items() if name in FACTS}
            space = load_space(part, None, known, app_facts)
        except UsageError:  # The space of another user is not known here.
            continue
        defaults = {p.name: p.default for p in space if p.default is not None}
        own = replace(space.layout, facts=defaults)
        rules = own if rules is None else rules.joined(own)
    return rules
