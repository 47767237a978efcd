"""Clusters: the list, and one with its studies and its published defaults."""

from __future__ import annotations

from starlette.requests import Request

from autotune.config.cluster import cluster_names
from autotune.errors import UsageError
from autotune.report.cluster import answered_studies, known_sections
from autotune.report.page import Section
from autotune.store import StudyQuery
from autotune.ui.figures import plain_section
from autotune.ui.publications import publications
from autotune.ui.site import Site, View

MAX_SEARCHES = 30
"""Number of the newest answered searches in the overview; each is read with all its runs."""


def clusters_page(site: Site, request: Request) -> View:
    """Every cluster with studies, published files or a definition."""
    clusters = []
    file_clusters = [one.file.header.cluster for one in publications(site)[0]]
    for name in _all_names(site):
        studies = site.store.study_page(StudyQuery(cluster=name, size=1)).total
        clusters.append((name, studies, file_clusters.count(name)))
    return View("clusters.html", "Clusters", "/clusters", {"clusters": clusters})


def cluster_page(site: Site, request: Request) -> View:
    """A cluster: its answered searches, its published defaults, class-wide results."""
    name = str(request.path_params["name"])
    if name not in _all_names(site):
        raise UsageError(
            f"no cluster {name[:80]!r}; the list of clusters names them", code="cluster.unknown"
        )
    page = site.store.study_page(StudyQuery(cluster=name, size=500))
    files = [one for one in publications(site)[0] if one.file.header.cluster == name]
    key = ("cluster", name, page.total, str([(r.study.status, r.study.runs) for r in page.rows]))
    sections = site.memoise((*key, str(files)), lambda: _sections(site, name))
    return View(
        "cluster.html",
        f"Cluster {name}",
        "/clusters",
        {"name": name, "total": page.total, "sections": sections, "files": files},
    )


def _sections(site: Site, name: str) -> tuple[Section, ...]:
    rows = site.store.study_page(StudyQuery(cluster=name, size=500)).rows
    studies = answered_studies(site.store, name, (row.study for row in rows))[:MAX_SEARCHES]
    return tuple(map(plain_section, known_sections(site.store, name, studies)))


def _all_names(site: Site) -> list[str]:
    """The names of all known clusters."""
    file_clusters = {one.file.header.cluster for one in publications(site)[0]}
    return sorted({*site.store.study_choices()["cluster"], *cluster_names(), *file_clusters})
