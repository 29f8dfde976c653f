"""A SQLite file of the user's, through the standard library.

The key is asked for under `BEGIN IMMEDIATE`, which one connection has at a time. What the
function may not do is refused by SQLite itself: an authorizer denies BEGIN, COMMIT and ROLLBACK
while it runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pathlib
import sqlite3
from collections.abc import Callable, Generator
from dataclasses import asdict
from urllib.parse import quote

from ninelives import errors
from ninelives.adapters.databases import protocol
from ninelives.durable.databases import Kept, Row, Work

TIMEOUT_SECONDS = 30.0


class Sqlite:
    """A SQLite file for `ctx.transaction`, with a connection for each transaction.

    It must exist. `setup` is called with each connection, for pragmas and functions of yours; what
    it does not change is `synchronous=FULL`. `timeout_seconds` is how long a lock is waited for.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
        setup: Callable[[sqlite3.Connection], object] | None = None,
    ) -> None:
        text = os.fspath(path)
        self._path = pathlib.Path(text.removeprefix("sqlite:///"))
        self._timeout, self._setup = timeout_seconds, setup
        self.name = f"sqlite:///{self._path}"

    async def transact(self, row: Row, work: Work) -> Kept:
        if work.is_async:
            message = "SQLite is synchronous: pass a plain function, it runs in a thread"
            raise TypeError(message)
        return await asyncio.to_thread(
            protocol.carry_out, self.name, lambda attempt: self._once(attempt, row, work)
        )

    async def bar(self, row: Row) -> Kept | None:
        def bar() -> Kept | None:
            with self._open() as connection, _immediate(connection):
                connection.execute(protocol.BAR, asdict(row))
                return protocol.known(row, _find(connection, row))

        return await asyncio.to_thread(bar)

    async def create_table(self) -> None:
        def create() -> None:
            with self._open() as connection:
                connection.execute(protocol.CREATE.format(bytes="BLOB"))

        await asyncio.to_thread(create)

    async def prune(self, before: int) -> int:
        def prune() -> int:
            with self._open() as connection:
                return connection.execute(protocol.PRUNE, {"before": before}).rowcount

        return await asyncio.to_thread(prune)

    @contextlib.contextmanager
    def _open(self) -> Generator[sqlite3.Connection]:
        """A connection without implicit transactions, to a file that is there."""
        address = f"file:{quote(str(self._path.absolute()))}?mode=rw"
        try:
            connection = sqlite3.connect(
                address, self._timeout, isolation_level=None, uri=True, check_same_thread=False
            )
        except sqlite3.OperationalError as error:
            why = f"{error}; does the file exist? Nothing was created"
            raise errors.DatabaseUnavailable(self.name, why) from error
        with contextlib.closing(connection):
            connection.execute("PRAGMA synchronous = FULL")
            if self._setup is not None:
                self._setup(connection)
            try:
                yield connection
            except sqlite3.OperationalError as error:
                if "no such table: ninelives_transactions" in str(error):
                    raise errors.DatabaseUnavailable(self.name, protocol.MISSING) from error
                raise

    def _once(self, attempt: protocol.Attempt, row: Row, work: Work) -> Kept:
        with self._open() as connection, _immediate(connection, attempt):
            found = _find(connection, row)
            attempt.asked = True
            kept = protocol.known(row, found)
            if kept is not None:
                return kept
            connection.execute(protocol.TAKE, asdict(row))
            connection.execute(protocol.TAKE_UP, asdict(row))
            result = _guarded(connection, row, work)
            done = connection.execute(protocol.DONE, {**asdict(row), "result": result})
            if not connection.in_transaction or done.rowcount != 1:
                raise errors.TransactionMisused(row.key, protocol.ENDED)
            return Kept(row.fingerprint, result, is_new=True)


@contextlib.contextmanager
def _immediate(
    connection: sqlite3.Connection, attempt: protocol.Attempt | None = None
) -> Generator[None]:
    """A write transaction. After an error in COMMIT, what could be rolled back was not done."""
    attempt = attempt or protocol.Attempt()
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        attempt.committing = True
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
            attempt.committing = False
        raise


def _find(connection: sqlite3.Connection, row: Row) -> protocol.Found | None:
    cursor = connection.cursor()
    cursor.row_factory = None  # the user's setup may have set one
    found: protocol.Found | None = cursor.execute(protocol.FIND, asdict(row)).fetchone()
    return found


def _guarded(connection: sqlite3.Connection, row: Row, work: Work) -> bytes:
    """Run the function where transactions cannot be begun or ended."""
    denied: list[str] = []

    def authorize(action: int, operation: str | None, *_: str | None) -> int:
        if action != sqlite3.SQLITE_TRANSACTION:
            return sqlite3.SQLITE_OK
        denied.append(str(operation))
        return sqlite3.SQLITE_DENY

    connection.set_authorizer(authorize)
    try:
        result = work.run(connection)
    except sqlite3.DatabaseError as error:
        if denied:
            raise errors.TransactionMisused(row.key, f"tried {denied[0]}") from error
        raise
    finally:
        connection.set_authorizer(None)
    if denied:
        raise errors.TransactionMisused(row.key, f"tried {denied[0]}")
    return result
