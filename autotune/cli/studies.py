"""``autotune studies``: the list of studies in the results database."""

from __future__ import annotations

from autotune.api.studies import list_studies, study_line
from autotune.cli.options import JsonOut, StoreUrl
from autotune.cli.reading import reading
from autotune.terminal.render import write_json
from autotune.terminal.study_list import print_list


def studies(store: StoreUrl = None, json_out: JsonOut = None) -> None:
    """List the studies in the results database, newest first."""
    with reading(store) as database:
        lines, label = list_studies(database), database.label
    if json_out:
        write_json([study_line(*line) for line in lines], json_out)
    else:
        print_list(lines, label)
