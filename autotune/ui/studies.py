"""The list of studies: search, filters, order and pages, all of them in SQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request

from autotune.api.status import as_now
from autotune.measurement.result_checks import StoredAnswer, unchecked
from autotune.store import StudyQuery
from autotune.store.listing import FILTERS, ORDERS
from autotune.ui.site import Site, View, number

COLUMNS = (
    ("begun", "begun"),
    ("app", "program"),
    ("machine", "machine"),
    ("ranks", "ranks"),
    ("strategy", "strategy"),
    ("status", "status"),
    ("trials", "trials"),
    ("runs", "runs"),
)
"""The columns that can be sorted, with their headings."""
NUMBERS = ("ranks", "trials", "runs")
_RISING = "up"


def studies_page(site: Site, request: Request) -> View:
    """The studies that the query of the address selects."""
    query = query_of(request)
    page = site.store.study_page(query)
    rows = [
        (row, as_now(site.store, row.study), bool(unchecked(StoredAnswer.of_summary(row.study))))
        for row in page.rows
    ]
    parameters = {k: v for k, v in request.query_params.items() if v and k != "page"}
    filters = {name: getattr(query, name) for name in FILTERS}
    return View(
        "studies.html",
        "Studies",
        "/",
        {
            "rows": rows,
            "page": page,
            "wanted": query,
            "chosen": filters,
            "choices": site.store.study_choices(),
            "columns": COLUMNS,
            "numbers": NUMBERS,
            "sorted_by": {name: site.at + _sort_link(parameters, query, name) for name in ORDERS},
            "links": {
                word: site.at + _link(parameters | {"page": str(place)})
                for word, place in _places(page.page, page.pages).items()
            },
            "filtered": bool(query.text or any(filters.values())),
        },
    )


def query_of(request: Request) -> StudyQuery:
    """The query in an address; raises UsageError for an order or page that does not exist."""
    parameters = request.query_params
    order = parameters.get("order") or "begun"
    filters: dict[str, Any] = {name: parameters.get(name, "")[:200] for name in FILTERS}
    return StudyQuery(
        text=parameters.get("q", "")[:200],
        **filters,
        order=order,
        descending=parameters.get("direction") != _RISING,
        page=number(request, "page", 1),
    )


def _sort_link(parameters: Mapping[str, str], query: StudyQuery, name: str) -> str:
    """The list sorted by a column; a second time, in the other direction."""
    falling = query.order == name and query.descending
    others = {k: v for k, v in parameters.items() if k not in ("order", "direction")}
    return _link(others | {"order": name} | ({"direction": _RISING} if falling else {}))


def _link(query: Mapping[str, str]) -> str:
    return f"/?{urlencode(query)}"


def _places(page: int, pages: int) -> dict[str, int]:
    """The pages that can be reached from here by name."""
    places = {"first": 1, "previous": page - 1} if page > 1 else {}
    return places | ({"next": page + 1, "last": pages} if page < pages else {})
