"""Running studies: every study with a working process, refreshed by the page's script."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from autotune.api.live import is_active, live_state
from autotune.api.status import state_of
from autotune.study.study_status import FINISHED
from autotune.ui.site import Site, View
from autotune.ui.study import find

LOOKED_AT = 50
"""Number of the newest unfinished studies to check."""


def running_page(site: Site, request: Request) -> View:
    """The studies that run, each with its phase, best setting, time left and runs."""
    studies = []
    for number in site.store.unfinished_studies(FINISHED, LOOKED_AT):
        study = site.store.get_study(number)
        if is_active(site.store, study, state_of(site.store, study)):
            studies.append((study, live_state(site.store, study)))
    return View("running.html", "Running now", "/running", {"studies": studies})


def state_json(site: Site, request: Request) -> dict[str, Any]:
    """The progress of one study, for the script."""
    return live_state(site.store, find(site, request))
