"""A user's database of bookings, for tests of transactions.

`Bookings` hides how a driver is spoken to. Its table and its statements are the user's, not ours.
"""

from __future__ import annotations

import contextlib
import pathlib
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

TABLE = "CREATE TABLE bookings (item TEXT NOT NULL)"
Rows = list[tuple[Any, ...]]


@dataclass
class Bookings:
    """A table of bookings, and its database as a test gives it to `ctx.transaction`."""

    database: object
    ask: Callable[[str], Rows]

    def items(self) -> list[str]:
        """What has been booked."""
        return [item for (item,) in self.ask("SELECT item FROM bookings ORDER BY item")]

    def kept(self) -> Rows:
        """The keys in the table of transactions, and how they stand."""
        return self.ask("SELECT key, state FROM ninelives_transactions ORDER BY key")


def book(transaction: Any, item: str) -> str:
    """What a test does in its transaction."""
    write(transaction, item)
    return f"booked {item}"


def write(transaction: Any, item: str) -> None:
    """Insert a booking through whichever driver."""
    package = type(transaction).__module__.partition(".")[0]
    if package == "sqlite3":
        transaction.execute("INSERT INTO bookings (item) VALUES (?)", [item])
    elif package == "psycopg":
        transaction.execute("INSERT INTO bookings (item) VALUES (%s)", [item])
    else:
        from sqlalchemy import text

        transaction.execute(text("INSERT INTO bookings (item) VALUES (:item)"), {"item": item})


def run(transaction: Any, statement: str) -> None:
    """A statement through whichever driver."""
    if type(transaction).__module__.partition(".")[0] == "sqlalchemy":
        transaction.exec_driver_sql(statement)
    else:
        transaction.execute(statement)


def ask_sqlite(path: str) -> Callable[[str], Rows]:
    def ask(statement: str) -> Rows:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            found = connection.execute(statement).fetchall()
            connection.commit()
        return found

    return ask


def in_sqlite(folder: pathlib.Path) -> Bookings:
    """A new SQLite file with the user's table."""
    path = str(folder / "bookings.db")
    ask = ask_sqlite(path)
    ask(TABLE)
    return Bookings(f"sqlite:///{path}", ask)


def count(transaction: Any) -> int:
    """How many bookings there are, as the transaction sees them."""
    if type(transaction).__module__.partition(".")[0] == "sqlalchemy":
        found = transaction.exec_driver_sql("SELECT count(*) FROM bookings")
    else:
        found = transaction.execute("SELECT count(*) FROM bookings")
    return int(found.fetchone()[0])
