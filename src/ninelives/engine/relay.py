"""Delivers the outbox: claims what is due, sends it, marks it after the acknowledgement.

A message is delivered at least once, always under the key that it was queued with. It is sent
again only if an attempt failed, or if a relay died between the acknowledgement and the mark.
Several relays may work side by side: none claims what a living other one has claimed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from ninelives import clock, errors, faults, ids
from ninelives.durable.delivery import StopSignal
from ninelives.engine import channels as declared
from ninelives.engine.channels import Channel
from ninelives.store.base import Store
from ninelives.store.outbox import Parcel, RelayToken

POLL_SECONDS = 0.2
REASON_CHARACTERS_MAX = 500
logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Tally:
    """What a relay has done so far; `postponed` counts failed attempts that will be repeated."""

    delivered: int = 0
    postponed: int = 0
    dead: int = 0


class Relay:
    """Delivers the messages of some channels, from an open store.

    `async with Relay(runtime.store, channels):` delivers in the background and ends with the
    deliveries under way; `run` does the same until `request_stop`; `once` delivers what is due.
    """

    def __init__(
        self,
        store: Store,
        channels: Channel | Sequence[Channel],
        *,
        now: clock.Now = clock.now_ms,
        fraction: Callable[[], float] = ids.fraction,
    ) -> None:
        """`fraction` draws the numbers (0 up to 1) that the back-off's jitter is made from.

        Raises:
            ChannelsInvalid: none, or two of one name.
        """
        self.tally = Tally()
        self._store, self._now, self._fraction = store, now, fraction
        self._channels = declared.checked(channels)
        self._stopping = StopSignal()
        self._task: asyncio.Task[Tally] | None = None

    def request_stop(self) -> None:
        """Claim nothing more; deliveries under way come to their end."""
        self._stopping.request()

    async def once(self) -> Tally:
        """Deliver what is due now; what fails waits for a later call.

        Raises:
            StoreFailed: an outcome could not be recorded; the message will be sent again.
        """
        return await self._work(until=self._now())

    async def run(self) -> Tally:
        """Deliver until `request_stop`. Raises as `once`."""
        return await self._work(until=None)

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self.run(), name="ninelives relay")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._task is not None
        self.request_stop()
        await self._task

    async def _work(self, until: int | None) -> Tally:
        token = self._store.outbox.enlist()
        try:
            async with asyncio.TaskGroup() as group:
                for channel in self._channels:
                    group.create_task(self._serve(channel, token, until))
        except BaseExceptionGroup as failed:
            raise _first(failed) from None
        finally:
            # Whatever is still claimed (the relay was cancelled, the disk is full) is free now.
            self._store.outbox.dismiss(token)
        return self.tally

    async def _serve(self, channel: Channel, token: RelayToken, until: int | None) -> None:
        """Keep one channel's deliveries going; a slow receiver holds up no other channel."""
        async with asyncio.TaskGroup() as group:
            under_way: set[asyncio.Task[None]] = set()
            while not self._stopping.requested:
                parcels = await self._claim(
                    channel, token, channel.concurrency - len(under_way), until
                )
                under_way |= {
                    group.create_task(self._deliver(channel, token, parcel)) for parcel in parcels
                }
                if under_way and not (parcels and len(under_way) < channel.concurrency):
                    await asyncio.wait(
                        under_way, timeout=POLL_SECONDS, return_when=asyncio.FIRST_COMPLETED
                    )
                elif not under_way and until is not None:
                    return
                elif not parcels:
                    await self._stopping.wait(POLL_SECONDS)
                under_way = {task for task in under_way if not task.done()}

    async def _claim(
        self, channel: Channel, token: RelayToken, limit: int, until: int | None
    ) -> list[Parcel]:
        now = self._now() if until is None else until
        if not limit or not await self._store.outbox.due(
            channel.name, ordered=channel.ordered, now=now
        ):
            return []
        return await self._store.outbox.claim(
            token, channel.name, ordered=channel.ordered, limit=limit, now=now
        )

    async def _deliver(self, channel: Channel, token: RelayToken, parcel: Parcel) -> None:
        faults.reach(faults.Boundary.RELAY_CLAIMED)
        if parcel.attempt > channel.attempts_max:
            reason = f"the relays that made the last of {parcel.attempt - 1} attempts died"
            await self._bury(token, parcel, "RelayDied", reason)
            return
        faults.act("delivery", parcel.key)
        try:
            await channel.deliver(parcel)
        except asyncio.CancelledError as cancelled:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            await self._failed(channel, token, parcel, cancelled)  # the receiver's own affair
        except Exception as error:  # noqa: BLE001 - classified, recorded, shown to a person
            await self._failed(channel, token, parcel, error)
        else:
            faults.reach(faults.Boundary.RELAY_DELIVERED)
            marked = await self._store.outbox.delivered(token, parcel, self._now())
            faults.reach(faults.Boundary.RELAY_MARKED)
            self.tally.delivered += marked

    async def _failed(
        self, channel: Channel, token: RelayToken, parcel: Parcel, error: BaseException
    ) -> None:
        """The one place that decides whether a message is sent again."""
        kind, reason = type(error).__name__, str(error)[:REASON_CHARACTERS_MAX]
        refused = isinstance(error, errors.EffectRefused)
        if refused or parcel.attempt >= channel.attempts_max:
            await self._bury(token, parcel, kind, reason)
            return
        asked = error.retry_after_seconds if isinstance(error, errors.DeliveryFailed) else None
        wait = channel.backoff.wait_ms(parcel.attempt, self._fraction(), asked)
        await self._store.outbox.postpone(
            token, parcel, next_at=self._now() + wait, error=kind, message=reason
        )
        self.tally.postponed += 1
        logger.info(
            "outbox %s: attempt %d failed: %s: %s", parcel.key, parcel.attempt, kind, reason
        )

    async def _bury(self, token: RelayToken, parcel: Parcel, error: str, message: str) -> None:
        buried = await self._store.outbox.bury(
            token, parcel, self._now(), error=error, message=message
        )
        self.tally.dead += buried
        logger.warning("outbox %s: a dead letter: %s: %s", parcel.key, error, message)


def _first(failed: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error of a group, however deep."""
    found: BaseException = failed
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found
