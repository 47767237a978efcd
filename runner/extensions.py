"""Classes that installed packages add to autotune's registries through entry points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from runner.errors import RunnerError

T = TypeVar("T")


def with_extensions(group: str, base: type[T], own: Mapping[str, type[T]]) -> dict[str, type[T]]:
    """All classes of a registry by name: ``own`` and those of the entry points of ``group``.

    Each class of an entry point must be a subclass of ``base``. Loading runs code of packages that
    the user has installed. Raises RunnerError with the entry point's name if it cannot be loaded,
    is not such a class, or uses a name that is taken.
    """
    classes = dict(own)
    for entry in sorted(entry_points(group=group), key=lambda one: one.name):
        extension = _load(entry, base)
        if classes.setdefault(entry.name, extension) is not extension:
            owner = classes[entry.name]
            raise RunnerError(
                f"{_place(entry)}: the name {entry.name!r} is taken by {owner.__module__}."
                f"{owner.__qualname__}; uninstall one of the two packages",
                code="extension.name_taken",
            )
    return classes


def extension_names(group: str, own: Iterable[str]) -> tuple[str, ...]:
    """Names of the entry points of ``group`` that are not in ``own``; nothing is loaded."""
    return tuple(sorted({entry.name for entry in entry_points(group=group)} - set(own)))


def extension(group: str, name: str, base: type[T]) -> type[T]:
    """The class of one name of :func:`extension_names`; raises as :func:`with_extensions` does."""
    [entry, *_] = entry_points(group=group, name=name)
    return _load(entry, base)


def _load(entry: EntryPoint, base: type[T]) -> type[T]:
    expectation = f"expected a subclass of {base.__module__}.{base.__qualname__}"
    try:
        extension = entry.load()
    except Exception as problem:  # A module of another package may raise anything when imported.
        raise RunnerError(
            f"{_place(entry)} cannot be loaded: {type(problem).__name__}: {problem}; "
            f"{expectation}.\nRepair or uninstall that package",
            code="extension.invalid",
        ) from problem
    if not (isinstance(extension, type) and issubclass(extension, base)):
        raise RunnerError(
            f"{_place(entry)} is {extension!r}; {expectation}", code="extension.invalid"
        )
    return extension


def _place(entry: EntryPoint) -> str:
    package = "an installed package" if entry.dist is None else f"the package {entry.dist.name}"
    return f"the entry point {entry.name} = {entry.value} of {package} (group {entry.group})"
