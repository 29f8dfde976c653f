"""A run as its caller sees it: events, outputs, status, in whichever process it is worked on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from ninelives import codec
from ninelives.engine.runner import State, Status
from ninelives.ids import RunId
from ninelives.log import events
from ninelives.log.events import Event
from ninelives.store.base import Hold, RunRow, Store

BATCH = 500
POLL_SECONDS = 0.05
POLL_OWNED_SECONDS = 1.0


@dataclass(slots=True)
class Run:
    """A handle on one run.

    `seq_at_start` is the last event before this handle's process began to work on it (0 for a
    run that it admitted); `orphaned_holds` are reservations that dead processes left behind.
    """

    id: RunId
    store: Store
    registry: codec.Registry
    admitted_here: bool = False
    seq_at_start: int = 0
    orphaned_holds: tuple[Hold, ...] = ()
    task: asyncio.Task[Status] | None = field(default=None, repr=False)

    @property
    def owned_here(self) -> bool:
        """Whether this process works (or worked, to its end) on the run."""
        return self.task is not None

    async def status(self) -> Status:
        """How the run stands now.

        Raises:
            RunNotFound: no such run.
        """
        return status_of(await self.store.run(self.id))

    async def wait(self) -> Status:
        """Wait until nobody works on the run any more, and say how it stands.

        Raises:
            StaleEpoch: this process worked on it, and another took it over.
            StoreFailed: this process worked on it, and its store failed; it is resumable.
        """
        if self.task is not None:
            return await asyncio.shield(self.task)
        async for _ in self.watch(after=(await self.store.run(self.id)).seq):
            pass
        return await self.status()

    async def watch(self, after: int = 0, *, follow: bool = False) -> AsyncIterator[Event]:
        """The journal's events behind `after`, in order and without a hole, then live ones.

        Each is durable before it is seen. Ends when the run ends, parks, waits or loses its
        owner, unless `follow`. Take the last event's `seq` as the cursor to come back with.
        """
        wake = asyncio.Event()
        self.store.subscribe(self.id, wake)
        try:
            version = -1
            while True:
                wake.clear()
                row = await self.store.run(self.id)
                async for event in self.recorded(after):
                    after = event.seq
                    yield event
                if not follow and after >= row.seq and status_of(row).state != "running":
                    return
                version = await self._changed(wake, version)
        finally:
            self.store.unsubscribe(self.id, wake)

    async def recorded(self, after: int = 0) -> AsyncIterator[Event]:
        """The events that are recorded by now; waits for nothing."""
        while batch := await self.store.events(self.id, after=after, limit=BATCH):
            for event in batch:
                yield event
            after = batch[-1].seq
            if len(batch) < BATCH:
                return

    async def _changed(self, wake: asyncio.Event, version: int) -> int:
        """Wait for a commit here, or one of another process."""
        owned = self.task is not None and not self.task.done()
        while not wake.is_set():
            seconds = POLL_OWNED_SECONDS if owned else POLL_SECONDS
            try:
                await asyncio.wait_for(wake.wait(), seconds)
            except TimeoutError:
                present = await self.store.version()
                if present != version or owned:
                    return present
                if not (await self.store.run(self.id)).alive:
                    return present
        return version

    async def outputs(self) -> list[object]:
        """All outputs, once nobody works on the run any more.

        Raises:
            Undecodable: an output's type is not known here.
        """
        await self.wait()
        return [self.decode(event) async for event in self.output_events()]

    async def output_events(self, after: int = 0) -> AsyncIterator[Event]:
        """The outputs that are committed by now, as events."""
        while batch := await self.store.outputs(self.id, after=after, limit=BATCH):
            for event in batch:
                yield event
            after = batch[-1].seq

    def decode(self, event: Event) -> object:
        """The value of an output event."""
        assert isinstance(event.fact, events.Output | events.Intermediate)
        return codec.decode(event.fact.value, self.registry)


def status_of(row: RunRow) -> Status:
    """A run's status; `interrupted` is a run that nobody living works on."""
    state: State = row.state
    if state == "running" and not row.alive:
        reason = f"its process ended; go on with `ninelives resume {row.id}`"
        return Status("interrupted", "Interrupted", reason)
    return Status(state, row.code, row.reason)
