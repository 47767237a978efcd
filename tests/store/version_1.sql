-- Version 1 as it was published, with two trials and two runs.  Words in braces differ by database.

CREATE TABLE app (
  id {serial} NOT NULL,
  hash VARCHAR(64) NOT NULL,
  name TEXT NOT NULL,
  program TEXT NOT NULL,
  program_hash TEXT NOT NULL,
  argv TEXT NOT NULL,
  input TEXT,
  metric TEXT,
  verify TEXT,
  PRIMARY KEY (id),
  UNIQUE (hash)
);

CREATE TABLE machine (
  id {serial} NOT NULL,
  hash VARCHAR(64) NOT NULL,
  cores INTEGER NOT NULL,
  cpu_model TEXT NOT NULL,
  memory_bytes BIGINT NOT NULL,
  kernel TEXT NOT NULL,
  hostname TEXT NOT NULL,
  PRIMARY KEY (id),
  UNIQUE (hash)
);

CREATE TABLE meta (
  name VARCHAR(64) NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (name)
);

CREATE TABLE mpi (
  id {serial} NOT NULL,
  hash VARCHAR(64) NOT NULL,
  family TEXT NOT NULL,
  version TEXT NOT NULL,
  path TEXT NOT NULL,
  library_hash TEXT NOT NULL,
  PRIMARY KEY (id),
  UNIQUE (hash)
);

CREATE TABLE study (
  id {serial} NOT NULL,
  hash VARCHAR(64) NOT NULL,
  context_hash VARCHAR(64) NOT NULL,
  app_id INTEGER NOT NULL,
  machine_id INTEGER NOT NULL,
  mpi_id INTEGER NOT NULL,
  ranks INTEGER NOT NULL,
  cluster TEXT NOT NULL,
  cluster_hash TEXT NOT NULL,
  space_name TEXT NOT NULL,
  space_hash TEXT NOT NULL,
  strategy TEXT NOT NULL,
  strategy_options TEXT NOT NULL,
  seed BIGINT NOT NULL,
  inherited TEXT NOT NULL,
  conditions TEXT NOT NULL,
  "key" TEXT NOT NULL,
  status VARCHAR(64) NOT NULL,
  result TEXT,
  created_at VARCHAR(32) NOT NULL,
  tool_version VARCHAR(64) NOT NULL,
  PRIMARY KEY (id),
  UNIQUE (hash),
  FOREIGN KEY(app_id) REFERENCES app (id),
  FOREIGN KEY(machine_id) REFERENCES machine (id),
  FOREIGN KEY(mpi_id) REFERENCES mpi (id)
);

CREATE INDEX study_context ON study (context_hash);

CREATE TABLE trial (
  id {serial} NOT NULL,
  study_id INTEGER NOT NULL,
  number INTEGER NOT NULL,
  setting_hash VARCHAR(64) NOT NULL,
  setting_key TEXT NOT NULL,
  setting TEXT NOT NULL,
  origin VARCHAR(64) NOT NULL,
  state VARCHAR(64) NOT NULL,
  estimate {double},
  reason TEXT NOT NULL,
  attrs TEXT NOT NULL,
  created_at VARCHAR(32) NOT NULL,
  finished_at VARCHAR(32),
  owner_host TEXT NOT NULL,
  owner_scope TEXT NOT NULL,
  owner_pid INTEGER NOT NULL,
  owner_start BIGINT NOT NULL,
  PRIMARY KEY (id),
  UNIQUE (study_id, number),
  UNIQUE (id, study_id),
  FOREIGN KEY(study_id) REFERENCES study (id)
);

CREATE TABLE run (
  id {serial} NOT NULL,
  study_id INTEGER NOT NULL,
  trial_id INTEGER,
  number INTEGER NOT NULL,
  setting_hash VARCHAR(64) NOT NULL,
  setting_key TEXT NOT NULL,
  launched TEXT,
  phase VARCHAR(64) NOT NULL,
  block INTEGER,
  position INTEGER,
  state VARCHAR(32) NOT NULL,
  reason TEXT NOT NULL,
  value_s {double},
  wall_s {double},
  metric_s {double},
  exit_code INTEGER,
  signal INTEGER,
  verified BOOLEAN,
  started_at {double},
  cpu_s {double},
  foreign_cpu_s {double},
  foreign_limit_s {double},
  irq_s {double},
  load1 {double},
  world_size INTEGER,
  host TEXT NOT NULL,
  mpi_name TEXT NOT NULL,
  mpi_version TEXT NOT NULL,
  output_bytes BIGINT NOT NULL,
  command TEXT NOT NULL,
  bindings TEXT NOT NULL,
  inherited TEXT NOT NULL,
  extra TEXT NOT NULL,
  stdout_tail TEXT NOT NULL,
  stderr_tail TEXT NOT NULL,
  PRIMARY KEY (id),
  UNIQUE (study_id, number),
  FOREIGN KEY(trial_id, study_id) REFERENCES trial (id, study_id),
  FOREIGN KEY(study_id) REFERENCES study (id)
);

CREATE INDEX run_figures ON run (study_id, setting_hash, state, phase, value_s);

CREATE INDEX run_trial ON run (trial_id);

CREATE TABLE trial_value (
  trial_id INTEGER NOT NULL,
  name VARCHAR(255) NOT NULL,
  value TEXT NOT NULL,
  number {double},
  PRIMARY KEY (trial_id, name),
  FOREIGN KEY(trial_id) REFERENCES trial (id)
){without_rowid};

CREATE INDEX trial_value_name ON trial_value (name, number);

CREATE TABLE run_read_back (
  run_id INTEGER NOT NULL,
  name VARCHAR(255) NOT NULL,
  position INTEGER NOT NULL,
  state VARCHAR(32) NOT NULL,
  requested TEXT NOT NULL,
  effective TEXT,
  source TEXT,
  PRIMARY KEY (run_id, name),
  FOREIGN KEY(run_id) REFERENCES run (id)
){without_rowid};

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
JOIN mpi ON mpi.id = study.mpi_id;

CREATE VIEW trials_readable AS
SELECT trial.study_id AS study, app.name AS app, trial.number AS trial,
  trial.setting_key AS setting, trial.origin AS origin, trial.state AS state,
  trial.estimate AS estimate, trial.reason AS reason,
  (SELECT count(*) FROM run WHERE run.trial_id = trial.id) AS runs,
  trial.created_at AS created_at, trial.finished_at AS finished_at,
  trial.owner_host AS host, trial.owner_pid AS pid
FROM trial
JOIN study ON study.id = trial.study_id
JOIN app ON app.id = study.app_id;

CREATE VIEW runs_readable AS
SELECT run.study_id AS study, app.name AS app, study.ranks AS ranks, mpi.family AS mpi,
  mpi.version AS mpi_version, run.number AS run, trial.number AS trial,
  run.setting_key AS setting, run.phase AS phase, run.block AS block, run.position AS place,
  run.state AS state, run.reason AS reason, run.value_s AS value_s, run.wall_s AS wall_s,
  run.metric_s AS metric_s, run.exit_code AS exit_code, run.verified AS verified,
  {started} AS started, run.cpu_s AS cpu_s, run.foreign_cpu_s AS foreign_cpu_s,
  run.foreign_limit_s AS foreign_limit_s, run.load1 AS load1, run.world_size AS world_size,
  run.host AS host,
  (SELECT count(*) FROM run_read_back WHERE run_read_back.run_id = run.id
    AND run_read_back.state IN ('altered', 'unknown')) AS not_in_force
FROM run
JOIN study ON study.id = run.study_id
JOIN app ON app.id = study.app_id
JOIN mpi ON mpi.id = study.mpi_id
LEFT JOIN trial ON trial.id = run.trial_id;

INSERT INTO meta (name, value)
VALUES ('product', 'mpi-autotune');

INSERT INTO meta (name, value)
VALUES ('schema_version', '1');

INSERT INTO machine (hash, cores, cpu_model, memory_bytes, kernel, hostname)
VALUES ('16b2bf92c7249ed4203e040d36f66cce4c51d6d850579df4862579ec38eaccab', 2, 'A CPU', 8589934592, '6.1.0', 'node1');

INSERT INTO mpi (hash, family, version, path, library_hash)
VALUES ('7fadc394403a5b99daeb6df17127ba235957d143ea9ebb387c1cb4ede026e07a', 'openmpi', '5.0.11', '/opt/openmpi', 'cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd');

INSERT INTO app (hash, name, program, program_hash, argv, input, metric, verify)
VALUES ('52d8627132a8a1fe691027e933d5d47003b98cc0ba1a9c4027927b663057974e', 'jacobi3d', '/opt/jacobi3d', 'abababababababababababababababababababababababababababababababab', '["-n","64"]', 'small', 'time: (\S+)', 'ok');

INSERT INTO study (hash, context_hash, app_id, machine_id, mpi_id, ranks, cluster, cluster_hash, space_name, space_hash, strategy, strategy_options, seed, inherited, conditions, "key", status, result, created_at, tool_version)
VALUES ('3e0641557a8e1870a3757bb5fefbb6cdd6dede6857ec0ae9d45b840145ca9bfa', 'f81977dd70a63af120aeb0e59420f1f0d4ed43fda6053b1390dd6fe59e11c548', 1, 1, 1, 4, 'local', '', 'small', 'efefefefefefefefefefefefefefefefefefefefefefefefefefefefefefefef', 'ga', '{}', 1, '{}', '{}', '{"app":{"argv":["-n","64"],"input":"small","metric":"time: (\\S+)","name":"jacobi3d","program":"/opt/jacobi3d","program_hash":"abababababababababababababababababababababababababababababababab","verify":"ok"},"cluster":"local","cluster_hash":"","conditions":{},"inherited":{},"machine":{"cores":2,"cpu_model":"A CPU","hostname":"node1","kernel":"6.1.0","memory_bytes":8589934592},"mpi":{"family":"openmpi","library_hash":"cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd","path":"/opt/openmpi","version":"5.0.11"},"ranks":4,"seed":1,"space_hash":"efefefefefefefefefefefefefefefefefefefefefefefefefefefefefefefef","space_name":"small","strategy":"ga","strategy_options":{}}', 'recommended', '{"trials":1}', '2026-01-01T00:00:00.000+00:00', '0.1.0');

INSERT INTO trial (study_id, number, setting_hash, setting_key, setting, origin, state, estimate, reason, attrs, created_at, finished_at, owner_host, owner_scope, owner_pid, owner_start)
VALUES (1, 0, 'c22fea5d7428e5cf47ef6354c97c9223c95d6dcdc3e0d2300ff79056b1ff3d85', 'a=1', '{"a":1}', 'search', 'ok', 0.5, '', '{"generation":1}', '2026-01-01T00:00:00.000+00:00', '2026-01-01T00:00:01.000+00:00', 'node1', 'a boot/pid:[1]', 4321, 1234);

INSERT INTO trial (study_id, number, setting_hash, setting_key, setting, origin, state, estimate, reason, attrs, created_at, finished_at, owner_host, owner_scope, owner_pid, owner_start)
VALUES (1, 1, 'd3043f41a0385109cbbaae1ea3c1c31674886be47b073f40681f2ef6d2603c41', 'a=2', '{"a":2}', 'search', 'running', NULL, '', '{}', '2026-01-01T00:00:00.000+00:00', NULL, 'node1', 'a boot/pid:[1]', 4321, 1234);

INSERT INTO trial_value (trial_id, name, value, number)
VALUES (1, 'a', '1', 1.0);

INSERT INTO trial_value (trial_id, name, value, number)
VALUES (2, 'a', '2', 2.0);

INSERT INTO run (study_id, trial_id, number, setting_hash, setting_key, launched, phase, block, position, state, reason, value_s, wall_s, metric_s, exit_code, signal, verified, started_at, cpu_s, foreign_cpu_s, foreign_limit_s, irq_s, load1, world_size, host, mpi_name, mpi_version, output_bytes, command, bindings, inherited, extra, stdout_tail, stderr_tail)
VALUES (1, NULL, 0, '37a8eec1ce19687d132fe29051dca629d164e2c4958ba141d5f4133a33f0688f', 'default', NULL, 'default', 0, 0, 'ok', '', 2.0, 2.0, NULL, 0, NULL, NULL, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, NULL, 'node1', '', '', 0, '[]', '[]', '{}', '{}', '', '');

INSERT INTO run (study_id, trial_id, number, setting_hash, setting_key, launched, phase, block, position, state, reason, value_s, wall_s, metric_s, exit_code, signal, verified, started_at, cpu_s, foreign_cpu_s, foreign_limit_s, irq_s, load1, world_size, host, mpi_name, mpi_version, output_bytes, command, bindings, inherited, extra, stdout_tail, stderr_tail)
VALUES (1, 1, 1, 'c22fea5d7428e5cf47ef6354c97c9223c95d6dcdc3e0d2300ff79056b1ff3d85', 'a=1', NULL, 'search', 0, 0, 'ok', '', 1.0, 1.0, NULL, 0, NULL, NULL, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, NULL, 'node1', '', '', 0, '[]', '[]', '{}', '{}', '', '');

INSERT INTO run_read_back (run_id, name, position, state, requested, effective, source)
VALUES (2, 'a', 0, 'in force', '1', '1', 'command');
