"""The seam to the user's own databases: what a transaction needs of one, and how it is found.

A database keeps, in its table `ninelives_transactions`, one row for each key. The row commits with
the user's SQL, so that asking for the key is asking whether the transaction has happened.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from typing import Protocol, runtime_checkable

from ninelives import errors, faults
from ninelives.durable import calls


@dataclass(frozen=True, slots=True)
class Row:
    """What stands in the table for one transaction, but for its result.

    `fingerprint` is the function's name and its arguments' fingerprint, `at` a label in
    milliseconds by which old rows are pruned.
    """

    store: str
    key: str
    fingerprint: str
    epoch: int
    at: int


@dataclass(frozen=True, slots=True)
class Kept:
    """The row of a transaction that has committed; `is_new`: by this call."""

    fingerprint: str
    result: bytes
    is_new: bool


@dataclass(frozen=True, slots=True)
class Work:
    """A transaction's function with its arguments; `encode` refuses what cannot be recorded."""

    function: Callable[..., object]
    args: tuple[object, ...]
    encode: Callable[[object], bytes]

    @property
    def is_async(self) -> bool:
        return calls.is_async(self.function)

    def run(self, transaction: object) -> bytes:
        """Call a synchronous function inside the transaction; its encoded result."""
        result = self.function(transaction, *self.args)
        if inspect.iscoroutine(result):
            result.close()
            message = "an asynchronous function needs an AsyncEngine of SQLAlchemy"
            raise TypeError(message)
        return self._ready(result)

    async def run_async(self, transaction: object) -> bytes:
        """Await an asynchronous function inside the transaction; its encoded result."""
        result = self.function(transaction, *self.args)
        return self._ready(await result if inspect.isawaitable(result) else result)

    def _ready(self, result: object) -> bytes:
        encoded = self.encode(result)
        faults.reach(faults.Boundary.TRANSACTION_READY)
        return encoded


@runtime_checkable
class Database(Protocol):
    """A database of the user's. `name` is shown and recorded: it holds no secret."""

    @property
    def name(self) -> str: ...

    async def transact(self, row: Row, work: Work) -> Kept:
        """Run `work` and commit it together with `row`, unless the key is there already.

        The key is taken before `work` runs: of two that come at once the second waits for the
        first, and then finds its row. A lost answer to COMMIT is asked about, under the key.

        Raises:
            StaleEpoch: a later owner of the run has barred the key.
            TransactionMisused: `work` has ended the transaction by itself.
            TransactionUnknown: it may have committed, and the database cannot be asked.
            Exception: whatever `work` raised; nothing has happened.
        """
        ...

    async def bar(self, row: Row) -> Kept | None:
        """Let nobody with an older epoch commit under the key any more; what has, is returned."""
        ...

    async def create_table(self) -> None:
        """Create the table where it is missing."""
        ...

    async def prune(self, before: int) -> int:
        """Delete the rows with an older label; how many."""
        ...


def resolve(database: object) -> Database:
    """Find what is meant: a `Database`, a URL, a path, a conninfo, or an object of a library.

    A library's objects, and URLs, are known by entry points of the group `ninelives.databases`.

    Raises:
        DatabaseUnavailable: nothing installed knows it.
    """
    if isinstance(database, Database):
        return database
    if isinstance(database, str | os.PathLike):
        wanted, shown = _scheme(os.fspath(database)), _shown(os.fspath(database))
    else:
        wanted = type(database).__module__.partition(".")[0]
        shown = f"{type(database).__module__}.{type(database).__qualname__}"
    for offer in metadata.entry_points(group="ninelives.databases", name=wanted):
        try:
            found: Database = offer.load()(database)
        except ModuleNotFoundError as error:
            why = f"the package {error.name!r} is missing; install ninelives[{wanted}]"
            raise errors.DatabaseUnavailable(shown, why) from error
        return found
    why = f"nothing installed knows {wanted!r}; pass a URL of SQLite or PostgreSQL, or an Engine"
    raise errors.DatabaseUnavailable(shown, why)


def _scheme(text: str) -> str:
    scheme, colon, _ = text.partition("://")
    if colon:
        return "postgres" if scheme == "postgresql" else scheme
    return "postgres" if re.search(r"\b(host|dbname|service)\s*=", text) else "sqlite"


def _shown(text: str) -> str:
    """A URL or conninfo without its password."""
    text = re.sub(r"(://[^:/@]*):[^@/]*@", r"\1:***@", text)
    return re.sub(r"(password\s*=\s*)('[^']*'|\S+)", r"\1***", text)


async def create_transactions_table(database: object) -> None:
    """Create the table `ninelives_transactions` in a database of yours, where it is missing.

    Raises:
        DatabaseUnavailable: it cannot be reached.
    """
    await resolve(database).create_table()


async def prune_transactions(database: object, *, before: int) -> int:
    """Delete the rows of transactions before a moment (milliseconds); returns how many.

    A run that has not yet recorded its transaction's outcome would run it again.
    """
    return await resolve(database).prune(before)
