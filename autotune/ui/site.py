"""The site: the results database, the templates, and the common parts of all pages.

Pages are functions from a request to a :class:`View`. Everything from the database is data, and the
templates escape it; only the figures, which autotune draws itself, are not escaped.
"""

from __future__ import annotations

import importlib.metadata
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from autotune.errors import AutotuneError, UsageError
from autotune.report.page import PARTS
from autotune.store import Store
from autotune.wording import interval, percent, seconds, short_setting, whole_number
from runner.errors import RunnerError

T = TypeVar("T")
_CACHE_SIZE = 64
"""Number of cached drawings; drawing takes a second and more."""
NAVIGATION = (
    ("Studies", "/"),
    ("Running", "/running"),
    ("Compare", "/compare"),
    ("Clusters", "/clusters"),
    ("Published", "/published"),
    ("Datasets", "/datasets"),
)


@dataclass(frozen=True)
class View:
    """A page: the template, its values, its title, and the entry of the navigation it is under."""

    template: str
    title: str
    under: str
    values: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200


PageFunction = Callable[["Site", Request], "View | dict[str, Any]"]


class Site:
    """The common parts of all pages; several requests use it at the same time.

    ``at`` is the beginning of all addresses.
    """

    def __init__(self, store: Store, at: str = "") -> None:
        self.store, self.at = store, at
        self._cache: OrderedDict[Hashable, Any] = OrderedDict()
        self._drawing = threading.Lock()
        self._templates = Environment(
            loader=ChoiceLoader(
                [PackageLoader("autotune.ui", "templates"), PackageLoader(PARTS, "")]
            ),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters.update(
            seconds=seconds,
            percent=percent,
            interval=interval,
            setting=short_setting,
            known_seconds=lambda value: seconds(value if math.isfinite(value) else None),
        )
        self._templates.globals.update(navigation=NAVIGATION, version=_version(), at=at)

    def memoise(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result of ``make``, cached for each key.

        Only one runs at a time, because matplotlib's settings belong to the whole process.
        """
        with self._drawing:
            if key not in self._cache:
                self._cache[key] = make()
            self._cache.move_to_end(key)
            while len(self._cache) > _CACHE_SIZE:
                self._cache.popitem(last=False)
            part: T = self._cache[key]
            return part

    def answer(self, function: PageFunction, request: Request) -> Response:
        """The answer of a page; an error is a page that says what to do."""
        try:
            view = function(self, request)
        except (AutotuneError, RunnerError) as problem:
            missing = isinstance(problem, UsageError)
            view = failure(str(problem), 404 if missing else 500)
            if request.url.path.endswith(".json"):
                return JSONResponse({"error": str(problem)}, view.status)
        if isinstance(view, dict):
            return JSONResponse(view)
        return self.html(view)

    def html(self, view: View) -> Response:
        """The page as HTML."""
        text = self._templates.get_template(view.template).render(
            title=view.title,
            under=view.under,
            database=self.store.label,
            damage=self.store.damage.lines(self.store.label),
            **view.values,
        )
        return HTMLResponse(text, view.status)


def failure(words: str, status: int) -> View:
    """The page of an error."""
    title = "Not found" if status == 404 else "This did not work"
    return View("error.html", title, "", {"words": words}, status)


def number(request: Request, name: str, usual: int, largest: int = 2**31 - 1) -> int:
    """A number from 1 on in the query; raises UsageError for anything else."""
    text = request.query_params.get(name) or str(usual)
    value = whole_number(text, largest)
    if not value:
        raise UsageError(
            f"{name}={text[:40]!r} in the address is no number; expected 1 or more",
            code="ui.address",
        )
    return value


def _version() -> str:
    try:
        return importlib.metadata.version("mpi-autotune")
    except importlib.metadata.PackageNotFoundError:  # run from a checkout
        return "(unknown version)"
