"""The application: maps addresses to pages.

An address has the hash of a study, the name of a dataset or a cluster, or a number. It is looked up
among known entries, and never joined to a folder.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from importlib.resources import files

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from autotune.report.page import part
from autotune.store import Store
from autotune.ui import clusters, datasets, publications, running, studies, study, two_studies
from autotune.ui.access import Access
from autotune.ui.site import PageFunction, Site, failure

PAGES: dict[str, PageFunction] = {
    "/": studies.studies_page,
    "/study/{study}": study.study_page,
    "/study/{study}/importance": study.importance_page,
    "/study/{study}/runs": study.runs_page,
    "/study/{study}/run/{run}": study.run_page,
    "/study/{study}/state.json": running.state_json,
    "/running": running.running_page,
    "/compare": two_studies.comparison_page,
    "/clusters": clusters.clusters_page,
    "/cluster/{name}": clusters.cluster_page,
    "/published": publications.publications_page,
    "/published/{publication}": publications.publication_page,
    "/datasets": datasets.datasets_page,
    "/dataset/{name}": datasets.dataset_page,
    "/dataset/{name}/cells": datasets.cells_page,
}
_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


def static_files() -> dict[str, str]:
    """The files that pages load, by name: all of them come with autotune."""
    own = files("autotune.ui").joinpath("static")
    names = ("ui.css", "ui.js", "icon.svg")
    texts = {name: own.joinpath(name).read_text(encoding="utf-8") for name in names}
    return texts | {name: part(name) for name in ("sections.css", "copy.js")}


def build(store: Store, token: str, hosts: Collection[str]) -> ASGIApp:
    """The whole application over an opened results database, which it only reads.

    ``hosts``: accepted host names with port; ``token``: the secret in every address
    (:mod:`autotune.ui.access`).
    """
    site, contents = Site(store, f"/{token}"), static_files()

    def static(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in contents:
            raise HTTPException(404)
        return Response(contents[name], media_type=_TYPES[name.rpartition(".")[2]])

    def missing(request: Request, problem: Exception) -> Response:
        return site.html(failure("There is no such page. The navigation above lists them.", 404))

    app = Starlette(
        routes=[
            *(Route(path, _endpoint(site, page)) for path, page in PAGES.items()),
            Route("/static/{name}", static),
        ],
        exception_handlers={404: missing},
    )
    return Access(app, token, hosts)


def _endpoint(site: Site, page: PageFunction) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        return site.answer(page, request)

    return answer
