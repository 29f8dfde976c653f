"""The notes of a SQLite store: one table, read by ranges of its primary key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import apsw

from ninelives.store import rows
from ninelives.store.notes import Note
from ninelives.store.sqlite_outbox import Read, Write

_BEHIND_ALL = "\U0010ffff"


class SqliteNotes:
    """`Notes`; see `store.notes.Notes` for what each call promises."""

    def __init__(self, write: Write, read: Read) -> None:
        self._write, self._read = write, read

    async def put(self, notes: Sequence[Note], *, only_new: bool = False) -> bool:
        def work(connection: apsw.Connection) -> bool:
            if only_new and any(
                rows.one(connection, "note_get", (note.scope, note.key)) for note in notes
            ):
                return False
            insert(connection, notes)
            return True

        return await self._write(work, None)

    async def get(self, scope: str, key: str) -> bytes | None:
        def work(connection: apsw.Connection) -> bytes | None:
            found = rows.one(connection, "note_get", (scope, key))
            return None if found is None else bytes(found[0])

        return await self._read(work)

    async def drop(self, notes: Sequence[tuple[str, str]]) -> int:
        def work(connection: apsw.Connection) -> int:
            return sum(len(rows.fetch(connection, "note_delete", place)) for place in notes)

        return await self._write(work, None)

    async def under(
        self, scope: str, *, prefix: str = "", after: str = "", limit: int = 100
    ) -> list[Note]:
        values = {
            "scope": scope,
            "after": max(after, prefix),
            "to": prefix + _BEHIND_ALL,
            "exclusive": after >= prefix and bool(after),
            "limit": limit,
        }
        return await self._read(
            lambda connection: [
                Note(scope, key, bytes(value))
                for key, value in rows.fetch(connection, "notes_under", values)
            ]
        )


def insert(connection: apsw.Connection, notes: Iterable[Note]) -> None:
    """Write notes in a transaction that is under way."""
    for note in notes:
        rows.fetch(connection, "note_put", (note.scope, note.key, note.value))
