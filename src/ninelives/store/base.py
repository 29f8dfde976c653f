"""The contract that every store keeps, at the level of meaning: runs, owners, journals.

A store gives each fact its `seq` in the transaction that commits it, keeps the views that
recovery needs (pending messages, state, holds, keys) in that same transaction, and refuses
writes under an old epoch. Facts are durable when a call returns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from ninelives.ids import Epoch, RunId, Seq
from ninelives.log.events import Draft, Event
from ninelives.store.budgets import Budgets, RunBudget
from ninelives.store.notes import Note, Notes
from ninelives.store.outbox import Outbox

RunState = Literal["running", "waiting", "parked", "failed", "completed", "cancelled"]


@dataclass(frozen=True, slots=True)
class RunRow:
    """What the store knows of a run without reading its journal.

    `state` is `running` for owned and for interrupted runs alike; `alive` tells them apart.
    """

    id: RunId
    number: int
    workflow: str
    input_fingerprint: str
    state: RunState
    code: str
    reason: str
    epoch: Epoch
    incarnation: int
    attempt: int
    alive: bool
    deaths: int
    seq: Seq
    superstep: int
    committed_seq: Seq
    admitted_at: int
    updated_at: int


@dataclass(frozen=True, slots=True)
class Owner:
    """One process's right to write to one run, fenced by `epoch`."""

    run: RunId
    number: int
    epoch: Epoch
    incarnation: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Incarnation:
    """A process that owned a run."""

    number: int
    epoch: Epoch
    pid: int
    host: str
    started_at: int
    code_version: str


@dataclass(frozen=True, slots=True)
class Hold:
    """A reservation that still counts although its process is dead."""

    seq: Seq
    tokens: int
    executor: str
    superstep: int


@dataclass(frozen=True, slots=True)
class Admission:
    """A run that is to exist: `admitted` and `started` become its first two events.

    `notes` are written in the same transaction, if the run is admitted in it.
    """

    run: RunId
    workflow: str
    input_fingerprint: str
    budget: RunBudget
    admitted: Draft
    started: Draft
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class Claimed:
    """Ownership, with the holds that earlier owners left behind (they stay counted)."""

    owner: Owner
    orphaned: tuple[Hold, ...]


@dataclass(frozen=True, slots=True)
class OwnedElsewhere:
    """A living process owns the run."""

    pid: int
    host: str
    since: int


@dataclass(frozen=True, slots=True)
class Stuck:
    """So many owners in a row have died without progress; the run was parked instead."""

    deaths: int


@dataclass(frozen=True, slots=True)
class Appended:
    """The seq of the first fact that was appended; the others follow without a hole.

    `cancelled`: a person wants the run to end.
    """

    first: Seq
    cancelled: bool = False


@dataclass(frozen=True, slots=True)
class BudgetRefused:
    """A budget does not admit the call; nothing was written."""

    code: Literal["BudgetHalted", "BudgetExceeded", "ModelUnpriced"]
    reason: str
    budget: str


@dataclass(frozen=True, slots=True)
class KeyTaken:
    """The idempotency key is in use; nothing was written.

    `seq` is its intent's event in `run`, `ended` that of its outcome (0 = none yet). `other`
    says what the key is used for where that is no effect of a journal that can be read.
    """

    run: RunId
    seq: Seq
    ended: Seq
    state: str
    other: str = ""


@dataclass(frozen=True, slots=True)
class OpenEffect:
    """An effect that was begun and whose outcome is not known."""

    key: str
    at: int
    executor: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """All that recovery needs, as of the last committed superstep, and what came after it.

    `since` holds the facts of the superstep under way; `finished` the private work of its
    handlers that already ended, by delivery.
    """

    row: RunRow
    admitted: Event
    pending: tuple[Event, ...]
    state: tuple[Event, ...]
    since: tuple[Event, ...]
    finished: tuple[tuple[int, bytes], ...]
    incarnations: tuple[Incarnation, ...]


class Store(Protocol):
    """Durable journals and their views."""

    url: str
    outbox: Outbox
    budgets: Budgets
    notes: Notes

    async def open(self) -> None:
        """Open or create the store.

        Raises:
            StoreRefused: not a database of ours, a newer version, or a network file system.
            StoreFailed: damaged or unreadable.
        """
        ...

    async def close(self) -> None:
        """Let go of every run owned here; the runs stay resumable."""
        ...

    async def admit(self, admission: Admission) -> Owner | RunRow:
        """Create a run and own it, in one transaction; or return the run that has the id.

        Raises:
            BudgetUnknown: a budget that it names does not exist; nothing was written.
        """
        ...

    async def claim(
        self, run: RunId, started: Draft, *, take_over: bool, retry: bool, deaths_max: int | None
    ) -> Claimed | OwnedElsewhere | Stuck:
        """Own a run whose owner is dead (or any, by `take_over`) under a new epoch.

        A run of which `deaths_max` owners in a row died without recording progress is parked
        instead (None: claimed all the same). The count rises in this transaction.

        `started` (an IncarnationStarted) is completed with epoch, attempt and orphaned holds.
        `retry` counts a new attempt: failures of the last one are tried again.
        """
        ...

    async def append(
        self, owner: Owner, drafts: Sequence[Draft], *, finished: tuple[int, bytes] | None = None
    ) -> Appended | BudgetRefused | KeyTaken:
        """Append facts, all or none, with everything that follows from them.

        `finished` keeps one handler's work privately until the superstep's commit. A crash
        before the return leaves all or nothing.

        Raises:
            StaleEpoch: another process owns the run now; nothing was written.
            StoreFailed: the disk is full or failing; nothing was written.
        """
        ...

    async def act(
        self, run: RunId, drafts: Sequence[Draft], *, if_unowned: Sequence[Draft] = ()
    ) -> Appended:
        """Append a person's facts; needs no ownership.

        `if_unowned` follow in the same transaction if no living process owns the run.

        Raises:
            RunEnded: the run has completed or was cancelled; nothing was written.
        """
        ...

    async def run(self, run: RunId) -> RunRow:
        """One run.

        Raises:
            RunNotFound: no such run.
        """
        ...

    async def runs(self, *, limit: int, before: int | None) -> list[RunRow]:
        """Runs, newest first; `before` is the `number` of the last one seen."""
        ...

    async def load(self, run: RunId) -> Checkpoint:
        """Read a run's last checkpoint; its cost does not grow with the run's length."""
        ...

    async def events(self, run: RunId, *, after: int, limit: int) -> list[Event]:
        """Read a part of the journal, in order, from the event behind `after`."""
        ...

    async def outputs(self, run: RunId, *, after: int, limit: int) -> list[Event]:
        """Read a part of the journal's outputs only."""
        ...

    async def identity(self) -> str:
        """What names this store among all others, for as long as it or a copy of it exists."""
        ...

    async def key(self, key: str) -> KeyTaken | None:
        """Who uses an idempotency key, and how its effect or message stands; None = nobody."""
        ...

    async def open_effects(self, run: RunId) -> list[OpenEffect]:
        """The effects of a run whose outcome is not known, in the order of their intents."""
        ...

    async def check(self) -> list[str]:
        """What is damaged in the store's own structure, or contradicts the journals."""
        ...

    async def version(self) -> int:
        """A number that changes when any process commits: cheap enough to poll."""
        ...

    def subscribe(self, run: RunId, wake: asyncio.Event) -> None:
        """Set `wake` after each commit of this process to `run`."""
        ...

    def unsubscribe(self, run: RunId, wake: asyncio.Event) -> None:
        """Undo `subscribe`."""
        ...
