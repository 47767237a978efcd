"""Values that the shell completes: names of applications, clusters, spaces, studies and others.

A completion reads only, prints nothing, and offers nothing where something is wrong: the command
itself says what.  Each imports what it needs when the user asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import typer

from autotune.errors import AutotuneError
from runner.errors import RunnerError
from runner.files.paths import is_file

Offer = tuple[str, str]
"""A value, and a few words on it that some shells show beside it."""
_VALUE = re.compile(r"[\w.+:@/=-]+")
"""What is offered: zsh evaluates the answer, and names come from files and databases."""
_NO_WORDS = re.compile(r"[^\w ,.+/-]+")
_LONGEST = 56
"""Longest words on a value: they are not wrapped, because a line break ends the answer."""


def _quiet(find: Callable[[typer.Context, str], Iterable[Offer]]) -> Callable[..., list[Offer]]:
    """The values that begin with what was typed; none if they cannot be read."""

    @wraps(find)
    def complete(ctx: typer.Context, incomplete: str) -> list[Offer]:
        try:
            return [
                (value, _short(words))
                for value, words in find(ctx, incomplete)
                if value.startswith(incomplete) and _VALUE.fullmatch(value)
            ]
        except (AutotuneError, RunnerError, OSError):
            return []

    return complete


@_quiet
def apps(ctx: typer.Context, incomplete: str) -> Iterable[Offer]:
    """Applications known by name."""
    return _configs("apps")


@_quiet
def inputs(ctx: typer.Context, incomplete: str) -> Iterable[Offer]:
    """Inputs of the application that was named before on the line."""
    from autotune.config.app import load_app

    name = ctx.params.get("app")
    if not name:
        return []
    return [(key, one.description) for key, one in load_app(name).inputs.items()]


@_quiet
def clusters(ctx: typer.Context, incomplete: str) -> Iterable[Offer]:
    """Cluster definitions, and testbeds that exist."""
    from autotune.config.cluster import cluster_names

    descriptions = dict(_configs("clusters"))
    return [(name, descriptions.get(name, "")) for name in cluster_names()]


@_quiet
def spaces(ctx: typer.Context, incomplete: str) -> Iterable[Offer]:
    """Parameter spaces; after ``+`` the next space of a joined one."""
    before, plus, _ = incomplete.rpartition("+")
    return [(f"{before}{plus}{name}", words) for name, words in _configs("spaces")]


@_quiet
def strategies(ctx: typer.Context, incomplete: str) -> Iterable[Offer]:
    """Search strategies."""
    from autotune.strategies import names

    return [(name, "") for name in names()]


@_quiet
def studies(ctx: typer.Context, incomplete: str) -> Iterable[Offer]:
    """Studies in the results database, by the first eight digits of their hashes."""
    from autotune.store import Store
    from autotune.store.location import locate

    place = ctx.params.get("store")
    path = locate(place).path
    if path is not None and not is_file(path):
        return []  # Opening the usual database would make it.
    with Store.open_to_read(place) as database:
        return [
            (one.hash[:8], f"{one.app} on {one.ranks} ranks, {one.strategy}, {one.status}")
            for one in database.studies()
        ]


@_quiet
def sources(ctx: typer.Context, incomplete: str) -> Iterable[Offer]:
    """What is analysed: a dataset, or ``study:ID``."""
    offers = datasets(ctx, incomplete)
    if incomplete.startswith("study:"):
        offers += [(f"study:{one}", words) for one, words in studies(ctx, incomplete[6:])]
    return offers


@_quiet
def datasets(ctx: typer.Context, incomplete: str) -> Iterable[Offer]:
    """Datasets."""
    from autotune.datasets.catalog import list_datasets

    return [(folder.name, "") for folder in list_datasets()]


@_quiet
def plans(ctx: typer.Context, incomplete: str) -> Iterable[Offer]:
    """Plans of measuring campaigns."""
    return _configs("plans")


@_quiet
def schemas(ctx: typer.Context, incomplete: str) -> Iterable[Offer]:
    """JSON schemas."""
    from autotune.schemas import SCHEMAS

    return [(name, schema.title) for name, schema in SCHEMAS.items()]


@_quiet
def formats(ctx: typer.Context, incomplete: str) -> Iterable[Offer]:
    """Formats in which a setting is published."""
    from autotune.publish.formats import everything

    return [(one.name, one.summary) for one in everything()]


def _configs(kind: str) -> list[Offer]:
    """Names and descriptions of configuration files; they are not validated here."""
    import tomllib

    from autotune.config.find import list_configs

    offers = []
    for file in list_configs(kind):
        try:
            data: dict[str, Any] = tomllib.loads(file.text)
        except tomllib.TOMLDecodeError:
            data = {}
        offers.append((file.name, f"{data.get('description') or data.get('title', '')}"))
    return offers


def _short(words: str) -> str:
    """The first sentence, without line breaks and characters that mean something to a shell."""
    plain = " ".join(_NO_WORDS.sub(" ", words).split()).partition(". ")[0].rstrip(".")
    return plain if len(plain) <= _LONGEST else plain[: _LONGEST - 3].rpartition(" ")[0] + " ..."
