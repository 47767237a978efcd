"""What an application's file says about the input files that are written for each run.

The texts stand in the application's file.  ``{{name}}`` in them is a value: of the input, of the
launch (``ranks``), or of a setting, if the application declares it as a placeholder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict

from autotune.errors import UsageError
from autotune.names import is_file_name

PLACE = re.compile(r"\{\{(\w+)\}\}", re.ASCII)
"""A placeholder in the text of an input file."""
Effect = Literal["none", "result"]
"""Whether another value of a placeholder can change the result of the program."""


class InputRule(BaseModel):
    """A rule that every setting of the program must satisfy, so that it solves the same problem."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    rule: str
    """An expression of placeholders and facts, such as `p * q == ranks`."""
    reason: str = ""
    """Why it holds; shown with a setting that breaks it."""


def check_input_files(
    where: str, texts: Mapping[str, str], placeholders: Mapping[str, Effect]
) -> None:
    """Check the input files of one input before anything runs.

    Raises UsageError, which begins with ``where``, for a name that is a path, and for a declared
    placeholder that no text has.
    """
    for name in texts:
        if not is_file_name(name) or name.startswith("."):
            raise UsageError(
                f"{where}: {name!r} cannot be the name of an input file; expected one name in the "
                "folder of the run, without / and not hidden",
                code="app.input_file",
            )
    places = {place for text in texts.values() for place in PLACE.findall(text)}
    if texts and (unused := sorted(set(placeholders) - places)):
        raise UsageError(
            f"{where}: placeholders declares {unused[0]}, but no input file has "
            f"{{{{{unused[0]}}}}}; the files have {', '.join(sorted(places)) or 'none'}",
            code="app.input_file",
        )
