"""A table of small cases that one test goes through.

pytest collects each case of ``parametrize`` in every process, starts it with all fixtures, and
reports it: for a case of a few microseconds that takes a thousand times as long as the case.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

Test = Callable[..., None]


def case_table(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[[Test], Test]:
    """As ``pytest.mark.parametrize``, with one test for all cases, which share its fixtures.

    The first case that fails ends it; a note on the error names the values of the case.
    """
    columns = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
    rows = [case if len(columns) > 1 else (case,) for case in cases]
    assert not any(hasattr(cell, "marks") for row in rows for cell in (row, *row)), "of a row"

    def decorate(test: Test) -> Test:
        def every_case(**others: Any) -> None:
            for row in rows:
                values = dict(zip(columns, row, strict=True))
                try:
                    test(**others, **values)
                except BaseException as error:
                    error.add_note(f"case: {values}")
                    raise

        every_case.__name__, every_case.__doc__ = test.__name__, test.__doc__
        every_case.__wrapped__ = test  # type: ignore[attr-defined]  # pytest shows its place.
        fixtures = [p for n, p in inspect.signature(test).parameters.items() if n not in columns]
        every_case.__signature__ = inspect.Signature(fixtures)  # type: ignore[attr-defined]
        return every_case

    return decorate
