"""Views for people who look at the database with plain SQL."""

from __future__ import annotations

from sqlalchemy import Connection

from autotune.store.dialect import Dialect

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
    started = dialect.iso_time("run.started_at")
    for statement in (_STUDIES, _TRIALS, _RUNS.format(started=started), _READ_BACK):
        connection.exec_driver_sql(statement)
