"""The tables and views of the database; docs/reference/database.md explains them.

The schema uses only types and constraints that SQLite and PostgreSQL share. Lists and dictionaries
are JSON in text columns. Long text is never indexed (PostgreSQL limits an index entry to 2.7 kB),
so settings are found by the hash of their key. Times are ISO 8601 in UTC, except ``started_at``
(seconds since the epoch).

The views are for people who read the database with plain SQL.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
)

from autotune.store.dialect import Dialect

SCHEMA_VERSION = 1
PRODUCT = "mpi-autotune"

metadata = MetaData()

meta = Table(
    "meta",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)

machine = Table(
    "machine",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("hash", String(64), nullable=False, unique=True),
    Column("cores", Integer, nullable=False),
    Column("cpu_model", Text, nullable=False),
    Column("memory_bytes", BigInteger, nullable=False),
    Column("kernel", Text, nullable=False),
    Column("hostname", Text, nullable=False),
)

mpi = Table(
    "mpi",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("hash", String(64), nullable=False, unique=True),
    Column("family", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("path", Text, nullable=False),
    Column("library_hash", Text, nullable=False),
)

app = Table(
    "app",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("hash", String(64), nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("program", Text, nullable=False),
    Column("program_hash", Text, nullable=False),
    Column("argv", Text, nullable=False),  # JSON list
    Column("input", Text),
    Column("metric", Text),
    Column("verify", Text),
)

study = Table(
    "study",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("hash", String(64), nullable=False, unique=True),
    Column("context_hash", String(64), nullable=False),
    Column("app_id", Integer, ForeignKey("app.id"), nullable=False),
    Column("machine_id", Integer, ForeignKey("machine.id"), nullable=False),
    Column("mpi_id", Integer, ForeignKey("mpi.id"), nullable=False),
    Column("ranks", Integer, nullable=False),
    Column("cluster", Text, nullable=False),
    Column("cluster_hash", Text, nullable=False),
    Column("space_name", Text, nullable=False),
    Column("space_hash", Text, nullable=False),
    Column("strategy", Text, nullable=False),
    Column("strategy_options", Text, nullable=False),  # JSON
    Column("seed", BigInteger, nullable=False),
    Column("inherited", Text, nullable=False),  # JSON
    Column("conditions", Text, nullable=False),  # JSON
    Column("key", Text, nullable=False),  # JSON: the whole key
    Column("status", String(64), nullable=False),
    Column("result", Text),  # JSON
    Column("request", Text),  # JSON with which a worker begins
    Column("created_at", String(32), nullable=False),
    Column("tool_version", String(64), nullable=False),
    Index("study_context", "context_hash"),
)

trial = Table(
    "trial",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("study_id", Integer, ForeignKey("study.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("setting_hash", String(64), nullable=False),
    Column("setting_key", Text, nullable=False),
    Column("setting", Text, nullable=False),  # JSON
    Column("origin", String(64), nullable=False),
    Column("state", String(64), nullable=False),
    Column("estimate", Double),
    Column("reason", Text, nullable=False),
    Column("attrs", Text, nullable=False),  # JSON
    Column("created_at", String(32), nullable=False),
    Column("finished_at", String(32)),
    Column("owner_host", Text, nullable=False),
    Column("owner_scope", Text, nullable=False),
    Column("owner_pid", Integer, nullable=False),
    Column("owner_start", BigInteger, nullable=False),
    Column("heartbeat_at", Double),  # seconds by the database's own clock; 0: given up
    UniqueConstraint("study_id", "number"),
    UniqueConstraint("id", "study_id"),  # target of a run's (trial, study)
)

role = Table(
    "role",
    metadata,
    Column("study_id", Integer, ForeignKey("study.id"), primary_key=True),
    Column("name", String(64), primary_key=True),
    Column("owner_host", Text, nullable=False),
    Column("owner_scope", Text, nullable=False),
    Column("owner_pid", Integer, nullable=False),
    Column("owner_start", BigInteger, nullable=False),
    Column("heartbeat_at", Double, nullable=False),
)
"""Tasks that one worker does for all workers of a study, such as proving the finalists."""

frozen_plan = Table(
    "frozen_plan",
    metadata,
    Column("study_id", Integer, ForeignKey("study.id"), primary_key=True),
    Column("name", String(64), primary_key=True),
    Column("document", Text, nullable=False),  # JSON
    Column("created_at", String(32), nullable=False),
)
"""Plans that a study stored before it measured: the finalists, looks and alpha of each round."""

trace_features = Table(
    "traced",
    metadata,
    Column("hash", String(64), primary_key=True),
    Column("features", Text, nullable=False),  # JSON
    Column("created_at", String(32), nullable=False),
)
"""The features of the last traced run of a program, by :attr:`StudyKey.traced_as`."""

trial_value = Table(
    "trial_value",
    metadata,
    Column("trial_id", Integer, ForeignKey("trial.id"), primary_key=True),
    Column("name", String(255), primary_key=True),
    Column("value", Text, nullable=False),
    Column("number", Double),  # the value if it is a number
    Index("trial_value_name", "name", "number"),
    sqlite_with_rowid=False,  # the key is the row: half the size
)

read_back = Table(
    "read_back",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("hash", String(64), nullable=False, unique=True),
)
"""The complete read-back of a run; equal outcomes are one row."""

read_back_value = Table(
    "read_back_value",
    metadata,
    Column("read_back_id", Integer, ForeignKey("read_back.id"), primary_key=True),
    Column("name", String(255), primary_key=True),
    Column("position", Integer, nullable=False),
    Column("state", String(32), nullable=False),
    Column("requested", Text, nullable=False),
    Column("effective", Text),
    Column("source", Text),
    sqlite_with_rowid=False,
)

printed_lines = Table(
    "printed",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("hash", String(64), nullable=False, unique=True),
    Column("document", Text, nullable=False),  # JSON
)
"""Lists of lines that runs printed; a run refers to one and stores its changes to it."""

run = Table(
    "run",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("study_id", Integer, ForeignKey("study.id"), nullable=False),
    Column("trial_id", Integer),
    Column("number", Integer, nullable=False),
    Column("setting_hash", String(64), nullable=False),
    Column("setting_key", Text, nullable=False),
    Column("launched", Text),  # JSON
    Column("phase", String(64), nullable=False),
    Column("block", Integer),
    Column("position", Integer),
    Column("state", String(32), nullable=False),
    Column("reason", Text, nullable=False),
    Column("code", Text, nullable=False, server_default=""),
    Column("value_s", Double),
    Column("wall_s", Double),
    Column("metric_s", Double),
    Column("metric_rate", Boolean, nullable=False, server_default=false()),
    Column("metric_unit", Text, nullable=False, server_default=""),
    Column("metric_count", Integer),
    Column("exit_code", Integer),
    Column("signal", Integer),
    Column("verified", Boolean),
    Column("started_at", Double),
    Column("cpu_s", Double),
    Column("foreign_cpu_s", Double),
    Column("foreign_limit_s", Double),
    Column("init_s", Double),
    Column("irq_s", Double),
    Column("load1", Double),
    Column("world_size", Integer),
    Column("host", Text, nullable=False),
    Column("place", Text, nullable=False, server_default=""),
    Column("mpi_name", Text, nullable=False),
    Column("mpi_version", Text, nullable=False),
    Column("output_bytes", BigInteger, nullable=False),
    Column("command", Text, nullable=False),  # JSON
    Column("bindings", Text, nullable=False),  # JSON
    Column("inherited", Text, nullable=False),  # JSON
    Column("extra", Text, nullable=False),  # JSON
    Column("stdout_tail", Text, nullable=False),
    Column("stderr_tail", Text, nullable=False),
    Column("read_back_id", Integer, ForeignKey("read_back.id")),
    Column("printed_id", Integer, ForeignKey("printed.id")),
    Column("printed_change", Text),  # JSON; NULL: none
    UniqueConstraint("study_id", "number"),
    # A run of a trial belongs to the study of this trial; a run of the default has no trial.
    ForeignKeyConstraint(["trial_id", "study_id"], ["trial.id", "trial.study_id"]),
    Index("run_trial", "trial_id"),
    # The index covers the query for a study's best settings, so that the wide rows are not read.
    Index("run_figures", "study_id", "setting_hash", "state", "phase", "value_s"),
)


_STUDIES = """
CREATE VIEW studies_readable AS
SELECT study.id AS study, study.hash AS study_hash, app.name AS app, app.program AS program,
  app.argv AS arguments, app.input AS input, study.ranks AS ranks, mpi.family AS mpi,
  mpi.version AS mpi_version, machine.cpu_model AS cpu_model, machine.cores AS cores,
  machine.hostname AS hostname, study.cluster AS cluster, study.space_name AS space,
  study.strategy AS strategy, study.seed AS seed, study.status AS status,
  (SELECT count(*) FROM trial WHERE trial.study_id = study.id) AS trials,
  (SELECT count(*) FROM run WHERE run.study_id = study.id) AS runs,
  study.created_at AS created_at, study.tool_version AS tool_version
FROM study
JOIN app ON app.id = study.app_id
JOIN machine ON machine.id = study.machine_id
JOIN mpi ON mpi.id = study.mpi_id
"""

_TRIALS = """
CREATE VIEW trials_readable AS
SELECT trial.study_id AS study, app.name AS app, trial.number AS trial,
  trial.setting_key AS setting, trial.origin AS origin, trial.state AS state,
  trial.estimate AS estimate, trial.reason AS reason,
  (SELECT count(*) FROM run WHERE run.trial_id = trial.id) AS runs,
  trial.created_at AS created_at, trial.finished_at AS finished_at,
  trial.owner_host AS host, trial.owner_pid AS pid
FROM trial
JOIN study ON study.id = trial.study_id
JOIN app ON app.id = study.app_id
"""

_RUNS = """
CREATE VIEW runs_readable AS
SELECT run.study_id AS study, app.name AS app, study.ranks AS ranks, mpi.family AS mpi,
  mpi.version AS mpi_version, run.number AS run, trial.number AS trial,
  run.setting_key AS setting, run.phase AS phase, run.block AS block, run.position AS position,
  run.state AS state, run.reason AS reason, run.value_s AS value_s, run.wall_s AS wall_s,
  run.metric_s AS metric_s, run.exit_code AS exit_code, run.verified AS verified,
  {started} AS started, run.cpu_s AS cpu_s, run.foreign_cpu_s AS foreign_cpu_s,
  run.foreign_limit_s AS foreign_limit_s, run.load1 AS load1, run.world_size AS world_size,
  run.host AS host, run.place AS place,
  (SELECT count(*) FROM read_back_value AS value WHERE value.read_back_id = run.read_back_id
    AND value.state IN ('altered', 'unknown')) AS not_in_force
FROM run
JOIN study ON study.id = run.study_id
JOIN app ON app.id = study.app_id
JOIN mpi ON mpi.id = study.mpi_id
LEFT JOIN trial ON trial.id = run.trial_id
"""

_READ_BACK = """
CREATE VIEW run_read_back AS
SELECT run.id AS run_id, value.name AS name, value.position AS position, value.state AS state,
  value.requested AS requested, value.effective AS effective, value.source AS source
FROM run
JOIN read_back_value AS value ON value.read_back_id = run.read_back_id
"""

READABLE = ("studies_readable", "trials_readable", "runs_readable")
VIEWS = (*READABLE, "run_read_back")


def create_views(connection: Connection, dialect: Dialect) -> None:
    """Create the views in the dialect of the database."""
    start_time = dialect.iso_time("run.started_at")
    for statement in (_STUDIES, _TRIALS, _RUNS.format(started=start_time), _READ_BACK):
        connection.exec_driver_sql(statement)
