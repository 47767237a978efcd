"""What over-decomposition could bring to a traced program at most, and which spaces lay it out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from autotune.config.app import App, load_app
from autotune.config.find import find_config, list_configs
from autotune.document import Document
from autotune.errors import UsageError
from autotune.json_types import Number
from autotune.space import space_names
from autotune.space.definition import KIND, read_definition
from autotune.space.layout_table import NamedValues

if TYPE_CHECKING:
    from runner.trace import Features


class OverDecomposition(Document):
    """What tasks that run while others wait could bring at most, and the spaces that have them."""

    most_gain: Number
    """Gain if all communication were hidden behind computation, as a fraction."""
    spaces: list[str]
    """Spaces with words of layouts that the program understands; empty if it is not known here."""


def over_decomposition(features: Features) -> OverDecomposition:
    """The bound of a traced program: communication time over computation time.

    Where all communication is hidden, only the computation is left. Work that is cut further costs
    more, so this is a bound and no expectation.
    """
    spaces: list[str] = []
    if features.app is not None:
        try:
            spaces = spaces_with_layouts(load_app(features.app))
        except UsageError:  # The application of another user is not known here.
            spaces = []
    return OverDecomposition(most_gain=features.values["comm_to_comp"], spaces=spaces)


def spaces_with_layouts(app: App) -> list[str]:
    """The names of the spaces with other models than flat that the program understands: its own
    forms by their general names, and spaces that are no other program's form."""
    forms = {form for file in list_configs("apps") for form in load_app(file.name).spaces.values()}
    names = set(app.spaces)
    for name in space_names():
        definition = read_definition(find_config(KIND, name))
        if definition.requires in app.tunable and definition.layout.words and name not in forms:
            names.add(name)
    return sorted(name for name in names if models_of_space(name))


def models_of_space(name: str) -> list[str]:
    """What ``model`` may be in a space beside flat; empty if it says nothing of it."""
    model = read_definition(find_config(KIND, name)).layout.words.get("model")
    if not isinstance(model, NamedValues):
        return []
    texts = {*model.names.values(), *([model.other] if model.other else [])}
    return sorted(texts - {"flat"})
