"""Settings in files: what autotune writes in every format, and what people write."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.collective_rules import Rule
from autotune.errors import UsageError
from autotune.publish import formats
from autotune.publish.content import Content
from autotune.publish.tune_file import tune_text
from autotune.space import Parameter, Setting, Space, load_space
from autotune.targets.setting_syntax import read_setting_file, read_settings
from runner.mpi.library import Library, ParamInfo
from tests.case_table import case_table
from tests.refusals import refused

NAMES = ("btl_vader_eager_limit", "coll_tuned_bcast_algorithm", "pml")
NUMBERED = {number: f"algorithm_{number}" for number in range(10)}
PARAMS = {
    name: ParamInfo(name, "int" if "coll" in name else "string", "", enum=NUMBERED)
    for name in NAMES
}
OLD = Library("openmpi", "4.1.4", "/nowhere", "/nowhere/mpirun", PARAMS)
NEW = Library("openmpi", "5.0.11", "/nowhere", "/nowhere/mpirun")
SPACE = Space(
    "own",
    (
        Parameter("btl_vader_eager_limit", (4096, 8192)),
        Parameter(
            "coll_tuned_bcast_algorithm", (1, 2), implies={"coll_tuned_use_dynamic_rules": 1}
        ),
        Parameter("bind_to", ("core", "none"), "placement"),
    ),
)
SETTING = Setting(
    {"btl_vader_eager_limit": 8192, "coll_tuned_bcast_algorithm": 2, "bind_to": "none"}
)
GROUPS = SPACE.launched(SETTING)
HOLDING = [
    (fmt, library)
    for library in (OLD, NEW)
    for fmt in formats.ALL
    if fmt.family != "mpich" and fmt.part(Content(GROUPS), library).groups
]


def back(path: Path, library: Library = OLD) -> Setting:
    return read_settings([f"@{path}"], SPACE, library)[1][0]


@case_table(("fmt", "library"), HOLDING)
def test_every_published_format_is_read(
    fmt: formats.Format, library: Library, tmp_path: Path
) -> None:
    part = fmt.part(Content(GROUPS), library)
    path = tmp_path / "file"
    lines = "".join(f"{fmt.comment[0]}a = b{fmt.comment[1]}\n" for _ in "x") if fmt.comment else ""
    path.write_text(fmt.prologue + lines + fmt.render(part, library))
    held = {name for values in part.groups.values() for name in values}
    assert back(path, library) == Setting({n: v for n, v in SETTING.items() if n in held})


def test_the_file_of_a_search_is_read(tmp_path: Path) -> None:
    """Lists in values, and what the space implies beside what was searched."""
    path = tmp_path / "autotune-s-1234.conf"
    path.write_text(tune_text(GROUPS["mca"] | {}, ["autotune: default", "gain a = b"]))
    assert "--mca coll_tuned_use_dynamic_rules 1" in path.read_text()  # data
    assert back(path) == SETTING.without("bind_to")


@case_table(
    ("text", "values"),
    [
        ("btl = self,sm # why\n\n# x = y\n", {"btl": "self,sm"}),
        ("--mca btl self,sm\n-mca pml ob1\n", {"btl": "self,sm", "pml": "ob1"}),
        ("# a\n-genv I_MPI_PIN 0\n-env B c\n", {"I_MPI_PIN": 0, "B": "c"}),
        ("export OMPI_MCA_btl='self,sm'\n", {"OMPI_MCA_btl": "self,sm"}),
        ("eager = 8k\nyield = true\n", {"eager": 8192, "yield": 1}),
        ('{"recommended": {"setting": {"a": 1}}}', {"a": 1}),
        ('a = 1\nb = "x"\n', {"a": 1, "b": "x"}),
    ],
)
def test_what_people_write_is_read(text: str, values: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "mine.conf"
    path.write_text(text)
    assert read_setting_file(path) == values


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        ("a = 1\nb c d e\n", "setting.syntax", "line 2: 'b c d e'"),
        ("x = y\nx = z\n", "setting.conflict", "line 2: x "),
        ('{"a": {"b": 1}}', "parameter.value", "{'b': 1}"),
    ],
)
def test_what_is_no_setting_is_told_by_line(
    text: str, code: str, told: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.conf"
    path.write_text(text)
    with refused(UsageError, code) as caught:
        read_setting_file(path)
    assert told in str(caught.value)


@pytest.mark.parametrize("name", ["rules-v1", "rules-v2", "rules-v3", "mpich-json"])
def test_rules_are_no_setting(name: str, tmp_path: Path) -> None:
    fmt = formats.find(name)
    algorithm = "MPIR_Bcast_intra_binomial" if name == "mpich-json" else "2"
    path = tmp_path / "file"
    content = Content(rules=(Rule("bcast", 1, 0, algorithm),))
    path.write_text(fmt.prologue + fmt.render(content, NEW))
    with refused(UsageError, "setting.rules_file"):
        read_setting_file(path)


@case_table(
    ("line", "code"),
    [
        ("mca_base_component_path = /tmp", "parameter.refused"),
        ("plm_rsh_agent = x", "parameter.refused"),
        ("btl_vader_eager_limit = file:/etc/passwd", "parameter.value_refused"),
        ("nosuch_parameter = 3", "trust.parameter_unknown"),
        ("LD_PRELOAD = x", "parameter.refused"),
    ],
)
def test_what_a_file_must_not_name(line: str, code: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.conf"
    path.write_text(f"{line}\n")
    with refused(UsageError, code) as caught:
        back(path)
    assert line.split()[0] in str(caught.value)


def test_the_shipped_space_takes_a_file_of_its_own(tmp_path: Path) -> None:
    space = load_space("openmpi", OLD)
    path = tmp_path / "mine.conf"
    path.write_text("hwloc_base_binding_policy = none\nbtl_vader_eager_limit = 8192\n")
    wider, [setting] = read_settings([f"@{path}"], space, OLD)
    assert setting == Setting({"bind_to": "none", "btl_vader_eager_limit": 8192})
    assert wider == space
