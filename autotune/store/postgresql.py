"""The results database on a PostgreSQL server.

:func:`writers` lists who may write the studies of a database; only a server knows this. A column
with the writer of a row is no proof, because whoever may write the row may write that column. A
trigger could set it, but the table's owner may remove the trigger. A server knows only the roles
with the right to write.
"""

from __future__ import annotations

from sqlalchemy import URL, Connection, Engine, create_engine, text
from sqlalchemy.exc import NoSuchModuleError

from autotune.errors import AutotuneError, UsageError, WorkError

_LOCK_NUMBER = 0x6175746F74756E65  # "autotune" in ASCII


class Postgresql:
    """A PostgreSQL server, for writers on several nodes."""

    shares_database = True

    def __init__(self, read_only: bool = False) -> None:
        self.read_only = read_only

    def engine(self, url: URL) -> Engine:
        connect_args = {}
        if self.read_only:
            # Beside the options of the URL, which may say in which schema the tables are.
            own = url.query.get("options", ())
            options = [own] if isinstance(own, str) else list(own)
            connect_args["options"] = " ".join([*options, "-c default_transaction_read_only=on"])
        try:
            return create_engine(url, pool_pre_ping=True, connect_args=connect_args)
        except (ImportError, NoSuchModuleError) as error:
            raise UsageError(
                f"PostgreSQL needs the driver of {url.get_backend_name()} ({error}); install it "
                'with pip install "mpi-autotune[postgres]"',
                code="store.driver_missing",
            ) from error

    def lock(self, connection: Connection) -> None:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK_NUMBER})")

    def ready(self, engine: Engine) -> None:
        """Do nothing: a server needs no settings."""

    def compact(self, engine: Engine) -> bool:
        """Do nothing: autovacuum lets later rows use the space."""
        return True

    def now(self) -> str:
        return "extract(epoch FROM clock_timestamp())"

    def iso_time(self, seconds: str) -> str:
        utc = f"to_timestamp({seconds}) AT TIME ZONE 'UTC'"
        return f"""to_char({utc}, 'YYYY-MM-DD"T"HH24:MI:SS"Z"')"""

    def is_replaced(self) -> bool:
        return False  # A server notices by itself.

    def save(self, engine: Engine) -> WorkError | None:
        raise NotImplementedError

    def explain(self, message: str) -> AutotuneError | None:
        if "permission denied" in message or "no schema has been selected" in message:
            return UsageError(
                f"PostgreSQL does not permit it: {message}; the user needs USAGE on the "
                "schema; SELECT on the tables to read; INSERT and UPDATE on them and USAGE on "
                "the sequences to write; CREATE on the schema to create or migrate the tables",
                code="store.permission",
            )
        if "connection" in message or "could not translate host" in message:
            return UsageError(
                f"the PostgreSQL server does not answer or refuses access: {message}; check "
                "host, port, database, user and password of --store or $AUTOTUNE_STORE",
                code="store.unreachable",
            )
        return None


_WRITERS = text(
    """
    WITH written AS (
        SELECT c.oid, c.relowner, n.nspowner, d.datdba
        FROM pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace
        JOIN pg_database d ON d.datname = current_database()
        WHERE c.oid = to_regclass('study')
    ), able AS (
        SELECT r.oid FROM pg_roles r, written w
        WHERE r.rolsuper OR r.rolcreaterole
           OR r.oid IN (w.relowner, w.nspowner, w.datdba)
           OR has_table_privilege(r.oid, w.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, TRIGGER')
           OR has_any_column_privilege(r.oid, w.oid, 'INSERT, UPDATE')
    )
    SELECT m.rolname FROM pg_roles m
    WHERE m.rolcanlogin
      AND EXISTS (SELECT 1 FROM able a WHERE pg_has_role(m.oid, a.oid, 'MEMBER'))
    ORDER BY m.rolname
    """
)


def writers(connection: Connection) -> frozenset[str]:
    """Every role that can log in and write studies.

    A role may write by a grant, as owner, as superuser, through a role of which it is a member, or
    because it may make itself a member (CREATEROLE).
    """
    return frozenset(str(name) for name in connection.scalars(_WRITERS))
