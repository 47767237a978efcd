"""Attacks through published files and what else comes from outside: nothing of it is executed.

Every name has a canary: a real script that leaves a file when it is started.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from autotune.anova.classwide_result import RESULTS, ClasswideResult
from autotune.api.datasets import source_of
from autotune.api.predict import traced_on
from autotune.artifacts import content_id
from autotune.cli import main
from autotune.config.cluster import load_cluster
from autotune.datasets import load
from autotune.errors import AutotuneError, UsageError, WorkError
from autotune.prediction.parsing import settings as model_settings
from autotune.publish import formats
from autotune.publish.block import CLOSE
from autotune.publish.content import TABLES, Content, Evidence
from autotune.publish.formats import Format, find
from autotune.publish.formats.scripts import Script
from autotune.publish.header import Header, comment_out, seal
from autotune.publish.install import Text, load_text, put
from autotune.publish.plan import compose, series
from autotune.publish.probe import Prober
from autotune.publish.programs import EvidenceProgram, NotRun, program_of
from autotune.publish.published_text import Trust
from autotune.publish.recheck import Status
from autotune.publish.source import read_source
from autotune.publish.verify import cluster_of, look
from autotune.space import Parameter, Setting, Space
from autotune.space.outside_names import check_values, known_names, runs_programs
from autotune.store import Store
from autotune.study.trial_store import StoredTrials
from autotune.targets.setting_syntax import read_settings
from autotune.testing.format import evidence
from runner.mpi.library import Library
from tests.prediction.family import traced
from tests.publish.conftest import MakeStudy
from tests.refusals import refused
from tests.runner.others import shared

__all__ = ["shared"]

Capture = pytest.CaptureFixture[str]

PARAMETERS = (
    *(
        "plm_ssh_agent",
        "plm_rsh_agent",
        "orte_launch_agent",
        "prte_launch_agent",
        "orte_fork_agent",
    ),
    *("prte_fork_agent", "odls_base_exec_agent", "orte_base_user_debugger", "plm", "odls"),
    *("mca_base_component_path", "mca_component_path", "mca_base_param_files", "mca_param_files"),
    *("mca_base_param_file_path", "mca_base_param_file_prefix", "mca_base_override_param_file"),
    *("mca_base_envar_file_prefix", "mca_base_env_list", "mca_base_verbose"),
    *("mpi_show_mca_params_file", "orte_output_filename", "prte_output_filename"),
    *("opal_stacktrace_output", "pml_monitoring_filename", "hook_comm_method_fakefile"),
    *("coll_tuned_dynamic_rules_filename", "coll_han_dynamic_rules_filename"),
    *("shmem_mmap_backing_file_base_dir", "osc_sm_backing_directory", "prte_default_hostfile"),
    *("hwloc_base_topo_file", "orte_tmpdir_base", "orte_server_logfile"),
    *("OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent", "PMIX_MCA_mca_base_component_path"),
    *("MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE", "MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE"),
    *("MPIR_CVAR_CH4_POSIX_COLL_SELECTION_TUNING_JSON_FILE", "MPIR_CVAR_NAMESERV_FILE_PUBDIR"),
)
VARIABLES = (
    *("LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "PATH", "PYTHONPATH", "PYTHONSTARTUP"),
    *("PYTHONHOME", "BASH_ENV", "ENV", "HOME", "SHELL", "IFS", "GCONV_PATH", "LOCPATH", "TMP"),
    *("MALLOC_TRACE", "PERL5OPT", "RUBYOPT", "LUA_INIT", "TCLLIBPATH", "JAVA_TOOL_OPTIONS"),
    *("UCX_MODULE_DIR", "UCX_MODULES", "UCX_CONFIG_DIR", "UCX_LOG_FILE", "UCX_GDB_COMMAND"),
    *("FI_PROVIDER_PATH", "I_MPI_HYDRA_BOOTSTRAP_EXEC", "I_MPI_HYDRA_BOOTSTRAP", "I_MPI_GTOOL"),
    *("I_MPI_PMI_LIBRARY", "I_MPI_OFI_LIBRARY", "I_MPI_ROOT", "I_MPI_DEBUG_OUTPUT"),
    *("HYDRA_LAUNCHER_EXEC", "HYDRA_LAUNCHER", "HYDRA_BOOTSTRAP_EXEC", "HYDRA_CONFIG_FILE"),
    *("OMPI_MCA_orte_launch_agent", "PRTE_MCA_prte_launch_agent", "OPAL_PREFIX", "PMIX_PREFIX"),
    *("OMP_TOOL_LIBRARIES", "MPI4PY_LIBMPI", "NUMBA_CACHE_DIR", "CUDA_INJECTION64_PATH"),
    *("AUTOTUNE_STORE", "SLURM_CONF", "SSH_ASKPASS"),
)
HARMLESS = (
    *("btl_sm_eager_limit", "coll_tuned_bcast_algorithm", "coll_han_bcast_low_module"),
    *("OMP_PROC_BIND", "OMP_NUM_THREADS", "UCX_TLS", "FI_PROVIDER", "I_MPI_PIN_DOMAIN"),
    *("MPIR_CVAR_CH4_SHM_POSIX_EAGER", "I_MPI_ADJUST_ALLREDUCE", "btl_tcp_if_include", "smsc"),
)
READ_HERE = [fmt for fmt in formats.ALL if fmt.family in ("", "openmpi")]
"""Those of MPICH are refused under Open MPI before anything else."""
MPI = Library("openmpi", "5.0.11", "/nowhere", "/nowhere/mpirun")
LAUNCHED_AGENT = {"mca": {"plm_ssh_agent": "/bin/false"}}
EAGER = Content({"mca": {"btl_sm_eager_limit": "8192"}})
NOT_COMPARED: Status = "not compared"


@dataclasses.dataclass(frozen=True)
class Canary:
    """A program that leaves a mark."""

    program: Path
    mark: Path

    @property
    def sang(self) -> bool:
        return self.mark.exists()


@pytest.fixture
def canary(tmp_path: Path) -> Canary:
    program, mark = tmp_path / "canary.sh", tmp_path / "executed"
    program.write_text(f"#!/bin/sh\ntouch '{mark}'\n")
    program.chmod(0o755)
    return Canary(program, mark)


@pytest.fixture(scope="module")
def prober(open_mpi: Library) -> Iterator[Prober]:
    with Prober(open_mpi, load_cluster("local")) as found:
        yield found


def forged(
    path: Path,
    fmt: Format,
    content: Content,
    library: Library,
    line: str = "",
    seen: Evidence | None = None,
    cluster: str = "local",
) -> Path:
    """A file with a header and a checksum that are right, made without any of our checks."""
    header = Header(
        format=fmt.name,
        cluster=cluster,
        tool="0",
        date="2026-11-22 10:00 UTC",
        mpi=series(library),
        fingerprint="0" * 16,
        probe="seen",
        proven=True,
        backup=None,
        content=content,
        evidence=seen or evidence(),
    )
    body = fmt.body(content, library) + line
    if fmt.comment is None:
        whole = seal(comment_out(header.lines(), ("# ", "")) + body)
        put(path, Text(body, whole[: len(whole) - len(body)]))
        return path
    block = comment_out(header.lines(fmt.merges), fmt.comment) + body
    if fmt.merges:
        block += comment_out([CLOSE], fmt.comment)
    put(path, Text(seal(fmt.prologue + block)))
    return path


def test_a_forged_file_without_a_lie_is_an_honest_one(tmp_path: Path, open_mpi: Library) -> None:
    """What the other tests forge differs from a right file in nothing but the attack."""
    for fmt in (find("tune"), find("sh"), find("openmpi-user")):
        path = forged(tmp_path / f"f{fmt.suffix}", fmt, EAGER, open_mpi)
        text = path.read_text()
        header = Text(text).header
        assert header is not None
        assert compose(fmt, header, EAGER, "", open_mpi).main == text


@pytest.mark.mpi
@pytest.mark.parametrize("fmt", READ_HERE, ids=lambda fmt: fmt.name)
def test_a_line_too_much_is_named_and_not_executed(
    fmt: Format, tmp_path: Path, prober: Prober, canary: Canary
) -> None:
    library = prober.library
    part = fmt.part(Content({"mca": {"coll_tuned_bcast_algorithm": "6"}}), library)
    if not part.names:
        part = Content({"placement": {"bind_to": "none"}})
    words = {
        "tune": f"--mca plm_ssh_agent {canary.program}\n",
        "lmod": f'os.execute("{canary.program}")\n',
        "tcl": f"exec {canary.program}\n",
        "html": f'<pre id="settings">\n{canary.program}\n</pre>\n',
        "spack": f"# {canary.program}\n",
        "easybuild": f'import os; canary = os.system("{canary.program}")\n',
        "reframe": f'import os; canary = os.system("{canary.program}")\n',
    }
    line = words.get(fmt.name, f"{canary.program}\n")
    path = forged(tmp_path / f"f{fmt.suffix}", fmt, part, library, line)
    seen = look(path, prober)
    assert not canary.sang
    assert seen.in_force is False
    assert seen.refused
    assert "line " in seen.why
    assert "canary" in seen.why or fmt.name == "html"


@pytest.mark.mpi
def test_a_script_that_differs_inside_a_line_is_not_executed(
    tmp_path: Path, prober: Prober, canary: Canary
) -> None:
    path = forged(tmp_path / "f.sh", find("sh"), EAGER, prober.library)
    text = path.read_text()
    blank = text.replace("='8192'", f"='8192'; {canary.program}")
    path.write_text(_sealed_again(blank))
    seen = look(path, prober)
    assert not canary.sang
    assert (seen.refused, seen.code) == (True, "published.untrusted")
    assert re.search("column [0-9]+", seen.why)


def _sealed_again(text: str) -> str:
    return seal(re.sub(r"checksum: sha256:[0-9a-f]{64}", f"checksum: sha256:{'0' * 64}", text))


def test_no_shipped_parameter_is_refused() -> None:
    assert not [name for name in known_names() if runs_programs(name)]


@pytest.mark.parametrize("name", HARMLESS)
def test_parameters_of_how_mpi_behaves_are_no_programs(name: str) -> None:
    assert not runs_programs(name)


@pytest.fixture(scope="module")
def trust(tmp_path_factory: pytest.TempPathFactory, open_mpi: Library) -> Trust:
    """Even a space of the user's own that has all the names takes none of them from a file."""
    own = tmp_path_factory.mktemp("own") / "own.toml"
    tables = [f"[parameters.{name}]\nlevels = ['x']\n" for name in PARAMETERS]
    tables += [f"[parameters.{name}]\nlevels = ['x']\ntarget = 'env'\n" for name in VARIABLES]
    own.write_text("\n".join(tables))
    return Trust(open_mpi, known_names(open_mpi, [str(own)]))


@pytest.mark.mpi
@pytest.mark.parametrize("name", [*PARAMETERS, *VARIABLES])
def test_a_name_that_starts_something_is_refused_in_a_file(
    name: str, tmp_path: Path, trust: Trust, canary: Canary
) -> None:
    group = "env" if name in VARIABLES else "mca"
    content = EAGER.with_value(group, name, str(canary.program))
    path = forged(tmp_path / "f.sh", find("sh"), content, trust.library)
    text = load_text(path)
    assert text is not None
    assert text.header is not None
    code = "published.untrusted" if name in TABLES else "parameter.refused"
    with refused(UsageError, code) as refusal:
        trust.check(path, text, text.header)
    assert not canary.sang
    assert name in str(refusal.value)


@pytest.mark.parametrize("name", [*PARAMETERS, *VARIABLES])
def test_a_name_that_starts_something_is_refused_in_a_setting(name: str, canary: Canary) -> None:
    for value in (str(canary.program), "1", 1):
        with refused(UsageError, "parameter.refused"):
            check_values({name: value}, "study:abc")
    with pytest.raises(UsageError, match=name):
        formats.find("sh").render(Content({"env": {name: "1"}}), _plain())
    assert not canary.sang


def _plain() -> Library:
    return Library("openmpi", "5.0.11", "/x/bin", "/x/bin/mpirun")


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        (Content({"mca": {"unheard_of": "1"}}), "trust.parameter_unknown", "unheard_of"),
        (
            Content({"env": {"btl_sm_eager_limit": "1"}}),
            "trust.parameter_unknown",
            "btl_sm_eager_limit",
        ),
        (Content({"mca": {"btl_sm_eager_limit": "/etc/x"}}), "parameter.value_refused", "'/etc/x'"),
        (
            Content({"placement": {"map_by": "rankfile:file=x"}}),
            "parameter.value_refused",
            "'rankfile:file=x'",
        ),
        (Content({"mca": {"btl_sm_eager_limit": "1;x"}}), "parameter.value_refused", "1;x"),
        (Content({"arg": {"variant": "mpi"}}), "published.untrusted", " arg;"),
    ],
)
def test_other_values_of_a_file_are_refused_too(
    content: Content, code: str, said: str, tmp_path: Path, prober: Prober
) -> None:
    path = forged(tmp_path / "f.tune", find("tune"), content, prober.library)
    seen = look(path, prober)
    assert (seen.refused, seen.code) == (True, code)
    assert said in seen.why


@pytest.mark.mpi
def test_a_table_of_rules_is_taken_only_where_autotune_wrote_it(
    tmp_path: Path, prober: Prober
) -> None:
    library, rules = prober.library, tmp_path / "r.rules"
    values = {"coll_tuned_use_dynamic_rules": "1", "coll_tuned_dynamic_rules_filename": str(rules)}
    conf = forged(tmp_path / "f.tune", find("tune"), Content({"mca": values}), library)
    rules.write_text("1\n7\n1\n1\n1\n0 6 0 0\n")
    seen = look(conf, prober)
    assert seen.refused
    assert seen.code == "published.untrusted"
    assert f"{rules} " in seen.why
    table = find("rules-v1").part(Content({"mca": {"coll_tuned_bcast_algorithm": "6"}}), library)
    forged(rules, find("rules-v1"), table, library, line="1 1\n")
    assert "line " in look(conf, prober).why
    forged(rules, find("rules-v1"), table, library)
    assert look(conf, prober).in_force is True


@pytest.mark.parametrize("name", ["evil.toml", "./evil.toml"])
def test_a_file_cannot_name_the_path_of_a_cluster(name: str, work: Path, canary: Canary) -> None:
    (work / "evil.toml").write_text(
        f"name = 'local'\n[[launch]]\noptions = ['--mca', 'plm_ssh_agent', '{canary.program}']\n"
    )
    path = forged(work / "f.tune", find("tune"), EAGER, _plain(), cluster=name)
    with refused(WorkError, "published.damaged") as refusal:
        _ = Text(path.read_text()).header
    assert repr(name) in str(refusal.value)
    assert not canary.sang


def test_a_file_cannot_name_a_cluster_that_is_not_known_here(work: Path) -> None:
    path = forged(work / "f.tune", find("tune"), EAGER, _plain(), cluster="elsewhere")
    header = Text(path.read_text()).header
    assert header is not None
    with refused(UsageError, "trust.name_unknown"):
        cluster_of(header, path)


@pytest.mark.mpi
@pytest.mark.usefixtures("home")
def test_lines_of_others_in_a_file_elsewhere_are_never_loaded(
    work: Path, make_study: MakeStudy, open_mpi: Library, capfd: Capture
) -> None:
    """With them the launches of the probe would not even start."""
    foreign = "pml = no-such-component\n"
    (work / "site.conf").write_text(foreign)
    source = make_study({"mca": {"btl_sm_eager_limit": "8192"}}, version=open_mpi.version)
    words = ["publish", "--from", source, "-f", "openmpi-user", "-o", "site.conf"]
    assert main(words) == 0, capfd.readouterr().err
    assert (work / "site.conf").read_text().startswith(foreign)
    capfd.readouterr()
    assert main(["verify-published", "site.conf", "--no-compare", "--json", "-"]) == 1
    (file,) = json.loads(capfd.readouterr().out)["files"]
    assert file["code"] == "publish.not_obeyed"
    assert "/.openmpi/mca-params.conf" in file["why"]


@pytest.mark.mpi
def test_a_line_too_much_in_the_block_of_a_live_file_is_told(
    tmp_path: Path, home: Path, prober: Prober, canary: Canary
) -> None:
    """Lines of the site outside the block are read by the library anyway, and stay."""
    fmt, path = find("openmpi-user"), home / ".openmpi" / "mca-params.conf"
    path.parent.mkdir()
    line = f"mca_base_component_path = {canary.program}\n"
    forged(path, fmt, EAGER, prober.library, line)
    seen = look(path, prober)
    assert seen.refused
    assert "mca_base_component_path" in seen.why
    forged(path, fmt, EAGER, prober.library)
    path.write_text(_sealed_again("btl_tcp_links = 1\n" + path.read_text()))
    assert look(path, prober).in_force is True


# What comes from a database, a dataset, a model, a result.


@pytest.mark.parametrize("name", ["plm_ssh_agent", "LD_PRELOAD", "mca_base_component_path"])
@pytest.mark.parametrize("entry", ["publish", "study", "file", "trial", "model", "classwide"])
def test_a_name_that_starts_something_is_refused_at_every_entry(
    entry: str, name: str, tmp_path: Path, store: Path, make_study: MakeStudy, canary: Canary
) -> None:
    """The space of the command line has the parameter: even then no other place gives its value."""
    value = str(canary.program)
    space = Space("own", (Parameter(name, ("a", "b")),))
    with pytest.raises(ValueError if entry == "model" else AutotuneError, match=name) as refusal:
        _take(entry, Setting({name: value}), space, tmp_path, store, make_study)
    code = {"trial": "study.damaged", "model": None}.get(entry, "parameter.refused")
    assert getattr(refusal.value, "code", None) == code
    assert not canary.sang


def _take(
    entry: str, setting: Setting, space: Space, place: Path, store: Path, make_study: MakeStudy
) -> None:
    """Read the setting as each entry does."""
    values = {name: str(value) for name, value in setting.items()}
    with Store.open(store) as opened:
        if entry == "publish":
            read_source(make_study({"mca": values}), load_cluster("local"), _plain(), opened)
        elif entry == "study":
            read_settings([make_study({"mca": values})], space, MPI, opened)
        elif entry == "file":
            (place / "s.json").write_text(json.dumps(values))
            read_settings([f"@{place}/s.json"], space, MPI)
        elif entry == "trial":
            make_study({"mca": values})
            study = opened.find_study(opened.studies()[0].hash)
            opened.add_trial(study.id, setting.to_json(), setting.key, {}, origin="search")
            StoredTrials(opened, study, space).load()
        elif entry == "model":
            model_settings({"settings": [values]}, "settings")
        else:
            RESULTS.from_json(_classwide(values), "result")


def _classwide(setting: dict[str, str], space: str = "openmpi") -> dict[str, object]:
    made = ClasswideResult(
        status="recommended",
        setting=Setting(setting),
        cluster="local",
        machine="0" * 16,
        mpi={"name": "openmpi", "version": "5.0.11"},
        space=space,
        date="2026-11-22",
        method="direct",
        source="toy",
        gain=0.1,
        lo=0.05,
        hi=0.15,
    )
    data = {k: v for k, v in made.to_json().items() if k != "id"}
    return {**data, "id": content_id(data)}


def test_levels_of_the_own_space_are_taken_from_the_database(store: Path) -> None:
    """They come from this command line's space, whatever they are."""
    space = Space("own", (Parameter("input_file", ("data/a", "data/b"), "arg"),))
    check_values({"input_file": "data/a"}, "trial 1", space)
    with refused(UsageError, "parameter.refused"):
        check_values({"input_file": "/etc/passwd"}, "trial 1", space)


def test_a_result_cannot_name_the_path_of_a_space(
    work: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(work / "data"))
    (work / "evil.toml").write_text("[parameters.x]\nlevels = [1]\nimplies = { plm = 'x' }\n")
    data = _classwide({"x": "1"}, "./evil.toml")
    RESULTS.folder.mkdir(parents=True)
    (RESULTS.folder / f"{data['id']}.json").write_text(json.dumps(data))
    with refused(AutotuneError, "artifact.damaged") as refusal, Store.open(store) as s:
        read_source(f"classwide:{data['id']}", load_cluster("local"), _plain(), s)
    assert "'./evil.toml'" in str(refusal.value)


DATASET = Path(__file__).parents[2] / "datasets" / "explore-testbed-xeon"


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """A copy of a shipped dataset without its runs."""
    folder = tmp_path / "toy"
    for name in ("card.toml", "settings/all.json", "spaces/tb-cg-S-2.toml"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(DATASET / name, folder / name)
    return folder


def test_a_dataset_brings_no_program_with_its_settings_or_space(
    dataset: Path, canary: Canary
) -> None:
    loaded = load(dataset)
    assert len(loaded.settings("tb-cg-S-2")) > 1
    assert len(loaded.space("tb-cg-S-2")) > 1
    settings = dataset / "settings" / "all.json"
    settings.write_text(json.dumps([{}, {"plm_ssh_agent": str(canary.program)}]))
    with refused(UsageError, "parameter.refused"):
        load(dataset).settings("tb-cg-S-2")
    space = dataset / "spaces" / "tb-cg-S-2.toml"
    honest = space.read_text()
    for words in (
        f"[parameters.LD_PRELOAD]\ntarget = 'env'\nlevels = ['{canary.program}']\n",
        f"[parameters.x]\nlevels = [1]\nimplies = {{ plm_ssh_agent = '{canary.program}' }}\n",
    ):
        space.write_text(f"{honest}\n{words}")
        with refused(UsageError, "parameter.refused"):
            load(dataset).space("tb-cg-S-2")
    assert not canary.sang


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('app = "nas-cg"', 'app = "./evil.toml"', "cells.1.app"),
        ('input = "S"', 'input = "S"\nargs = ["--output", "/tmp/x"]', "/tmp/x"),
    ],
)
def test_a_dataset_names_no_program_and_no_file_of_one(
    old: str, new: str, said: str, work: Path, dataset: Path, canary: Canary, capfd: Capture
) -> None:
    shutil.copytree(DATASET / "shards", dataset / "shards")
    shutil.copytree(DATASET / "spaces", dataset / "spaces", dirs_exist_ok=True)
    card = dataset / "card.toml"
    assert old in card.read_text()
    card.write_text(card.read_text().replace(old, new))
    (work / "evil.toml").write_text(f"name = 'x'\ncommand = ['{canary.program}']\n")
    assert main(["classwide", str(dataset)]) == 2
    assert said in capfd.readouterr().err
    assert not canary.sang


def test_features_name_no_path_of_a_cluster(work: Path) -> None:
    (work / "evil.toml").write_text("name = 'testbed'\n")
    features = traced(150.0)
    assert traced_on(features) == "local"
    assert traced_on(dataclasses.replace(features, cluster="evil.toml")) == "local"
    assert traced_on(dataclasses.replace(features, cluster="testbed")) == "testbed"


def test_a_study_names_no_path_of_a_cluster_or_space(
    work: Path, store: Path, make_study: MakeStudy
) -> None:
    (work / "evil.toml").write_text("name = 'local'\n")
    make_study(cluster="evil.toml")
    make_study(space_name="./evil.toml", seed=1)
    with Store.open(store) as opened:
        for study in opened.studies():
            with refused(UsageError, "trust.name_unknown"):
                source_of(opened.find_study(study.hash), None)


# Programs of the evidence.


def _recorded(canary: Canary) -> Evidence:
    check = {
        "app": "unheard-of",
        "input": None,
        "ranks": 1,
        "program": [str(canary.program), "--fast"],
        "metric": None,
        "verify": None,
    }
    return evidence(check=(check,), gain=0.1)


@pytest.mark.mpi
def test_programs_of_a_file_run_only_where_it_is_said(
    tmp_path: Path, home: Path, store: Path, open_mpi: Library, canary: Canary, capfd: Capture
) -> None:
    path = forged(tmp_path / "f.tune", find("tune"), EAGER, open_mpi, seen=_recorded(canary))
    assert main(["verify-published", str(path), "--json", "-", "--no-guard"]) == 0
    seen = json.loads(capfd.readouterr().out)
    (one,) = seen["comparisons"]
    assert not canary.sang
    assert one["status"] == NOT_COMPARED
    assert one["still_better"] is None
    assert one["would_run"] == [str(canary.program), "--fast"]
    assert "--run-recorded" in one["words"]
    # It is no MPI program, so that the comparison fails; but it was started.
    assert main(["verify-published", str(path), "--run-recorded", "--no-guard"]) == 1
    assert canary.sang


MICRO = ["-m", "runner.programs.micro", "allreduce", "--size", "8,64", "--count", "40"]


@pytest.mark.parametrize(
    "words",
    [
        MICRO,
        ["-P", *MICRO],
        ["-P", "-P", *MICRO],
        ["-c", "x", *MICRO[2:]],
        ["-m", "evil", *MICRO[2:]],
        [*MICRO[:4], "8,x", *MICRO[5:]],
        [*MICRO[:4], str(1 << 40), *MICRO[5:]],
        [*MICRO, "--figure", "x"],
    ],
)
def test_the_probe_of_collectives_is_known_by_its_words(words: list[str], canary: Canary) -> None:
    check = {"app": "micro allreduce", "input": None, "ranks": 2}
    check["program"] = [str(canary.program), *words]
    found = program_of(check, load_cluster("local"), _plain(), "here", run_recorded=False)
    if words in (MICRO, ["-P", *MICRO]):
        assert isinstance(found, EvidenceProgram)
        # This Python, not the program that the file names; as many calls as for these sizes.
        assert found.target.program[0] == sys.executable
        assert found.target.program[1:7] == (
            "-P",
            "-m",
            "runner.programs.micro",
            "allreduce",
            "--size",
            "8,64",
        )
    else:
        assert isinstance(found, NotRun)


@pytest.mark.parametrize(
    "change", [{"app": 1}, {"input": ["x"]}, {"ranks": "2"}, {"program": "x"}, {"verify": 3}]
)
def test_damaged_evidence_is_said(change: dict[str, object]) -> None:
    check = {"app": "nas-cg", "input": None, "ranks": 2} | change
    with refused(UsageError, "published.program_unknown"):
        program_of(check, load_cluster("local"), _plain(), "here", run_recorded=True)


@pytest.mark.mpi
def test_the_database_names_no_program_and_no_value(
    tmp_path: Path,
    home: Path,
    store: Path,
    make_study: MakeStudy,
    open_mpi: Library,
    canary: Canary,
    capfd: Capture,
) -> None:
    """Whoever writes the database cannot change what is compared: the file says it."""
    source = make_study(LAUNCHED_AGENT | {"env": {"LD_PRELOAD": str(canary.program)}})
    path = forged(tmp_path / "f.tune", find("tune"), EAGER, open_mpi, seen=evidence(source=source))
    assert main(["verify-published", str(path), "--json", "-"]) == 0
    assert not canary.sang
    assert json.loads(capfd.readouterr().out)["files"][0]["in_force"] is True
    assert main(["publish", "--from", source, "-f", "sh", "--force"]) == 2
    assert "refused" in capfd.readouterr().err


# A cron job of root.


@pytest.fixture
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's own files count as root's: the rest is what others may do."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)


@pytest.mark.mpi
@pytest.mark.parametrize("what", ["file", "folder", "link"])
@pytest.mark.usefixtures("as_root")
def test_root_executes_nothing_that_others_may_write(
    what: str, shared: Path, prober: Prober
) -> None:
    folder = shared / "place"
    folder.mkdir()
    path = forged(folder / "f.sh", find("sh"), EAGER, prober.library)
    assert look(path, prober).in_force is True
    if what == "file":
        path.chmod(0o666)
    elif what == "folder":
        folder.chmod(0o777)
    else:
        (shared / "open").mkdir(mode=0o777)
        (shared / "open").chmod(0o777)
        (shared / "open" / "f.sh").symlink_to(path)
        path = shared / "open" / "f.sh"
    seen = look(path, prober)
    assert (seen.refused, seen.code) == (True, "publish.root")
    assert f"{path.parent if what != 'file' else path} " in seen.why
    if what == "folder":
        folder.chmod(0o1777)
        assert look(path, prober).in_force is True


@pytest.mark.mpi
@pytest.mark.usefixtures("as_root")
def test_root_executes_nothing_of_another_user(
    tmp_path: Path, prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = forged(tmp_path / "f.sh", find("sh"), EAGER, prober.library)
    if os.getuid() == 0:
        os.chown(path, 65534, 65534)
    else:
        monkeypatch.setattr(os, "getuid", lambda: 0)
    seen = look(path, prober)
    assert (seen.refused, seen.code) == (True, "publish.root")
    assert f"user {path.stat().st_uid}" in seen.why


@pytest.mark.usefixtures("as_root")
def test_root_runs_no_program_of_a_configuration_that_others_may_write(
    work: Path, canary: Canary
) -> None:
    app = work / "configs" / "apps" / "own.toml"
    app.parent.mkdir(parents=True)
    app.write_text(f"name = 'own'\ncommand = ['{canary.program}']\n")
    check = {"app": "own", "input": None, "ranks": 1}
    found = program_of(check, load_cluster("local"), _plain(), "here", run_recorded=False)
    assert isinstance(found, EvidenceProgram)
    app.chmod(0o666)
    with refused(UsageError, "publish.root"):
        program_of(check, load_cluster("local"), _plain(), "here", run_recorded=False)


def test_scripts_are_what_the_list_of_formats_says() -> None:
    """The attack on a line covers every format that is run by an interpreter."""
    assert {fmt.name for fmt in formats.ALL if isinstance(fmt, Script)} == {
        *("sh", "csh", "lmod", "tcl", "slurm", "spack", "html", "mpich-env", "impi-env"),
        *("easybuild", "reframe"),
    }
