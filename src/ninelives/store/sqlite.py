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
from ninelives.store import apply, booking, checks, migrate, owners, rows, sqlite_notes
from ninelives.store.base import (
    Admission,
    Appended,
    BudgetRefused,
    Checkpoint,
    Claimed,
    Incarnation,
    KeyTaken,
    OpenEffect,
    OwnedElsewhere,
    Owner,
    RunRow,
    Stuck,
)
from ninelives.store.budgets import Budgets
from ninelives.store.notes import Notes
from ninelives.store.outbox import Outbox
from ninelives.store.sqlite_budgets import SqliteBudgets
from ninelives.store.sqlite_outbox import SqliteOutbox
from ninelives.store.writer import Writer, store_error

T = TypeVar("T")
_BUSY_MS = 60_000
_STALE = object()


class SqliteStore:
    """A `Store` on one SQLite file; see `store.base.Store` for what each call promises."""

    def __init__(self, url: str, *, create: bool = True) -> None:
        self.url = url
        self._create = create
        self._open = False
        self._path, self._network = _parse(url)
        self._subscribers: dict[RunId, set[asyncio.Event]] = {}
        self._incarnations: dict[int, dict[int, Incarnation]] = {}
        self.budgets: Budgets = SqliteBudgets(self._path, url, self._write, self._read)
        self.outbox: Outbox = SqliteOutbox(self._path, url, self._write, self._read)
        self.notes: Notes = sqlite_notes.SqliteNotes(self._write, self._read)

    async def open(self) -> None:
        if not self._network:
            owners.refuse_network_disk(self._path, self.url)
        self._readers = ThreadPoolExecutor(1, thread_name_prefix="ninelives-reader")
        await asyncio.get_running_loop().run_in_executor(self._readers, self._connect)
        self._writer.start()
        self._open = True

    def _connect(self) -> None:
        try:
            if not self._create and not self._path.exists():
                raise errors.StoreRefused(
                    self.url, "there is no such file; nothing was created. Check --store"
                )
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
                self.url, "the file cannot be opened; does its folder exist, may you write there?"
            ) from error
        except (apsw.Error, OSError) as error:
            raise store_error(error, self.url) from error
        self._writer = Writer(writing, self._turnstile, self.url)
        self._writing = writing

    async def close(self) -> None:
        self._open = False
        await self._writer.stop()
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._readers, self._reading.close)
        self._readers.shutdown()
        self._writing.close()
        self._turnstile.close()
        self._lock.release()

    # -- writing --------------------------------------------------------------------------

    async def admit(self, admission: Admission) -> Owner | RunRow:
        prepared = apply.prepare([admission.admitted, admission.started])

        def work(connection: apsw.Connection) -> Owner | RunRow:
            found = rows.one(connection, "run_by_id", (admission.run,))
            if found is not None:
                return self._row(found)
            number = _insert_run(connection, admission, self._lock.token)
            missing = booking.open_budgets(connection, number, admission.run, admission.budget)
            if missing is not None:
                raise errors.BudgetUnknown(missing, self.url)
            _insert_incarnation(connection, number, 1, 1, admission.started)
            apply.write(connection, number, 1, 1, prepared)
            _advance_any(connection, number, len(prepared), admission.started.at)
            sqlite_notes.insert(connection, admission.notes)
            return Owner(admission.run, number, Epoch(1), 1, 1)

        return await self._write(work, admission.run)

    async def claim(
        self, run: RunId, started: Draft, *, take_over: bool, retry: bool, deaths_max: int | None
    ) -> Claimed | OwnedElsewhere | Stuck:
        def work(connection: apsw.Connection) -> Claimed | OwnedElsewhere | Stuck:
            row = self._find(connection, run)
            if row.state in {"completed", "cancelled"}:
                raise errors.RunEnded(run, row.state)
            if row.alive and not take_over:
                last = rows.incarnations(connection, row.number)[row.incarnation]
                return OwnedElsewhere(last.pid, last.host, last.started_at)
            deaths = _deaths(connection, row)
            if deaths_max is not None and deaths >= deaths_max:
                _park_stuck(connection, row, deaths, started.at)
                return Stuck(deaths)
            return self._take(connection, row, started, retry=retry)

        return await self._write(work, run)

    def _take(
        self, connection: apsw.Connection, row: RunRow, started: Draft, *, retry: bool
    ) -> Claimed:
        claimed = {"attempts": int(retry), "owner": self._lock.token, "id": row.number}
        epoch, incarnation, attempt = rows.fetch(connection, "run_claim", claimed)[0]
        orphaned = rows.held(connection, row.number)
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
        prepared = apply.prepare(drafts)
        at = drafts[-1].at if drafts else 0

        def work(connection: apsw.Connection) -> Appended | BudgetRefused | KeyTaken | object:
            refused = apply.refusal(connection, owner.number, prepared)
            if refused is not None:
                return refused
            fence = {"count": len(prepared), "at": at, "id": owner.number, "epoch": owner.epoch}
            before = rows.one(connection, "run_advance", fence)
            if before is None:
                return _STALE
            first = before[0] + 1
            apply.write(connection, owner.number, owner.incarnation, first, prepared)
            if finished is not None:
                rows.fetch(connection, "finished_insert", (owner.number, *finished))
            return Appended(Seq(first), bool(before[1]))

        result = await self._write(work, owner.run)
        if isinstance(result, Appended | BudgetRefused | KeyTaken):
            return result
        raise errors.StaleEpoch(owner.run, owner.epoch)

    async def act(
        self, run: RunId, drafts: Sequence[Draft], *, if_unowned: Sequence[Draft] = ()
    ) -> Appended:
        always, unowned = apply.prepare(drafts), apply.prepare(if_unowned)

        def work(connection: apsw.Connection) -> Appended:
            row = self._find(connection, run)
            if row.state in {"completed", "cancelled"}:
                raise errors.RunEnded(run, row.state)
            prepared = always if row.alive else [*always, *unowned]
            first = _advance_any(connection, row.number, len(prepared), drafts[-1].at) + 1
            apply.write(connection, row.number, 0, first, prepared)
            return Appended(Seq(first))

        return await self._write(work, run)

    async def _write(self, work: Callable[[apsw.Connection], T], run: RunId | None) -> T:
        self._check_open()
        try:
            return await self._writer.write(work)
        finally:
            for wake in self._subscribers.get(run, ()) if run is not None else ():
                wake.set()

    # -- reading --------------------------------------------------------------------------

    def _check_open(self) -> None:
        if not self._open:
            message = f"store {self.url} is not open; write `async with Runtime(...) as runtime:`"
            raise RuntimeError(message)

    async def _read(self, work: Callable[[apsw.Connection], T]) -> T:
        self._check_open()

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
                self._row(found) for found in rows.fetch(connection, "runs_page", cursor)
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
        def several(name: str, values: rows.Values) -> tuple[Event, ...]:
            found = rows.fetch(connection, name, values)
            return tuple(self._event(connection, row, each) for each in found)

        low, high = rows.span(row.number, 0)
        since = (*rows.span(row.number, row.committed_seq), 1 << 62)
        finished = rows.fetch(connection, "finished_of", (row.number,))
        return Checkpoint(
            row=row,
            admitted=several("events_between", (low, high, 1))[0],
            pending=several("pending_of", (low, high)),
            state=several("state_of", {"run": row.number}),
            since=several("events_between", since),
            finished=tuple((delivery, data) for delivery, data in finished),
            incarnations=tuple(rows.incarnations(connection, row.number).values()),
        )

    async def events(self, run: RunId, *, after: int, limit: int) -> list[Event]:
        return await self._read(lambda c: self._between(c, "events_between", run, after, limit))

    async def outputs(self, run: RunId, *, after: int, limit: int) -> list[Event]:
        return await self._read(lambda c: self._between(c, "outputs_between", run, after, limit))

    def _between(
        self, connection: apsw.Connection, name: str, run: RunId, after: int, limit: int
    ) -> list[Event]:
        row = self._find(connection, run)
        found = rows.fetch(connection, name, (*rows.span(row.number, after), limit))
        return [self._event(connection, row, each) for each in found]

    async def identity(self) -> str:
        return await self._read(migrate.identity)

    async def key(self, key: str) -> KeyTaken | None:
        return await self._read(lambda connection: rows.key_taken(connection, key))

    async def open_effects(self, run: RunId) -> list[OpenEffect]:
        return await self._read(lambda connection: rows.open_effects(connection, run))

    async def check(self) -> list[str]:
        return await self._read(checks.run)

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
        found = rows.one(connection, "run_by_id", (run,))
        if found is None:
            raise errors.RunNotFound(run, self.url)
        return self._row(found)

    def _row(self, found: rows.Row) -> RunRow:
        return rows.run(found, alive=owners.alive(self._path, rows.owner(found)))

    def _event(self, connection: apsw.Connection, row: RunRow, found: rows.Row) -> Event:
        pid = self._pid(connection, row.number, found[5])
        return rows.event(row, found, pid=pid, url=self.url)

    def _pid(self, connection: apsw.Connection, number: int, incarnation: int) -> int:
        if incarnation == 0:
            return 0  # a person's act
        known = self._incarnations.get(number, {})
        if incarnation not in known:
            known = self._incarnations[number] = rows.incarnations(connection, number)
        return known[incarnation].pid


def _insert_run(connection: apsw.Connection, admission: Admission, token: str) -> int:
    values = {
        "run_id": admission.run,
        "workflow": admission.workflow,
        "input_fingerprint": admission.input_fingerprint,
        "owner": token,
        "at": admission.admitted.at,
    }
    return int(rows.fetch(connection, "run_insert", values)[0][0])


def _deaths(connection: apsw.Connection, row: RunRow) -> int:
    """Count a death without progress, in the transaction of the claim that finds it."""
    found = rows.one(connection, "run_by_id", (row.id,))
    if found is None or row.state != "running" or not rows.died(found, alive=row.alive):
        return 0 if row.state == "running" else row.deaths
    low, high = rows.row_id(row.number, row.committed_seq), rows.span(row.number, 0)[1]
    progress = rows.one(connection, "run_progress", (low, high, row.incarnation))
    deaths = 1 if progress is not None else row.deaths + 1
    rows.fetch(connection, "run_deaths", (deaths, row.number))
    return deaths


def _park_stuck(connection: apsw.Connection, row: RunRow, deaths: int, at: int) -> None:
    pending = rows.fetch(connection, "pending_of", rows.span(row.number, 0))
    where = [events.message_target(found[1], found[6]) for found in pending]
    reason = (
        f"{deaths} processes in a row died without recording anything, while handling "
        f"superstep {row.superstep + 1} ({', '.join(dict.fromkeys(where))})"
    )
    parked = Draft(
        fact=events.RunParked(code="Stuck", reason=reason), at=at, superstep=row.superstep
    )
    first = _advance_any(connection, row.number, 1, at) + 1
    apply.write(connection, row.number, 0, first, apply.prepare([parked]))
    rows.fetch(connection, "run_release", (row.number,))


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
    rows.fetch(connection, "incarnation_insert", values)


def _advance_any(connection: apsw.Connection, run: int, count: int, at: int) -> int:
    values = {"count": count, "at": at, "id": run}
    return int(rows.fetch(connection, "run_advance_any", values)[0][0])


def _connection(path: pathlib.Path, flags: int) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=flags, statementcachesize=200)
    connection.set_busy_timeout(_BUSY_MS)
    mode = connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "FULL")
    connection.pragma("fullfsync", 1)
    assert mode == "wal", mode
    assert connection.pragma("synchronous") == 2, "synchronous=FULL must hold"
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
    if not header or _is_to_be_recovered(path):
        return
    if not header.startswith(b"SQLite format 3\0"):
        raise errors.StoreRefused(url, "the file is not a SQLite database; choose another")
    page = int.from_bytes(header[16:18], "big")
    expected = (65536 if page == 1 else page) * int.from_bytes(header[28:32], "big")
    if size < expected:
        raise errors.StoreFailed(
            url,
            f"the file is truncated ({size} of {expected} bytes); restore it from a backup",
        )


def _is_to_be_recovered(path: pathlib.Path) -> bool:
    """Whether SQLite holds pages of the file beside it: power loss may have torn it, header too.

    SQLite reads them from there, and says itself if the file is not its own.
    """
    beside = (path.with_name(path.name + suffix) for suffix in ("-wal", "-journal"))
    return any(each.exists() and each.stat().st_size for each in beside)


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
