"""One handling of one delivered message: its records, its branches, and its private work.

What a handler sends, yields and changes is kept here, unseen by anybody, until its superstep
commits. Facts that need no commit of their own (`Replayed` notes) wait here for the next one.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

import msgspec

from ninelives import clock, errors
from ninelives.durable import deadlines
from ninelives.durable.journal import Journal
from ninelives.durable.operations import Operations
from ninelives.durable.replay import Found, Kind, Record, Replay
from ninelives.durable.state import View
from ninelives.ids import Seq
from ninelives.log import events
from ninelives.log.events import Fact, Place
from ninelives.store.base import Appended, BudgetRefused, KeyTaken

_TURNS = 20
_replace = msgspec.structs.replace


@dataclass(slots=True)
class StopSignal:
    """Set once when the process is to end in an orderly way."""

    requested: bool = False
    _event: asyncio.Event = field(default_factory=asyncio.Event)

    def request(self) -> None:
        """Ask for the end."""
        self.requested = True
        self._event.set()

    async def wait(self, seconds: float) -> None:
        """Wait for so long, or until the end is asked for."""
        with contextlib.suppress(deadlines.Expired):
            await deadlines.within(self._event.wait(), seconds)


@dataclass(slots=True)
class Branch:
    """A line of calls inside a handler; `ctx.gather` opens new ones."""

    path: str = ""
    gathers: int = 0
    under_way: list[Call] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Call:
    """A durable operation that is being carried out."""

    overlapped: bool = False


_branch: contextvars.ContextVar[Branch] = contextvars.ContextVar("ninelives_branch")
handling: contextvars.ContextVar[str] = contextvars.ContextVar("ninelives_handling", default="")
"""The executor whose handler the running code belongs to, or empty."""


@dataclass(slots=True)
class Delivery:
    """The state of one handling, from delivery to the superstep's commit."""

    id: int
    messages: tuple[int, ...]
    sources: tuple[str, ...]
    executor: str
    superstep: int
    journal: Journal
    replay: Replay
    shared: View
    local: View
    coarse: bool = False
    stopping: StopSignal = field(default_factory=StopSignal)
    root: Branch = field(default_factory=Branch)
    notes: list[Fact] = field(default_factory=list)
    at_commit: list[Fact] = field(default_factory=list)
    outputs: list[Fact] = field(default_factory=list)
    queued: list[events.OutboxQueued] = field(default_factory=list)
    sent: list[tuple[object, msgspec.Raw, str | None]] = field(default_factory=list)
    interrupt: errors.Interrupt | None = None
    operations: Operations = field(default_factory=Operations)

    def branch(self) -> Branch:
        """The branch that the running task belongs to."""
        return _branch.get(self.root)

    def enter(self, branch: Branch) -> None:
        """Make the running task (and what it starts) belong to `branch`."""
        _branch.set(branch)

    def find(self, kind: Kind, name: str, fingerprint: str) -> Found:
        """Number a call and look for its record."""
        self.check()
        if self.coarse and kind != "effect":
            number = self.replay.number
            return Found(number(kind, self.branch().path, name, fingerprint), None)
        return self.replay.find(kind, self.branch().path, name, fingerprint)

    def check(self) -> None:
        """Unwind the handler if it was interrupted before, or if the process is to stop."""
        if self.interrupt is not None:
            raise self.interrupt
        if self.operations.closed:
            raise errors.HandlerEnded(self.executor, self.superstep)
        if self.journal.cancelled:
            raise errors.Cancelled
        if self.stopping.requested:
            raise errors.Stopped

    async def wait_until(self, due_at: int) -> None:
        """Wait until the clock's label says `due_at`; a request to stop unwinds the handler."""
        while (left := due_at - self.journal.now()) > 0:
            self.check()
            await self._pause(left / 1000)
        self.check()

    async def _pause(self, seconds: float) -> None:
        """Wait for so long, or until the process is to stop or the handler is unwound."""
        stops = asyncio.ensure_future(self.stopping.wait(seconds))
        unwinds = asyncio.ensure_future(self.operations.closing.wait())
        try:
            await asyncio.wait((stops, unwinds), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stops.cancel()
            unwinds.cancel()

    def unwind(self, interrupt: errors.Interrupt) -> errors.Interrupt:
        """Remember why the handler ends here, should user code swallow it."""
        if self.interrupt is None:
            self.interrupt = interrupt
            self.operations.closing.set()
        return interrupt

    def park(self, code: str, reason: str) -> errors.Interrupt:
        """The interrupt that parks the run for a person."""
        return self.unwind(errors.Parked(code, reason))

    @asynccontextmanager
    async def call(self) -> AsyncGenerator[Call]:
        """Mark an operation as under way in its branch, and whether others ran beside it."""
        branch, call = self.branch(), Call()
        branch.under_way.append(call)
        if len(branch.under_way) > 1:
            for each in branch.under_way:
                each.overlapped = True
        try:
            yield call
        finally:
            branch.under_way.remove(call)

    async def require_no_leftovers(self, what: str, kind: Kind) -> None:
        """Let siblings ask for their records first; then a leftover record is a divergence.

        In the coarse mode everything but effects runs again, before recorded effects too.

        Raises:
            Parked: the branch holds records that this code does not ask for.
        """
        if self.coarse and kind != "effect":
            return
        branch = self.branch()
        for _ in range(_TURNS):
            if not self._unasked(branch):
                return
            await clock.sleep(0)
        left = self._unasked(branch)
        if left:
            raise self.park("Divergence", self._diverged(what, left))

    def _unasked(self, branch: Branch) -> list[Record]:
        left = self.replay.leftovers(branch.path)
        return [each for each in left if each.kind == "effect" or not each.place.concurrent]

    def _diverged(self, what: str, left: list[Record]) -> str:
        first = left[0]
        name = first.intent.key if first.intent is not None else first.place.name
        return (
            f"executor {self.executor!r} asks for {what}, which is not recorded, while its "
            f"recorded {first.kind} {name!r} (event {first.seq}) was not asked for: the code "
            "took another path than before. Restore the code that recorded it, then resume"
        )

    def note(self, found: Found, operation: Literal["step", "model", "effect"]) -> None:
        """Note that a record answered a call; durable with the next commit."""
        record = found.record
        assert record is not None
        key = record.intent.key if record.intent is not None else ""
        self.notes.append(
            events.Replayed(
                operation=operation,
                place=found.place,
                of=record.outcome_seq or record.seq,
                key=key,
                drift=found.drift,
            )
        )

    def placed(self, place: Place, call: Call) -> Place:
        """The place with what is known by now of its neighbours."""
        return _replace(place, concurrent=True) if call.overlapped else place

    async def append(self, *facts: Fact) -> Seq:
        """Append facts of this delivery, the waiting notes first; returns the first fact's seq."""
        notes, self.notes = self.notes, []
        try:
            first = await self.journal.append(
                [*notes, *facts], superstep=self.superstep, executor=self.executor
            )
        except errors.Interrupt as interrupt:
            raise self.unwind(interrupt) from None
        return Seq(first + len(notes))

    async def offer(self, fact: Fact) -> Appended | BudgetRefused | KeyTaken:
        """Append one fact that may be refused; the notes stay when it is."""
        if isinstance(fact, events.EffectIntended) and fact.key in self.journal.promised:
            other = "an outbox message of this superstep"
            return KeyTaken(self.journal.run, Seq(0), Seq(0), "queued", other)
        notes = list(self.notes)
        try:
            result = await self.journal.offer(
                [*notes, fact], superstep=self.superstep, executor=self.executor
            )
        except errors.Interrupt as interrupt:
            raise self.unwind(interrupt) from None
        if isinstance(result, Appended):
            del self.notes[: len(notes)]
            return replace(result, first=Seq(result.first + len(notes)))
        return result
