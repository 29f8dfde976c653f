"""The outbox in a SQLite store: claims under the write lock, outcomes in the runs' journals."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

import apsw
import msgspec

from ninelives import errors
from ninelives.ids import RunId, Seq
from ninelives.log import events
from ninelives.log.events import Draft, Fact
from ninelives.store import apply, owners, rows
from ninelives.store.outbox import Letter, LetterState, Parcel, RelayToken

T = TypeVar("T")
_SEQ = (1 << rows.SHIFT) - 1


class Write(Protocol):
    """Runs work in the writer's transaction, and wakes who watches `run`."""

    def __call__(self, work: Callable[[apsw.Connection], T], run: RunId | None) -> Awaitable[T]: ...


class Read(Protocol):
    """Runs work on the reader's connection."""

    def __call__(self, work: Callable[[apsw.Connection], T]) -> Awaitable[T]: ...


class SqliteOutbox:
    """An `Outbox`; see `store.outbox.Outbox` for what each call promises."""

    def __init__(self, path: pathlib.Path, url: str, write: Write, read: Read) -> None:
        self._path, self._url = path, url
        self._write, self._read = write, read
        self._locks: dict[RelayToken, owners.OwnerLock] = {}

    def enlist(self) -> RelayToken:
        lock = owners.OwnerLock(self._path)
        token = RelayToken(lock.token)
        self._locks[token] = lock
        return token

    def dismiss(self, token: RelayToken) -> None:
        lock = self._locks.pop(token, None)
        if lock is not None:
            lock.release()

    async def due(self, channel: str, *, ordered: bool, now: int) -> bool:
        def work(connection: apsw.Connection) -> bool:
            values = {"channel": channel, "ordered": ordered, "now": now}
            return rows.one(connection, "outbox_due", values | self._dead(connection)) is not None

        return await self._read(work)

    async def claim(
        self, token: RelayToken, channel: str, *, ordered: bool, limit: int, now: int
    ) -> list[Parcel]:
        def work(connection: apsw.Connection) -> list[Parcel]:
            values = {
                "token": token,
                "channel": channel,
                "ordered": ordered,
                "limit": limit,
                "now": now,
            }
            claimed = rows.fetch(connection, "outbox_claim", values | self._dead(connection))
            return [_parcel(connection, number, attempt) for number, attempt in sorted(claimed)]

        return await self._write(work, None)

    def _dead(self, connection: apsw.Connection) -> dict[str, object]:
        """The claimants that live no more, asked of the kernel."""
        found = [each[0] for each in rows.fetch(connection, "outbox_claimants")]
        dead = [token for token in found if not owners.alive(self._path, token)]
        return {"dead": json.dumps(dead)}

    async def delivered(self, token: RelayToken, parcel: Parcel, at: int) -> bool:
        fact = events.OutboxDelivered(key=parcel.key, queued=parcel.seq, attempts=parcel.attempt)
        return await self._end(token, parcel, at, fact)

    async def bury(
        self, token: RelayToken, parcel: Parcel, at: int, *, error: str, message: str
    ) -> bool:
        fact = events.OutboxDead(
            key=parcel.key,
            queued=parcel.seq,
            attempts=parcel.attempt,
            error=error,
            message=message,
        )
        return await self._end(token, parcel, at, fact)

    async def _end(self, token: RelayToken, parcel: Parcel, at: int, fact: Fact) -> bool:
        def work(connection: apsw.Connection) -> bool:
            if rows.one(connection, "outbox_mine", (parcel.id, token)) is None:
                return False
            _append(connection, self._url, parcel.run, at, [fact])
            return True

        return await self._write(work, parcel.run)

    async def postpone(
        self, token: RelayToken, parcel: Parcel, *, next_at: int, error: str, message: str
    ) -> bool:
        values = (next_at, error, message, parcel.id, token)
        return await self._write(
            lambda connection: rows.one(connection, "outbox_postpone", values) is not None, None
        )

    async def requeue(self, run: RunId, key: str | None, at: int, *, by: str) -> list[str]:
        def work(connection: apsw.Connection) -> list[str]:
            number = _number(connection, self._url, run)
            low, high = rows.span(number, 0)
            values = {"low": low, "high": high, "key": key or ""}
            found = rows.fetch(connection, "outbox_dead_of", values)
            facts: list[Fact] = [
                events.OutboxRequeued(key=each, queued=ident & _SEQ, by=by) for ident, each in found
            ]
            if facts:
                _append(connection, self._url, run, at, facts)
            return [each for _, each in found]

        return await self._write(work, run)

    async def letters(self, state: LetterState, *, run: RunId | None, limit: int) -> list[Letter]:
        values = {"state": state, "run": run or "", "limit": limit}
        return await self._read(
            lambda connection: [
                _letter(each) for each in rows.fetch(connection, "outbox_page", values)
            ]
        )

    async def waiting(self) -> dict[str, int]:
        return await self._read(lambda connection: dict(rows.fetch(connection, "outbox_channels")))


def _parcel(connection: apsw.Connection, ident: int, attempt: int) -> Parcel:
    run, channel, key, at, data = rows.fetch(connection, "outbox_parcel", (ident,))[0]
    payload = msgspec.json.decode(data, type=events.OutboxQueued).payload
    return Parcel(ident, RunId(run), Seq(ident & _SEQ), channel, key, payload, attempt, at)


def _letter(found: rows.Row) -> Letter:
    ident, run, channel, key, state, claimant, attempts, next_at, at, error, message = found
    return Letter(
        run=RunId(run),
        seq=Seq(ident & _SEQ),
        channel=channel,
        key=key,
        state=state,
        claimed=bool(claimant),
        attempts=attempts,
        next_at=next_at,
        queued_at=at,
        error=error,
        message=message,
    )


def _number(connection: apsw.Connection, url: str, run: RunId) -> int:
    found = rows.one(connection, "run_by_id", (run,))
    if found is None:
        raise errors.RunNotFound(run, url)
    return int(found[0])


def _append(connection: apsw.Connection, url: str, run: RunId, at: int, facts: list[Fact]) -> None:
    """Append to a journal as nobody's incarnation; a run's end does not forbid it (I10)."""
    found = rows.one(connection, "run_by_id", (run,))
    if found is None:
        raise errors.RunNotFound(run, url)
    row = rows.run(found, alive=False)
    drafts = [Draft(fact=fact, at=at, superstep=row.superstep) for fact in facts]
    values = {"count": len(drafts), "at": at, "id": row.number}
    first = int(rows.fetch(connection, "run_advance_any", values)[0][0]) + 1
    apply.write(connection, row.number, 0, first, apply.prepare(drafts))
