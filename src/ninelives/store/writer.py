"""Group commit: one thread writes for all runs of a process, one fsync serves all who wait.

A unit is a function on the connection. Units that are waiting when the writer comes round are
committed together; a lone unit is committed at once, no timer delays it. A unit that finds
that it may not write says so with its return value before it has written anything.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import apsw

from ninelives import clock, errors, faults
from ninelives.store.owners import Turnstile

T = TypeVar("T")

GROUP_MAX = 1000
WARN_SECONDS = 5.0
logger = logging.getLogger(__name__)
_AMBIGUOUS = (apsw.IOError,)


@dataclass(slots=True)
class Unit(Generic[T]):
    """One part of a group commit, and who waits for it."""

    work: Callable[[apsw.Connection], T]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[T]
    result: T | None = None
    error: BaseException | None = None

    def deliver(self) -> None:
        if self.future.cancelled():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)  # type: ignore[arg-type]


class Writer:
    """The only thread that writes to the store's file in this process."""

    def __init__(self, connection: apsw.Connection, turnstile: Turnstile, url: str) -> None:
        self._connection = connection
        self._turnstile = turnstile
        self._url = url
        self._units: queue.SimpleQueue[Unit[object] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="ninelives-writer", daemon=True)
        self._watchdog = threading.Thread(target=self._watch, name="ninelives-watch", daemon=True)
        self._stopped = threading.Event()
        self._waiting_since: float | None = None
        self.commits = 0

    def start(self) -> None:
        self._thread.start()
        self._watchdog.start()

    async def stop(self) -> None:
        """Commit what is queued, then end the thread."""
        self._units.put(None)
        await asyncio.to_thread(self._thread.join)
        self._stopped.set()
        await asyncio.to_thread(self._watchdog.join)

    def _watch(self) -> None:
        """Name the process that keeps this one from writing: it may be stopped in a commit."""
        while not self._stopped.wait(WARN_SECONDS):
            since = self._waiting_since
            if since is None or clock.monotonic_seconds() - since < WARN_SECONDS:
                continue
            logger.warning(
                "store %s: waiting to write for %d seconds; process %d holds the write lock. If "
                "it is stopped or hung, continue it or kill it: nothing that is durable is lost",
                self._url,
                clock.monotonic_seconds() - since,
                self._turnstile.holder(),
            )

    async def write(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run `work` in a transaction and return its result once that is durable.

        A caller that is cancelled meanwhile does not undo the write.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._units.put(Unit(work, loop, future))  # type: ignore[arg-type]
        return await future

    def _serve(self) -> None:
        going = True
        while going:
            group: list[Unit[object]] = []
            unit = self._units.get()
            while unit is not None:
                group.append(unit)
                if len(group) == GROUP_MAX or self._units.empty():
                    break
                unit = self._units.get()
            going = unit is not None
            if group:
                self._commit(group)
                _deliver(group)

    def _commit(self, group: list[Unit[object]]) -> None:
        error = self._try(group)
        if error is None:
            return
        if len(group) == 1 or isinstance(error, _AMBIGUOUS):
            for unit in group:
                unit.error = self._explain(error)
            return
        # One bad part must not fail its neighbours: each once more, by itself.
        for unit in group:
            alone = self._try([unit])
            if alone is not None:
                unit.error = self._explain(alone)

    def _try(self, group: list[Unit[object]]) -> BaseException | None:
        connection = self._connection
        self._waiting_since = clock.monotonic_seconds()
        try:
            with self._turnstile.turn():
                self._waiting_since = None
                connection.execute("BEGIN IMMEDIATE")
                for unit in group:
                    unit.result = unit.work(connection)
                faults.reach(faults.Boundary.COMMIT_BEFORE)
                connection.execute("COMMIT")
                self.commits += 1
        except BaseException as error:  # noqa: BLE001 - delivered to the waiting tasks
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            return error
        faults.reach(faults.Boundary.COMMIT_AFTER)
        return None

    def _explain(self, error: BaseException) -> BaseException:
        return store_error(error, self._url)


def _deliver(group: list[Unit[object]]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[Unit[object]]] = {}
    for unit in group:
        by_loop.setdefault(unit.loop, []).append(unit)
    for loop, units in by_loop.items():
        try:
            loop.call_soon_threadsafe(_deliver_in_loop, units)
        except RuntimeError:
            continue  # the loop is closed: nobody waits any more, the facts are durable


def _deliver_in_loop(units: list[Unit[object]]) -> None:
    for unit in units:
        unit.deliver()


def store_error(error: BaseException, url: str) -> BaseException:
    """Say in our words what SQLite reports; other errors pass unchanged."""
    match error:
        case apsw.FullError():
            why = "the disk is full; nothing of this commit was kept. Free space, then resume"
        case apsw.CorruptError() | apsw.NotADBError():
            why = f"the file is damaged ({error}); restore it from a backup"
        case apsw.TooBigError():
            why = "a value is too large for SQLite; nothing of this commit was kept"
        case apsw.BusyError():
            why = "another program holds the file's write lock; try again"
        case apsw.ReadOnlyError():
            why = "the file or its folder is read-only"
        case apsw.Error():
            why = f"SQLite reports {type(error).__name__}: {error}. Check the disk, then resume"
        case _:
            return error
    return errors.StoreFailed(url, why)
