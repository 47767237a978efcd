"""Which names count as participles or adverbs."""

from __future__ import annotations

import ast

from tests.binding_names import bindings, is_participle
from tests.case_table import case_table


@case_table(
    "name", ["found", "_known", "rows_given", "MadeOf_Told", "launched", "apart", "isRejected"]
)
def test_a_name_that_says_what_was_done_counts(name: str) -> None:
    assert is_participle(name)


@case_table(
    "name", ["given_rows", "seed", "testbed", "is_finished", "_has_started", "setting", "_", "x1"]
)
def test_a_name_that_says_what_it_is_does_not(name: str) -> None:
    assert not is_participle(name)


def test_every_kind_of_binding_is_seen() -> None:
    source = """
import a as b
def c(d, *e, f=1, **g):
    self.h = [i for i in d]
    with open(d) as j: pass
    try: k: int = 1
    except ValueError as m: pass
    match d:
        case [n, *o] as p: pass
class Q: r = 1
lambda s: (t := s)
"""
    assert sorted(name for name, _ in bindings(ast.parse(source))) == sorted("bcdefghijkmnopQrst")
