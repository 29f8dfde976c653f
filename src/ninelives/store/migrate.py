"""Brings a database file to the schema of this version; forward only.

The number is SQLite's `user_version`, the proof that the file is ours its `application_id`.
Several processes may start at once: the first migrates in one transaction, the others wait.
"""

from __future__ import annotations

import apsw

from ninelives import errors, ids
from ninelives.store import queries

APPLICATION_ID = 0x396C6976
SCHEMA = 2


def migrate(connection: apsw.Connection, store: str) -> None:
    """Create or upgrade the tables.

    Raises:
        StoreRefused: another program's database, or one of a newer ninelives.
    """
    if _version(connection, store) == SCHEMA and identity(connection):
        return
    statements = queries.load("sqlite")
    connection.execute("BEGIN IMMEDIATE")
    try:
        for number in range(_version(connection, store) + 1, SCHEMA + 1):
            connection.execute(statements[f"schema_{number}"])
        connection.execute(
            "INSERT OR IGNORE INTO meta (key, value) VALUES ('identity', ?)", (ids.new_token(),)
        )
        connection.pragma("application_id", APPLICATION_ID)
        connection.pragma("user_version", SCHEMA)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def identity(connection: apsw.Connection) -> str:
    """What names this store; empty: it was never given a name."""
    found = connection.execute("SELECT value FROM meta WHERE key = 'identity'").fetchall()
    return str(found[0][0]) if found else ""


def _version(connection: apsw.Connection, store: str) -> int:
    application = connection.pragma("application_id")
    version = int(str(connection.pragma("user_version")))
    tables = bool(connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall())
    if application != APPLICATION_ID and tables:
        raise errors.StoreRefused(store, "the file is another program's database; choose another")
    if version > SCHEMA:
        raise errors.StoreRefused(
            store,
            f"the file has schema {version}, this ninelives knows up to {SCHEMA}; "
            "upgrade ninelives",
        )
    if version == SCHEMA and not tables:
        raise errors.StoreFailed(store, "its tables are missing; restore the file from a backup")
    return version
