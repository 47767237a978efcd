"""The list of studies: search, filters, order and pages, all of them in SQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request

from autotune.api.status import as_now
from autotune.store import StudyQuery
from autotune.store.listing import FILTERS, ORDERS
from autotune.study.unchecked import StoredAnswer, unchecked
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
    wanted = query_of(request)
    found = site.store.study_page(wanted)
    rows = [
        (row, as_now(site.store, row.study), bool(unchecked(StoredAnswer.of_summary(row.study))))
        for row in found.rows
    ]
    given = {k: v for k, v in request.query_params.items() if v and k != "page"}
    chosen = {name: getattr(wanted, name) for name in FILTERS}
    return View(
        "studies.html",
        "Studies",
        "/",
        {
            "rows": rows,
            "page": found,
            "wanted": wanted,
            "chosen": chosen,
            "choices": site.store.study_choices(),
            "columns": COLUMNS,
            "numbers": NUMBERS,
            "sorted_by": {name: site.at + _sort_link(given, wanted, name) for name in ORDERS},
            "links": {
                word: site.at + _link(given | {"page": str(place)})
                for word, place in _places(found.page, found.pages).items()
            },
            "filtered": bool(wanted.text or any(chosen.values())),
        },
    )


def query_of(request: Request) -> StudyQuery:
    """The query in an address; raises UsageError for an order or page that does not exist."""
    given = request.query_params
    order = given.get("order") or "begun"
    filters: dict[str, Any] = {name: given.get(name, "")[:200] for name in FILTERS}
    return StudyQuery(
        text=given.get("q", "")[:200],
        **filters,
        order=order,
        descending=given.get("direction") != _RISING,
        page=number(request, "page", 1),
    )


def _sort_link(given: Mapping[str, str], wanted: StudyQuery, name: str) -> str:
    """The list sorted by a column; a second time, in the other direction."""
    falling = wanted.order == name and wanted.descending
    changed = {k: v for k, v in given.items() if k not in ("order", "direction")}
    return _link(changed | {"order": name} | ({"direction": _RISING} if falling else {}))


def _link(query: Mapping[str, str]) -> str:
    return f"/?{urlencode(query)}"


def _places(page: int, pages: int) -> dict[str, int]:
    """The pages that can be reached from here by name."""
    found = {"first": 1, "previous": page - 1} if page > 1 else {}
    return found | ({"next": page + 1, "last": pages} if page < pages else {})
