"""Space files: validation, resolution against a library, composition."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autotune.errors import UsageError
from autotune.space import DEFAULT, Setting, Space, Value, load_space
from runner.mpi.library import Library
from tests.case_table import case_table
from tests.refusals import refused
from tests.space.libraries import CLUSTER, CROWDED, NEW, OLD, ONE_NODE


def load(
    tmp_path: Path,
    text: str,
    library: Library | None = None,
    facts: dict[str, int] | None = None,
) -> Space:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    known: dict[str, Value] = dict(facts or {})
    return load_space(str(path), library, known)


RENAMED = """
[parameters.btl_sm_eager_limit]
levels = "1k:16k:*2"
on."openmpi<5" = { name = "btl_vader_eager_limit" }
[parameters.btl_sm_max_send_size]
levels = ["32k", "64k"]
when = "btl_sm_eager_limit >= 8k"
on."openmpi<5" = { name = "btl_vader_max_send_size", levels = ["16k"] }
[[constraints]]
rule = "btl_sm_eager_limit < btl_sm_max_send_size"
[[constraints]]
rule = "btl_sm_eager_limit != 2k"
on = "openmpi<5"
"""


def test_names_levels_rules_and_conditions_follow_the_library(tmp_path: Path) -> None:
    new, old = load(tmp_path, RENAMED, NEW), load(tmp_path, RENAMED, OLD)
    assert new.names == ("btl_sm_eager_limit", "btl_sm_max_send_size")
    assert old.names == ("btl_vader_eager_limit", "btl_vader_max_send_size")
    assert old["btl_vader_max_send_size"].levels == (16384,)
    assert old["btl_vader_eager_limit"].default == 4096
    assert len(new.constraints) == 1
    assert not old.is_valid({"btl_vader_eager_limit": 2048})
    assert new.is_valid({"btl_sm_eager_limit": 2048})
    setting = Setting({"btl_vader_eager_limit": 1024, "btl_vader_max_send_size": 16384})
    assert old.canonical(setting).key == "btl_vader_eager_limit=1024"
    [problem] = old.violations({"btl_sm_eager_limit": 1024})
    assert "btl_vader_eager_limit" in problem


def test_without_a_library_names_stay(tmp_path: Path) -> None:
    space = load(tmp_path, RENAMED)
    assert space.names == ("btl_sm_eager_limit", "btl_sm_max_send_size")
    assert space["btl_sm_eager_limit"].default is None
    assert len(space.constraints) == 1


def test_a_synonym_becomes_the_current_name(tmp_path: Path) -> None:
    text = "[parameters.btl_vader_eager_limit]\nlevels = [1024]\n"
    assert load(tmp_path, text, NEW).names == ("btl_sm_eager_limit",)
    # mpi_preconnect_all is the synonym of a name that is not listed: it stays.
    text = '[parameters.mpi_preconnect_all]\nlevels = "bool"\n'
    assert load(tmp_path, text, NEW).names == ("mpi_preconnect_all",)


def test_what_the_library_does_not_have_is_absent_with_the_reason(tmp_path: Path) -> None:
    text = """
    [parameters.no_such_thing]
    levels = [1]
    [parameters.smsc]
    levels = ["^cma"]
    on."openmpi<5" = { absent = "4.1 has no such framework" }
    [parameters.child]
    levels = [1]
    target = "env"
    when = "set(smsc)"
    """
    old = load(tmp_path, text, OLD)
    assert old.names == ()
    assert old.absent == {
        "no_such_thing": "Open MPI 4.1.8 has no parameter no_such_thing",
        "smsc": "4.1 has no such framework",
        "child": "its condition set(smsc) does not hold here",
    }
    assert load(tmp_path, text, NEW).names == ("smsc", "child")


ENUM = """
[parameters.coll_tuned_allgather_algorithm]
levels = "enum"
exclude = ["two_proc", 1]
implies = { coll_tuned_use_dynamic_rules = true }
[parameters.single]
levels = ["none", "cma"]
name = "btl_vader_single_copy_mechanism"
[[constraints]]
rule = "coll_tuned_allgather_algorithm != 'ring' or 'none' == single"
"""


def test_enumerated_values_are_the_librarys_own(tmp_path: Path) -> None:
    space = load(tmp_path, ENUM, OLD)
    algorithm = space["coll_tuned_allgather_algorithm"]
    assert algorithm.levels == (2, 3, 4, 5)
    assert algorithm.default == 0
    assert algorithm.implies == {"coll_tuned_use_dynamic_rules": 1}
    assert space["btl_vader_single_copy_mechanism"].levels == (3, 1)
    ring = Setting.parse("coll_tuned_allgather_algorithm=ring")
    assert space.canonical(ring).key == "coll_tuned_allgather_algorithm=4"
    assert not space.is_valid(ring)
    assert space.is_valid(ring.with_values({"btl_vader_single_copy_mechanism": "none"}))
    newer = load(tmp_path, ENUM, NEW)["coll_tuned_allgather_algorithm"]
    assert newer.levels == (2, 3, 4, 5, 7)


def test_enumerated_levels_need_a_library(tmp_path: Path) -> None:
    with refused(UsageError, "levels.none"):
        load(tmp_path, ENUM)


DEFAULTS = """
[parameters.mpi_yield_when_idle]
levels = "bool"
default_rule = "ranks > cores"
[parameters.mpi_leave_pinned]
levels = "bool"
[parameters.smsc]
levels = ["^cma"]
[parameters.btl_tcp_eager_limit]
levels = ["64k", "128k"]
default = "128k"
[parameters.map_by]
levels = ["slot", "node"]
default = "slot"
"""


def test_what_unset_means(tmp_path: Path) -> None:
    space = load(tmp_path, DEFAULTS, NEW, {"ranks": 4, "cores": 2})
    assert [parameter.default for parameter in space] == [1, -1, None, 131072, "slot"]
    assert space["map_by"].target == "placement"
    assert space["mpi_yield_when_idle"].choices == (None, 0)
    space = load(tmp_path, DEFAULTS, NEW, {"ranks": 2, "cores": 2})
    assert space["mpi_yield_when_idle"].choices == (None, 1)
    assert load(tmp_path, DEFAULTS, NEW)["mpi_yield_when_idle"].choices == (None, 0, 1)


def test_a_space_is_for_its_library(tmp_path: Path) -> None:
    text = 'library = "openmpi<5"\n[parameters.btl_vader_eager_limit]\nlevels = [1024]\n'
    assert len(load(tmp_path, text, OLD)) == 1
    with refused(UsageError, "space.other_library"):
        load(tmp_path, text, NEW)
    mpich = Library("mpich", "5.0.2", "/opt/mpich/bin", "/opt/mpich/bin/mpiexec")
    with refused(UsageError, "space.other_library"):
        load_space("openmpi", mpich)


def test_targets(tmp_path: Path) -> None:
    text = """
    [parameters.ranks]
    levels = [1, 2]
    [parameters.bind_to]
    levels = ["core"]
    [parameters.chunk-size]
    levels = [8]
    target = "arg"
    [parameters.rmaps_default_mapping_policy]
    levels = ["slot"]
    target = "prte"
    """
    space = load(tmp_path, text, NEW)
    assert [p.target for p in space] == ["resource", "placement", "arg", "prte"]


@case_table(
    ("text", "code", "told"),
    [
        ("parameters = 3", "config.invalid", "parameters: "),
        ("[parameters]", "config.invalid", "parameters: "),
        ("[parameters.a]\nlevels = [1]\n[parameters.a]\nlevels = [2]", "config.syntax", "line 3"),
        ("[parameters.a]\nlvels = [1]", "config.invalid", "parameters.a.lvels: .*'levels'"),
        ('[parameters.a]\nlevels = "9:1"', "config.invalid", "parameters.a.levels: .*'9:1'"),
        ("[parameters.a]\nhelp = 'x'", "config.invalid", 'parameters: a .*"absent"'),
        ("[parameters.a]\nlevels = [1]\nwhen = 'b >'", "config.invalid",
         "parameters.a.when: .*column 4"),
        ("[parameters.a]\nlevels = [1]\nwhen = 'b > 1'", "space.invalid", "parameters.a.when: b "),
        ("[parameters.a]\nlevels = [1]\ntarget = 'mac'", "config.invalid",
         "parameters.a.target: .*'mca'"),
        ("[parameters.a]\nlevels = [1]\nunset = 'no'", "config.invalid", "parameters.a.unset: "),
        ("[parameters.a]\nlevels = [1]\nexclude = [1]", "levels.none", 'parameters.a: "exclude"'),
        ("[parameters.a]\nlevels = [1]\non.'openmpi5' = {name = 'b'}", "config.invalid",
         "parameters.a.on: 'openmpi5'"),
        ("[parameters.a]\nlevels = [1]\non.openmpi = {nam = 'b'}", "config.invalid",
         "parameters.a.on.openmpi.nam: .*'name'"),
        ("[parameters.'a b']\nlevels = [1]", "config.invalid", "parameters: 'a b'"),
        ("[parameters.a]\nlevels = [1]\n[[constraints]]\nrule = 'a < c'", "space.invalid",
         "constraints.0.rule: c "),
        ("[parameters.a]\nlevels = [1]\n[[constraints]]\nreason = 'x'", "config.invalid",
         "constraints.0.rule: "),
        ("[parameters.a]\nlevels = [1]\n[constraint]\nrule = 'a'", "config.invalid",
         "constraint: .*'constraints'"),
        ("library = 'open mpi'\n[parameters.a]\nlevels = [1]", "config.invalid",
         "library: 'open mpi'"),
        ("[parameters.a]\non.'openmpi<5' = {levels = [1]}", "levels.none",
         'parameters.a: .*"absent"'),
    ],
)  # fmt: skip
def test_mistakes_are_told_with_file_and_key(
    tmp_path: Path, text: str, code: str, told: str
) -> None:
    with refused(UsageError, code) as caught:
        load(tmp_path, text)
    assert re.search(rf"mine\.toml: .*{told}", str(caught.value)), caught.value


def test_spaces_are_joined(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text("[parameters.workers]\nlevels = [1, 2]\n")
    space = load_space(f"null+{path}", NEW, dict(ONE_NODE))
    alone = load_space("null", NEW, dict(ONE_NODE))
    assert space.name == "null+own"
    assert space.names == (*alone.names, "workers")
    assert space.facts == ONE_NODE
    with refused(UsageError, "space.parameter_twice"):
        load_space("null+null", NEW, dict(ONE_NODE))


def test_joined_spaces_begin_with_their_settings_alone_and_together(tmp_path: Path) -> None:
    for name in ("one", "two"):
        table = f'[parameters.{name}]\nlevels = [1, 2]\ntarget = "env"\n'
        text = f'[[start]]\nsetting = "{name}=2"\n{table}'
        (tmp_path / f"{name}.toml").write_text(text)
    space = load_space(f"{tmp_path / 'one.toml'}+{tmp_path / 'two.toml'}", NEW, dict(ONE_NODE))
    assert [start.key for start in space.starts] == ["two=2", "one=2,two=2", "one=2"]


def test_unknown_facts_are_refused() -> None:
    with refused(UsageError, "space.fact_unknown"):
        load_space("null", NEW, {"sockets": 2})


@case_table("library", [OLD, NEW])
@case_table("name", ["openmpi", "openmpi-thesis", "openmpi-tcp", "openmpi+openmpi-tcp"])
def test_shipped_spaces_load_everywhere(name: str, library: Library) -> None:
    for facts in (ONE_NODE, CROWDED, CLUSTER):
        space = load_space(name, library, dict(facts))
        assert space.is_valid(DEFAULT), facts
        assert all(parameter.help for parameter in space), facts
        assert next(space.enumerate()) == DEFAULT, facts


STARTS = """
[parameters.a]
levels = [1, 2]
target = "env"
[parameters.b]
levels = ["x", "y"]
target = "env"
when = "ranks > 2"
[[constraints]]
rule = "a < 2 or ranks < 9"
[[start]]
setting = "a=2"
source = "somebody"
[[start]]
setting = "a=1,b=y"
"""


def test_what_is_worth_trying_first_where_it_is_allowed(tmp_path: Path) -> None:
    def starts(ranks: int) -> list[str]:
        return [str(start) for start in load(tmp_path, STARTS, NEW, {"ranks": ranks}).starts]

    assert starts(4) == ["a=2", "a=1,b=y"]
    assert starts(16) == ["a=1,b=y"]
    assert starts(1) == ["a=2"]


@pytest.mark.parametrize(
    ("start", "code"),
    [("c=1", "space.invalid"), ("a", "config.invalid"), ("a=2,a=1", "config.invalid")],
)
def test_a_start_that_cannot_be_is_an_error(tmp_path: Path, start: str, code: str) -> None:
    with refused(UsageError, code) as caught:
        load(tmp_path, STARTS.replace("a=2", start), NEW, {"ranks": 4})
    assert "start.0.setting" in str(caught.value)
