"""``autotune show``: one study of the results database."""

from __future__ import annotations

from typing import Annotated

from autotune.api.study_details import StudyDetails
from autotune.cli.options import JsonOut, StoreUrl, StudyName, opt
from autotune.cli.reading import reading
from autotune.terminal.render import write_json
from autotune.terminal.study import print_study


def show(
    study: StudyName,
    limit: Annotated[int, opt("--limit N", "Number of settings to list.", min=1)] = 10,
    whole: Annotated[
        bool, opt("--whole", "List every parameter of each setting; do not shorten.")
    ] = False,
    store: StoreUrl = None,
    json_out: JsonOut = None,
) -> None:
    """Show one study: its result, the best settings seen, what carried the messages, and how its
    runs ended."""
    with reading(store) as database:
        details = StudyDetails.of(database.find_study(study), database, bool(json_out))
    if json_out:
        write_json(details.document(limit), json_out)
    else:
        print_study(details, limit, whole)
