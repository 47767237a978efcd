"""Who may write the studies of a database: what a server knows of it, and nobody else does.

A column that names who wrote a row would not do: whoever may write the row may write that column
(a trigger could fill it in, but the table's owner may remove the trigger).  What a server can tell
for sure is which roles have the right to write at all.
"""

from __future__ import annotations

from sqlalchemy import Connection, text

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
    """Every role that can log in and write studies: by a grant, as owner, as superuser, through a
    role that it is a member of, or because it may make itself one (CREATEROLE)."""
    return frozenset(str(name) for name in connection.scalars(_WRITERS))
