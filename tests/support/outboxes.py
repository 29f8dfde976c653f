"""Outboxes with something in them, and a clock that a test moves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec

from ninelives import codec
from ninelives.engine.runtime import Runtime
from ninelives.ids import RunId
from ninelives.log import events, invariants
from ninelives.log.events import Event
from ninelives.store.base import Store
from ninelives.store.outbox import Letter, Parcel
from support import facts


@dataclass
class Clock:
    """The time in milliseconds, as long as nobody moves it."""

    ms: int = 1_000

    def __call__(self) -> int:
        return self.ms


@dataclass
class Receiver:
    """What a channel's function has received, in order; `trouble` is raised, once for each."""

    got: list[tuple[str, object]] = field(default_factory=list)
    trouble: list[BaseException] = field(default_factory=list)

    async def take(self, payload: object, *, key: str) -> None:
        self.got.append((key, payload))
        if self.trouble:
            raise self.trouble.pop(0)

    def take_in_a_thread(self, payload: object) -> None:
        self.got.append(("", payload))

    @property
    def keys(self) -> list[str]:
        return [key for key, _ in self.got]


def message(run: str, key: object, channel: str, payload: object = 1) -> events.OutboxQueued:
    raw = msgspec.Raw(codec.encode(payload, codec.GLOBAL))
    return events.OutboxQueued(channel=channel, key=f"{run}:{key}", payload=raw)


async def fill(
    store: Store, run: str, keys: Sequence[object], *, channel: str = "c", payload: object = 1
) -> None:
    """Put messages into the outbox, in one superstep of a new run that completes."""
    await put(store, run, [message(run, key, channel, payload) for key in keys])


async def put(store: Store, run: str, queued: Sequence[events.OutboxQueued]) -> None:
    """As `fill`, with facts."""
    owner = await facts.admit(store, run)
    await facts.append(
        store,
        owner,
        *queued,
        events.HandlerFinished(delivery=1, messages=[1]),
        events.SuperstepCommitted(handlers=1),
        events.RunCompleted(),
        events.IncarnationEnded(cause="completed"),
    )


def parcel(key: str, payload: object, *, attempt: int = 1) -> Parcel:
    """A parcel as a relay hands it to a channel."""
    raw = msgspec.Raw(codec.encode(payload, codec.GLOBAL))
    return Parcel(1, RunId("r"), 1, "c", key, raw, attempt, 1_700_000_000_000)  # type: ignore[arg-type]


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    """An open store, which is whole again when the test has done with it."""
    async with Runtime(url) as runtime:
        yield runtime.store
        assert await runtime.store.check() == []
        for row in await runtime.runs():
            assert invariants.check(await journal(runtime.store, row.id)) == []


async def journal(store: Store, run: str = "r") -> list[Event]:
    return await store.events(RunId(run), after=0, limit=100_000)


async def kinds(store: Store, run: str = "r") -> list[str]:
    """What the journal says of the outbox after the run's end."""
    found = [event.kind for event in await journal(store, run)]
    return found[found.index("incarnation_ended") + 1 :]


async def letter(store: Store, state: str = "queued") -> Letter:
    """The one message in a state."""
    (found,) = await store.outbox.letters(state, run=None, limit=9)  # type: ignore[arg-type]
    return found
