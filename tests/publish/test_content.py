"""The alphabet of published files."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.errors import UsageError
from autotune.publish.content import (
    check_path,
    check_published_groups,
    check_published_value,
    check_published_variable,
    comment_text,
)
from tests.case_table import case_table


@given(st.text(max_size=60))
def test_a_value_is_one_shell_word_or_refused(value: str) -> None:
    try:
        check_published_value("name", value)
    except UsageError:
        return
    assert shlex.split(value, comments=True) == [value]
    assert shlex.quote(value) in (value, f"'{value}'")


@given(st.text(max_size=200))
def test_a_comment_is_one_harmless_line(text: str) -> None:
    said = comment_text(text)
    assert said.isascii()
    assert not set(said) & set("\n\r\\<>&\"'`$")
    assert "--" not in said
    assert comment_text(said) == said


@case_table("value", ["", "a b", "a\nb", "a;b", "$(x)", "`x`", "'", '"', "\\", "é", "x" * 501])
def test_values_that_could_mean_something_else_are_refused(value: str) -> None:
    with pytest.raises(UsageError, match="btl = "):
        check_published_value("btl", value)


@case_table("name", ["PATH", "LD_PRELOAD", "HOME", "BASH_ENV", "ENV", "PYTHONPATH", "lower"])
def test_variables_that_decide_what_runs_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match=name):
        check_published_variable(name)


def test_each_group_has_its_names() -> None:
    check_published_groups({"env": {"OMP_NUM_THREADS": "2"}, "mca": {"btl": "^ofi"}})
    with pytest.raises(UsageError):
        check_published_groups({"mca": {"a=b": "1"}})
    with pytest.raises(UsageError):
        check_published_groups({"env": {"PATH": "/tmp"}})


def test_paths_are_absolute_and_plain() -> None:
    assert check_path("/etc/x.rules") == "/etc/x.rules"
    for wrong in ("x.rules", "/a b", "/a\n", "/a'b"):
        with pytest.raises(UsageError):
            check_path(wrong)
