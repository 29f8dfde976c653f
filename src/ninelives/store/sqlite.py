"""Runs in one SQLite file: WAL, `synchronous=FULL`, one writer thread, one reader thread.

A commit survives power loss as far as the disk keeps what it has acknowledged. An owner is
alive as long as its process holds a lock beside the file (see `owners`); there is no lease.
"""

from __future__ import annotations

import asyncio
import pathlib
import urllib.parse
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import apsw
import msgspec

from ninelives import errors
from ninelives.ids import Epoch, RunId, Seq
from ninelives.log import events
from ninelives.log.events import Draft, Event
from ninelives.store import apply, migrate, owners, queries
from ninelives.store.base import (
    Admission,
    Appended,
    Budget,
    BudgetRefused,
    Checkpoint,
    Claimed,
    Hold,
    Incarnation,
    KeyTaken,
    OwnedElsewhere,
    Owner,
    RunRow,
)
from ninelives.store.writer import Writer, store_error

T = TypeVar("T")
_BUSY_MS = 60_000
_STALE = object()
_DECODERS = {kind: msgspec.json.Decoder(fact) for kind, fact in events.KINDS.items()}
_SQL = queries.load("sqlite")


class SqliteStore:
    """A `Store` on one SQLite file; see `store.base.Store` for what each call promises."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._path, self._network = _parse(url)
        self._subscribers: dict[RunId, set[asyncio.Event]] = {}
        self._incarnations: dict[int, dict[int, Incarnation]] = {}

    async def open(self) -> None:
        if not self._network:
            owners.refuse_network_disk(self._path, self.url)
        self._readers = ThreadPoolExecutor(1, thread_name_prefix="ninelives-reader")
        await asyncio.get_running_loop().run_in_executor(self._readers, self._connect)
        self._writer.start()

    def _connect(self) -> None:
        try:
            _refuse_foreign_file(self._path, self.url)
            writing = _connection(self._path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
            migrate.migrate(writing, self.url)
            self._reading = _connection(self._path, apsw.SQLITE_OPEN_READWRITE)
            self._lock = owners.OwnerLock(self._path)
            self._turnstile = owners.Turnstile(self._path)
        except apsw.NotADBError as error:
            raise errors.StoreRefused(self.url, "the file is not a SQLite database") from error
        except apsw.CantOpenError as error:
            raise errors.StoreRefused(
                self.url, "the file cannot be opened; does its folder exist and may you write there?"
            ) from error
        except (apsw.Error, OSError) as error:
            raise store_error(error, self.url) from error
        self._writer = Writer(writing, self._turnstile, self.url)
        self._writing = writing

    async def close(self) -> None:
        await self._writer.stop()
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._readers, self._reading.close)
        self._readers.shutdown()
        self._writing.close()
        self._turnstile.close()
        self._lock.release()

    # -- writing --------------------------------------------------------------------------

    async def admit(self, admission: Admission) -> Owner | RunRow:
        rows = apply.prepare([admission.admitted, admission.started])

        def work(connection: apsw.Connection) -> Owner | RunRow:
            found = connection.execute(_SQL["run_by_id"], (admission.run,)).fetchone()
            if found is not None:
                return self._row(found)
            number = _insert_run(connection, admission, self._lock.token)
            _insert_incarnation(connection, number, 1, 1, admission.started)
            apply.write(connection, number, 1, 1, rows)
            _advance_any(connection, number, len(rows), admission.started.at)
            return Owner(admission.run, number, Epoch(1), 1, 1)

        return await self._write(work, admission.run)

    async def claim(
        self, run: RunId, started: Draft, *, take_over: bool, retry: bool
    ) -> Claimed | OwnedElsewhere:
        def work(connection: apsw.Connection) -> Claimed | OwnedElsewhere:
            found = connection.execute(_SQL["run_by_id"], (run,)).fetchone()
            if found is None:
                raise errors.RunNotFound(run, self.url)
            row = self._row(found)
            if row.state in {"completed", "cancelled"}:
                raise errors.RunEnded(run, row.state)
            if row.alive and not take_over:
                last = _incarnations(connection, row.number)[row.incarnation]
                return OwnedElsewhere(last.pid, last.host, last.started_at)
            return self._take(connection, row, started, retry=retry)

        return await self._write(work, run)

    def _take(
        self, connection: apsw.Connection, row: RunRow, started: Draft, *, retry: bool
    ) -> Claimed:
        claimed = {"attempts": int(retry), "owner": self._lock.token, "id": row.number}
        epoch, incarnation, attempt = connection.execute(_SQL["run_claim"], claimed).fetchall()[0]
        orphaned = _held(connection, row.number)
        assert isinstance(started.fact, events.IncarnationStarted)
        fact = msgspec.structs.replace(
            started.fact,
            epoch=epoch,
            attempt=attempt,
            orphaned_holds=[hold.seq for hold in orphaned],
        )
        started = msgspec.structs.replace(started, fact=fact, superstep=row.superstep)
        _insert_incarnation(connection, row.number, incarnation, epoch, started)
        first = _advance_any(connection, row.number, 1, started.at) + 1
        apply.write(connection, row.number, incarnation, first, apply.prepare([started]))
        owner = Owner(row.id, row.number, Epoch(epoch), incarnation, attempt)
        return Claimed(owner, orphaned)

    async def append(
        self, owner: Owner, drafts: Sequence[Draft], *, finished: tuple[int, bytes] | None = None
    ) -> Appended | BudgetRefused | KeyTaken:
        rows = apply.prepare(drafts)
        at = drafts[-1].at if drafts else 0

        def work(connection: apsw.Connection) -> Appended | BudgetRefused | KeyTaken | object:
            refused = apply.refusal(connection, owner.number, rows)
            if refused is not None:
                return refused
            claim = {"count": len(rows), "at": at, "id": owner.number, "epoch": owner.epoch}
            before = connection.execute(_SQL["run_advance"], claim).fetchone()
            if before is None:
                return _STALE
            first = before[0] + 1
            apply.write(connection, owner.number, owner.incarnation, first, rows)
            if finished is not None:
                connection.execute(_SQL["finished_insert"], (owner.number, *finished))
            return Appended(Seq(first))

        result = await self._write(work, owner.run)
        if isinstance(result, Appended | BudgetRefused | KeyTaken):
            return result
        raise errors.StaleEpoch(owner.run, owner.epoch)

    async def act(self, run: RunId, drafts: Sequence[Draft]) -> Appended:
        rows = apply.prepare(drafts)

        def work(connection: apsw.Connection) -> Appended:
            found = connection.execute(_SQL["run_by_id"], (run,)).fetchone()
            if found is None:
                raise errors.RunNotFound(run, self.url)
            first = _advance_any(connection, found[0], len(rows), drafts[-1].at) + 1
            apply.write(connection, found[0], 0, first, rows)
            return Appended(Seq(first))

        return await self._write(work, run)

    async def _write(self, work: Callable[[apsw.Connection], T], run: RunId) -> T:
        try:
            return await self._writer.write(work)
        finally:
            for wake in self._subscribers.get(run, ()):
                wake.set()

    # -- reading --------------------------------------------------------------------------

    async def _read(self, work: Callable[[apsw.Connection], T]) -> T:
        def explained() -> T:
            try:
                return work(self._reading)
            except apsw.Error as error:
                raise store_error(error, self.url) from error

        return await asyncio.get_running_loop().run_in_executor(self._readers, explained)

    async def run(self, run: RunId) -> RunRow:
        return await self._read(lambda connection: self._find(connection, run))

    async def runs(self, *, limit: int, before: int | None) -> list[RunRow]:
        cursor = (1 << 62 if before is None else before, limit)
        return await self._read(
            lambda connection: [
                self._row(found) for found in connection.execute(_SQL["runs_page"], cursor)
            ]
        )

    async def load(self, run: RunId) -> Checkpoint:
        def work(connection: apsw.Connection) -> Checkpoint:
            connection.execute("BEGIN")  # one snapshot for all parts
            try:
                return self._load(connection, self._find(connection, run))
            finally:
                connection.execute("COMMIT")

        return await self._read(work)

    def _load(self, connection: apsw.Connection, row: RunRow) -> Checkpoint:
        def several(name: str, values: object) -> tuple[Event, ...]:
            found = connection.execute(_SQL[name], values).fetchall()  # type: ignore[arg-type]
            return tuple(self._event(connection, row, each) for each in found)

        low, high = _range(row.number, 0)
        since = (apply.row_id(row.number, row.committed_seq), high, 1 << 62)
        finished = connection.execute(_SQL["finished_of"], (row.number,)).fetchall()
        return Checkpoint(
            row=row,
            admitted=several("events_between", (low, high, 1))[0],
            pending=several("pending_of", (low, high)),
            state=several("state_of", {"run": row.number}),
            since=several("events_between", since),
            finished=tuple((delivery, data) for delivery, data in finished),
            incarnations=tuple(_incarnations(connection, row.number).values()),
        )

    async def events(self, run: RunId, *, after: int, limit: int) -> list[Event]:
        return await self._read(lambda c: self._between(c, "events_between", run, after, limit))

    async def outputs(self, run: RunId, *, after: int, limit: int) -> list[Event]:
        return await self._read(lambda c: self._between(c, "outputs_between", run, after, limit))

    def _between(
        self, connection: apsw.Connection, name: str, run: RunId, after: int, limit: int
    ) -> list[Event]:
        row = self._find(connection, run)
        found = connection.execute(_SQL[name], (*_range(row.number, after), limit)).fetchall()
        return [self._event(connection, row, each) for each in found]

    async def budget(self, run: RunId) -> Budget:
        return await self._read(
            lambda connection: apply.read_budget(connection, self._find(connection, run).number)
        )

    async def version(self) -> int:
        return await self._read(lambda connection: int(str(connection.pragma("data_version"))))

    def subscribe(self, run: RunId, wake: asyncio.Event) -> None:
        self._subscribers.setdefault(run, set()).add(wake)

    def unsubscribe(self, run: RunId, wake: asyncio.Event) -> None:
        waiting = self._subscribers.get(run, set())
        waiting.discard(wake)
        if not waiting:
            self._subscribers.pop(run, None)

    # -- rows -----------------------------------------------------------------------------

    def _find(self, connection: apsw.Connection, run: RunId) -> RunRow:
        found = connection.execute(_SQL["run_by_id"], (run,)).fetchone()
        if found is None:
            raise errors.RunNotFound(run, self.url)
        return self._row(found)

    def _row(self, found: Sequence[object]) -> RunRow:
        (number, run, workflow, fingerprint, state, code, reason, epoch, incarnation) = found[:9]
        (attempt, owner, seq, superstep, committed_seq, admitted_at, updated_at) = found[9:]
        return RunRow(
            id=run,  # type: ignore[arg-type]
            number=number,  # type: ignore[arg-type]
            workflow=workflow,  # type: ignore[arg-type]
            input_fingerprint=fingerprint,  # type: ignore[arg-type]
            state=state,  # type: ignore[arg-type]
            code=code,  # type: ignore[arg-type]
            reason=reason,  # type: ignore[arg-type]
            epoch=epoch,  # type: ignore[arg-type]
            incarnation=incarnation,  # type: ignore[arg-type]
            attempt=attempt,  # type: ignore[arg-type]
            alive=bool(owner) and owners.alive(self._path, str(owner)),
            seq=seq,  # type: ignore[arg-type]
            superstep=superstep,  # type: ignore[arg-type]
            committed_seq=committed_seq,  # type: ignore[arg-type]
            admitted_at=admitted_at,  # type: ignore[arg-type]
            updated_at=updated_at,  # type: ignore[arg-type]
        )

    def _event(self, connection: apsw.Connection, row: RunRow, found: Sequence[object]) -> Event:
        ident, kind, at, superstep, executor, incarnation, data = found
        try:
            fact = _DECODERS[str(kind)].decode(data)  # type: ignore[arg-type]
        except (KeyError, msgspec.DecodeError) as error:
            seq = int(ident) & 0xFFFFFFFF  # type: ignore[call-overload]
            why = f"event {seq} of run {row.id!r} cannot be read ({error}); restore a backup"
            raise errors.StoreFailed(self.url, why) from error
        return Event(
            run=row.id,
            seq=Seq(int(ident) & 0xFFFFFFFF),  # type: ignore[call-overload]
            kind=str(kind),
            at=at,  # type: ignore[arg-type]
            superstep=superstep,  # type: ignore[arg-type]
            executor=str(executor),
            incarnation=incarnation,  # type: ignore[arg-type]
            pid=self._pid(connection, row.number, incarnation),  # type: ignore[arg-type]
            fact=fact,
        )

    def _pid(self, connection: apsw.Connection, number: int, incarnation: int) -> int:
        if incarnation == 0:
            return 0
        known = self._incarnations.get(number, {})
        if incarnation not in known:
            known = self._incarnations[number] = _incarnations(connection, number)
        return known[incarnation].pid


def _insert_run(connection: apsw.Connection, admission: Admission, token: str) -> int:
    values = {
        "run_id": admission.run,
        "workflow": admission.workflow,
        "input_fingerprint": admission.input_fingerprint,
        "owner": token,
        "at": admission.admitted.at,
    }
    number = int(connection.execute(_SQL["run_insert"], values).fetchall()[0][0])
    connection.execute(_SQL["budget_insert"], (number, apply.BUDGET, admission.tokens_max))
    return number


def _insert_incarnation(
    connection: apsw.Connection, run: int, number: int, epoch: int, started: Draft
) -> None:
    assert isinstance(started.fact, events.IncarnationStarted)
    values = {
        "run": run,
        "number": number,
        "epoch": epoch,
        "pid": started.fact.pid,
        "host": started.fact.host,
        "code_version": started.fact.code_version,
        "at": started.at,
    }
    connection.execute(_SQL["incarnation_insert"], values)


def _advance_any(connection: apsw.Connection, run: int, count: int, at: int) -> int:
    values = {"count": count, "at": at, "id": run}
    return int(connection.execute(_SQL["run_advance_any"], values).fetchall()[0][0])


def _held(connection: apsw.Connection, run: int) -> tuple[Hold, ...]:
    found = connection.execute(_SQL["holds_held"], _range(run, 0)).fetchall()
    return tuple(
        Hold(Seq(ident & 0xFFFFFFFF), tokens, executor, superstep)
        for ident, tokens, executor, superstep in found
    )


def _incarnations(connection: apsw.Connection, run: int) -> dict[int, Incarnation]:
    found = connection.execute(_SQL["incarnations_of"], (run,)).fetchall()
    return {each[0]: Incarnation(*each) for each in found}


def _range(run: int, after: int) -> tuple[int, int]:
    return apply.row_id(run, after), apply.row_id(run + 1, 0)


def _connection(path: pathlib.Path, flags: int) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=flags, statementcachesize=200)
    connection.set_busy_timeout(_BUSY_MS)
    mode = connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "FULL")
    connection.pragma("fullfsync", 1)
    assert mode == "wal", mode
    assert connection.pragma("synchronous") == 2, "synchronous=FULL must hold"  # noqa: PLR2004
    return connection


def _refuse_foreign_file(path: pathlib.Path, url: str) -> None:
    """Tell a file that is no database, or a truncated one, before anything is written to it."""
    try:
        with path.open("rb") as file:
            header = file.read(100)
            size = path.stat().st_size
    except FileNotFoundError:
        return
    except IsADirectoryError as error:
        raise errors.StoreRefused(url, "it is a folder; name a file") from error
    if not header:
        return
    if not header.startswith(b"SQLite format 3\0"):
        raise errors.StoreRefused(url, "the file is not a SQLite database; choose another")
    page = int.from_bytes(header[16:18], "big")
    expected = (65536 if page == 1 else page) * int.from_bytes(header[28:32], "big")
    journal = path.with_name(path.name + "-wal")
    if size < expected and not (journal.exists() and journal.stat().st_size):
        raise errors.StoreFailed(
            url,
            f"the file is truncated ({size} of {expected} bytes); restore it from a backup",
        )


def _parse(url: str) -> tuple[pathlib.Path, bool]:
    scheme, separator, rest = url.partition("://")
    if scheme != "sqlite" or not separator or not rest.startswith("/") or rest == "/":
        raise errors.StoreRefused(
            url, "write it as sqlite:///relative.db or sqlite:////absolute/path.db"
        )
    location, _, query = rest.partition("?")
    options = urllib.parse.parse_qs(query)
    path = pathlib.Path(urllib.parse.unquote(location[1:])).absolute()
    return path, options.get("network") == ["allow"]
