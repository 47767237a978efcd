"""Everything that reads what others wrote, with a valid document to begin from.

A parser takes text and may refuse it with the errors it promises; anything else is a defect.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from autotune.anova.classwide_result import RESULTS, ClasswideResult
from autotune.cli.testbed_commands import parse_latency, parse_rate
from autotune.collective_rules import Rule
from autotune.collectives.algorithm_tables import TABLES, CollectiveResult, TablePart
from autotune.collectives.table_proof import SizeEvidence
from autotune.config.app import App
from autotune.config.cluster import Cluster
from autotune.config.find import ConfigFile, find_config
from autotune.config.validated import read_toml
from autotune.datasets.card import read_card
from autotune.datasets.plan import ExplorationPlan
from autotune.errors import AutotuneError
from autotune.prediction.model_file import model_from_text
from autotune.prediction.scorer import model_values
from autotune.publish.formats.mca_conf import UserConf
from autotune.publish.formats.scripts import Sh
from autotune.publish.header import read_header
from autotune.space import Setting
from autotune.space.definition import parse_version as parse_version
from autotune.space.definition import read_definition
from autotune.space.expression import parse_expression as parse_expression
from autotune.space.parameter import parse_levels, read_template
from autotune.space.resolve import resolve
from autotune.targets.figures import figures
from autotune.targets.launcher_line import parse_launcher_line as parse_line
from autotune.testing.format import evidence, rendered_text
from autotune.wording import parse_duration
from runner.cpus import parse_cpus
from runner.errors import RunnerError
from runner.figure.metric import metric_of
from runner.message_sizes import sizes
from runner.mpi.intel_info import parse as parse_impi_info
from runner.mpi.intel_info import words_of
from runner.mpi.intel_startup import parse_startup
from runner.mpi.mpiexec_conf import variables_in
from runner.mpi.openmpi.parameters import parse_ompi_info as parse_ompi_info
from runner.mpi.openmpi.parameters import read_parameter_file
from runner.mpi.openmpi.shown import parse_run_values
from runner.mpi.openmpi.ucx import (
    parse_ucx_log,
    ucx_complaint,
    ucx_logs,
    ucx_protocols,
    ucx_variables,
)
from runner.mpi.openmpi.windows import components_of
from runner.outcome.failure_message import LONGEST, failure_message, telling_lines
from runner.runtimes.mate.config import read_rank_map
from runner.runtimes.mate.graph import parse_dependency
from runner.runtimes.mate.translate import translate
from runner.runtimes.mate.translate.pragmas import read as read_pragma
from runner.supervise.output import LineScanner
from runner.threads import MARK, read_back_threads, teams_of
from runner.trace.counts import parse_counts as parse_counts
from runner.trace.document import load_features
from runner.types import LaunchSpec, ReadBack
from runner.variables import MARK as VARIABLE_MARK
from runner.variables import reports_of
from tests.fuzz import outside
from tests.fuzz.damage import damaged
from tests.fuzz.values import damaged_json, damaged_within
from tests.mate.translate.test_compiled import SEED
from tests.prediction.family import SETTINGS, traced
from tests.prediction.test_model_file import texts
from tests.runner.test_intel import REFUSED, TO_OFI
from tests.runner.test_openmpi_protocols import TABLES as UCX_TABLES
from tests.runner.test_openmpi_ucx import LOG as UCX_LOG
from tests.runner.test_openmpi_windows import SAID
from tests.space.libraries import CLUSTER, NEW
from tests.trace.test_counts import text as counts_text
from tests.trace.test_profile import PROFILE

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "runner" / "data"


Damage = Callable[[Sequence[str], int], str]


@dataclass(frozen=True)
class Parser:
    """``documents``: valid ones, or a function that makes them; ``promised``: what it may raise;
    ``damage``: how its documents are spoilt; ``tries``: how many in the everyday tests."""

    read: Callable[[str], object]
    documents: tuple[str, ...] | Callable[[], tuple[str, ...]]
    promised: tuple[type[Exception], ...] = (AutotuneError,)
    damage: Damage = damaged
    tries: int = 40

    @property
    def seeds(self) -> tuple[str, ...]:
        """Valid documents."""
        return self.documents() if callable(self.documents) else self.documents


def _space(text: str) -> object:
    definition = read_definition(ConfigFile("fuzzed", "fuzzed.toml", text))
    space = resolve(definition, "fuzzed", "fuzzed.toml", NEW, dict(CLUSTER))
    return list(zip(range(20), space.enumerate(), strict=False))


def _file(read: Callable[[Path], object], name: str = "document") -> Callable[[str], object]:
    """What is read from a file; text that is no UTF-8 is among it."""

    def parse(text: str) -> object:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            path.write_bytes(text.encode("utf-8", "surrogateescape"))
            return read(path)

    return parse


def _model(text: str) -> object:
    model = model_from_text(text, "x")
    return model.predictor.name(model_values(traced(500.0)), SETTINGS)


def _header(text: str) -> object:
    """Read, and used as ``unpublish`` and ``published`` use it."""
    header = read_header(text)
    return header and (header.lines(), header.content.names, Path(header.backup or "x").name)


def _teams(text: str) -> object:
    teams = teams_of(text.splitlines())
    asked = LaunchSpec(("p",), 2, threads=2, variables={"OMP_PROC_BIND": "close"})
    return read_back_threads(asked, teams)


def _impi_info(text: str) -> object:
    """The variables of Intel MPI, and the words that each takes."""
    return [words_of(info) for info in parse_impi_info(text).values()]


def _intel_startup(text: str) -> object:
    """What Intel MPI says while it starts, and what it makes of some values."""
    startup = parse_startup(text)
    asked = {"I_MPI_ADJUST_BCAST": "99", "I_MPI_SHM": "icx", "FI_PROVIDER": "^a,b", "I_MPI_X": "-9"}
    return [startup.judge(n, ReadBack("in force", v, v), None) for n, v in asked.items()]


def _ucx(text: str) -> object:
    """UCX's log as a file and on standard error, and what is said of variables by it."""
    asked = {"UCX_TLS": "self,sysv,cma", "UCX_RNDV_THRESH": "4k"}
    logs = ucx_logs(Path("/nonexistent"), text.splitlines())
    for one in ([text], logs):
        log = parse_ucx_log(one)
        ucx_variables(asked, log, carries=True)
        ucx_protocols(log)
    return ucx_complaint([text])


def _output(text: str) -> object:
    """What a program printed: its figure by a pattern and by its last JSON line."""
    found = []
    for metric in (r"time ([0-9.e+-]+)", "json:solver_s"):
        scanner = LineScanner({"metric": metric, "verify": "ok"})
        scanner.add(text.encode("utf-8", "surrogateescape"))
        scanner.close()
        result: Any = SimpleNamespace(matches=scanner.matches, json_line=scanner.json_line)
        found.append(metric_of(LaunchSpec(program=("x",), ranks=1, metric=metric), result))
    return found


def _complaint(text: str) -> object:
    """What a program that failed printed, on either stream."""
    found = [
        failure_message(text),
        failure_message("", text),
        telling_lines(text),
        telling_lines("", text),
    ]
    shown = figures(text)
    assert all(re.search(one.metric, one.line) for one in shown)
    assert all(len(words.words) <= LONGEST for words in found[:2])
    return found, shown


def _config(kind: str, name: str) -> str:
    return find_config(kind, name).text


COMPLAINTS = tuple(
    row["stderr"]
    for row in json.loads((ROOT / "tests" / "runner" / "data" / "complaints.json").read_text())[::9]
)
FEATURES = json.dumps(traced(150.0).to_json())
PROFILED = json.dumps(dataclasses.replace(traced(150.0), profile=PROFILE, figure_s=1.0).to_json())
CLASSWIDE = json.dumps(
    ClasswideResult(
        "keep_default", Setting({}), "local", "m", {"name": "openmpi", "version": "5.0.8"},
        "openmpi", "2026-11-21", "default", "dataset x",
    ).to_json()
)  # fmt: skip
COLLECTIVES = json.dumps(
    CollectiveResult(
        "local", "m", {"name": "openmpi", "version": "5.0.11"}, "2026-11-21",
        (TablePart(
            "allreduce", 2, (Rule("allreduce", 2, 0, "0"), Rule("allreduce", 2, 64, "3", 2, 8192)),
            (SizeEvidence(4096, "ring", 0.1, 0.05, 0.2, "faster", False),), 40, 200, 12, ("osu",),
        ),), {"allreduce": {"3": "recursive_doubling"}},
    ).to_json()
)  # fmt: skip
RENEWED = {
    "mpi_version": "5.0.11",
    "mpi_bin": "/opt/bin",
    "date": "2026-11-23",
    "words": ["jacobi3d on 2 ranks: +8.0 % in 12 pairs"],
}
CARD = (
    'schema = 1\nname = "d"\nkind = "grid"\n[machine]\nfingerprint = "f"\ncores = 2\n'
    '[[cells]]\nkey = "c"\napp = "a"\nranks = 2\nfacts = { cores = 2 }\n'
)
OUTPUT = 'started\n{"solver_s": 1.5, "verified": true}\ntime 1.5\nok\n'
PARSERS: dict[str, Parser] = {
    "space": Parser(_space, tuple(_config("spaces", n) for n in ("openmpi-tcp", "mate", "null"))),
    "expression": Parser(
        parse_expression, ("ranks <= cores and not set(a) or b in (1, 64k)", "1 < a * 2 % 3 < 5")
    ),
    "levels": Parser(parse_levels, ("1k:64k:*2", "0:100:+25", "bool", "2:5")),
    "setting": Parser(Setting.parse, ('a=1,b="x,y",c=64k', "default", "map_by=node")),
    "duration": Parser(parse_duration, ("90s", "10m", "1.5h")),
    "app": Parser(lambda t: read_toml(t, "app.toml", App), (_config("apps", "jacobi3d"),)),
    "cluster": Parser(
        lambda t: read_toml(t, "c.toml", Cluster),
        tuple(_config("clusters", n) for n in ("local", "testbed")),
    ),
    "plan": Parser(
        lambda t: read_toml(t, "p.toml", ExplorationPlan), (_config("plans", "grid-node"),)
    ),
    "ompi_info": Parser(
        parse_ompi_info, ((DATA / "ompi_info_5.0.11.txt").read_text()[:6000],), (RunnerError,)
    ),
    "impi_info": Parser(_impi_info, ((DATA / "impi_info_2021.18.1_usual.txt").read_text(),), ()),
    "Intel MPI's start": Parser(_intel_startup, (REFUSED, TO_OFI), ()),
    "mpiexec.conf": Parser(_file(variables_in), ("# x\n-genv A 1\n-n 2\n",), ()),
    "shown": Parser(
        parse_run_values, ("#\nbtl_sm_eager_limit=4096 (default)\nmpi_x=1 (environment)\n",), ()
    ),
    "UCX log": Parser(_ucx, (UCX_LOG + UCX_TABLES,), ()),
    "variables of ranks": Parser(
        lambda t: reports_of(t.splitlines()),
        (f"{VARIABLE_MARK} 0 A=x y end\n{VARIABLE_MARK} 1 A end\n",),
        (),
    ),
    "windows": Parser(lambda t: components_of(t.splitlines()), ("\n".join(SAID),), ()),
    "features": Parser(_file(load_features), (FEATURES, PROFILED), (RunnerError,), damaged_json),
    "counts": Parser(_file(parse_counts, "rank-0"), (counts_text(),), (RunnerError,)),
    "class-wide result": Parser(_file(RESULTS.read), (CLASSWIDE,), damage=damaged_json),
    "collectives": Parser(_file(TABLES.read), (COLLECTIVES,), damage=damaged_json),
    "model": Parser(_model, texts, damage=damaged_json),
    "published header": Parser(
        _header,
        (
            rendered_text(UserConf(), Path("/x/params.conf")).whole,
            rendered_text(Sh(), Path("/x/f.sh"), evidence(renewed=RENEWED)).whole,
        ),
        damage=partial(damaged_within, "data: ", "\n"),
    ),
    "card": Parser(_file(lambda path: read_card(path.parent), "card.toml"), (CARD,)),
    "threads": Parser(_teams, (f"{MARK} node1 4711 1 0 2 0-1\n{MARK} node1 4711 1 1 2 2,3\n",), ()),
    "output": Parser(_output, (OUTPUT,), ()),
    "complaint": Parser(_complaint, COMPLAINTS, ()),
    "parameter file": Parser(_file(read_parameter_file), ("# x\na = 1\nb=2\n",), ()),
    "rank map": Parser(_file(read_rank_map), ("[[0, 1, 2], [3]]",), (RunnerError,), damaged_json),
    "cpus": Parser(parse_cpus, ("0-1,4", "0"), (ValueError,)),
    "dependency": Parser(parse_dependency, ("compute*@", "a"), (RunnerError,)),
    "library": Parser(parse_version, ("openmpi>=4.1,<5", "mpich")),
    "template": Parser(read_template, ("--block {block} 'a b'",)),
    "latency": Parser(parse_latency, ("100us", "1.5ms", "0")),
    "rate": Parser(parse_rate, ("1gbit", "1.5mbit", "unlimited")),
    "launcher line": Parser(
        lambda t: parse_line(tuple(t.split())), ("mpirun -n 4 --map-by node ./a b",)
    ),
    "sizes": Parser(sizes, ("8,4k,1m", "8:1m"), (argparse.ArgumentTypeError,)),
    "pragma": Parser(
        read_pragma,
        ("#pragma mate graph", "# pragma mate region(a) depends(b*, c@)"),
        (ValueError,),
    ),
    "worker request": Parser(outside.worker_request, (outside.REQUESTS,), damage=damaged_json),
    "key file": Parser(outside.key_file, ("0123456789abcdef" * 4 + "\n",)),
    "trust file": Parser(outside.trust_file, (outside.TRUST,)),
    "study row": Parser(outside.study_row, (outside.STUDY_ROW,), damage=damaged_json, tries=80),
    "trial row": Parser(outside.trial_row, (outside.TRIAL_ROW,), damage=damaged_json, tries=80),
    "published list": Parser(
        outside.published_list, ('["/etc/x.conf", "/home/me/y"]',), damage=damaged_json
    ),
    "testbed record": Parser(
        outside.testbed_record, (outside.TESTBED,), (RunnerError,), damaged_json
    ),
    "database url": Parser(
        outside.database_url, ("r.db", "sqlite:////tmp/r.db", "postgresql://me:x@h:5432/d?a=b")
    ),
    "settings list": Parser(outside.settings_list, (outside.SETTINGS,), damage=damaged_json),
    "setting file": Parser(
        outside.setting_file, ('{"a": 1, "b": "x"}', "a = 1\nb = 2\n", "--mca a 1\nb=2 # c\n")
    ),
    "shard": Parser(outside.shard, (outside.shard_text(),)),
    "dataset folder": Parser(
        outside.dataset_folder, (outside.HARMLESS,), damage=outside.damaged_steps, tries=25
    ),
    "annotated program": Parser(
        # A program is read as UTF-8: what is none does not get so far.
        lambda t: translate(t.encode("utf-8", "replace").decode()),
        ((ROOT / "runner/programs/apps/jacobi3d/annotated.py").read_text(), SEED),
        (RunnerError,),
        tries=5,
    ),
}
