"""Where outbox messages go: a name, whoever delivers behind it, and how often that is tried.

A delivery is one attempt and nothing else: no channel repeats anything by itself. Whether and
when a message is sent again is decided in one place, the relay.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, runtime_checkable

from ninelives import codec, errors
from ninelives.durable import calls, deadlines
from ninelives.store.outbox import Parcel

T = TypeVar("T")
_DOUBLINGS_MAX = 60


@runtime_checkable
class Sender(Protocol):
    """Delivers one message, once; returning means that the receiver has acknowledged it."""

    async def deliver(self, parcel: Parcel, deadline_seconds: float) -> None:
        """Deliver.

        Raises:
            EffectRefused: the receiver will never take it.
            DeliveryFailed: it may later; any other exception says the same.
        """
        ...


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long a message waits after a failed attempt: doubling, from the half to the whole.

    What a receiver asks for (`Retry-After`) is kept, up to `wait_max_seconds`.
    """

    wait_seconds: float = 1.0
    wait_max_seconds: float = 3600.0

    def wait_ms(self, attempts: int, fraction: float, asked_seconds: float | None = None) -> int:
        """The wait after `attempts`; `fraction` (0 up to 1) is the jitter's randomness."""
        whole = self.wait_seconds * 2.0 ** min(attempts - 1, _DOUBLINGS_MAX)
        wait = min(whole, self.wait_max_seconds) * (0.5 + 0.5 * fraction)
        asked = min(asked_seconds or 0.0, self.wait_max_seconds)
        return round(max(wait, asked) * 1000)


@dataclass(frozen=True, slots=True)
class Channel:
    """A name that `ctx.outbox` uses, and what stands behind it.

    `to` is a `Webhook`, a `Mail`, any `Sender`, or a function: it gets the payload, and the key
    if it has a parameter named `key`. A coroutine that passes `deadline_seconds` is cancelled
    and counts as failed; a synchronous function runs in a thread and is waited for.

    `ordered`: each run's messages in the order in which they were queued, one at a time; a dead
    letter lets the next one pass. After `attempts_max` a message is a dead letter (the default
    is reached in two to four hours). `concurrency` is for each relay.
    """

    name: str
    to: Sender | Callable[..., object]
    ordered: bool = False
    attempts_max: int = 16
    concurrency: int = 8
    deadline_seconds: float = 30.0
    backoff: Backoff = field(default_factory=Backoff)
    registry: codec.Registry = codec.GLOBAL

    async def deliver(self, parcel: Parcel) -> None:
        """One attempt; returns once the receiver has acknowledged. Raises as `Sender.deliver`."""
        if isinstance(self.to, Sender):
            await self.to.deliver(parcel, self.deadline_seconds)
            return
        payload = codec.decode(parcel.payload, self.registry)
        function = self.to
        extra = {"key": parcel.key} if _takes_key(function) else {}
        if calls.is_async(function):
            result = function(payload, **extra)
        else:
            result = await in_thread(lambda: function(payload, **extra))
        if inspect.isawaitable(result):
            await deadlines.within(result, self.deadline_seconds)


def checked(given: object) -> tuple[Channel, ...]:
    """Channels as they were given to a relay: one, or several with different names.

    Raises:
        ChannelsInvalid: something else was given.
    """
    found: list[object] = []
    if isinstance(given, Channel):
        found = [given]
    elif isinstance(given, Iterable):
        found = list(given)
    channels = tuple(each for each in found if isinstance(each, Channel))
    if not channels or len(channels) != len(found):
        raise errors.ChannelsInvalid("give a Channel, or a list of them")
    names = [each.name for each in channels]
    for channel in channels:
        if names.count(channel.name) > 1:
            raise errors.ChannelsInvalid(f"two are named {channel.name!r}")
        if channel.attempts_max < 1 or channel.concurrency < 1:
            why = f"{channel.name!r} allows no attempt (attempts_max and concurrency begin at 1)"
            raise errors.ChannelsInvalid(why)
    return channels


async def in_thread(work: Callable[[], T]) -> T:
    """Run blocking work in a thread of its own: a hung receiver holds up nobody else."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return  # whoever waited was cancelled
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, error = None, None
        try:
            result = context.run(work)
        except BaseException as raised:  # noqa: BLE001 - delivered to whoever waits
            error = raised
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, name="ninelives-delivery", daemon=True).start()
    return await future


def _takes_key(function: Callable[..., object]) -> bool:
    try:
        parameter = inspect.signature(function).parameters.get("key")
    except (TypeError, ValueError):
        return False
    return parameter is not None and parameter.kind is not parameter.POSITIONAL_ONLY
