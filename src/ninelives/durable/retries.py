"""Retries that survive: each attempt and each wait is in the journal before it begins.

A wait ends at a recorded moment, not after a duration: a process that takes the run up waits for
the rest of it only. Jitter is made from the operation's place, so that nothing random is needed.
"""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from ninelives import errors
from ninelives.durable.delivery import Delivery
from ninelives.durable.replay import Kind, Record
from ninelives.log import events
from ninelives.log.events import Place

T = TypeVar("T")
JITTER = 0.1


@dataclass(frozen=True, slots=True)
class Retry:
    """When to try again, and when to stop.

    Waits grow from `wait_seconds` by `backoff` up to `wait_max_seconds`, each a tenth shorter
    or longer. `give_up_on` stands above `retry_on`. `attempts_max` counts the first one too.
    """

    attempts_max: int = 3
    wait_seconds: float = 1.0
    backoff: float = 2.0
    wait_max_seconds: float = 60.0
    retry_on: tuple[type[BaseException], ...] = (Exception,)
    give_up_on: tuple[type[BaseException], ...] = ()

    def admits(self, error: BaseException, attempts: int) -> bool:
        """Whether another attempt is made after `attempts` that failed."""
        if attempts >= self.attempts_max or isinstance(error, self.give_up_on):
            return False
        return isinstance(error, self.retry_on) and not _is_permanent(error)

    def wait_ms(self, attempts: int, seed: str) -> int:
        """How long to wait after `attempts` that failed; `seed` decides the jitter."""
        seconds = min(self.wait_seconds * self.backoff ** (attempts - 1), self.wait_max_seconds)
        spread = zlib.crc32(seed.encode()) / 0xFFFFFFFF * 2 - 1
        return round(seconds * 1000 * (1 + JITTER * spread))


ONCE = Retry(attempts_max=1)


def _is_permanent(error: BaseException) -> bool:
    """What would be refused again, however often it is tried."""
    if isinstance(error, errors.ModelRefused):
        return not error.transient
    return isinstance(error, errors.EffectRefused | errors.Unencodable | errors.KeyConflict)


async def attempts(
    delivery: Delivery,
    operation: Kind,
    place: Place,
    record: Record | None,
    retry: Retry,
    attempt: Callable[[], Awaitable[T]],
) -> T:
    """Make attempts until one succeeds or the policy gives up; the last error is raised.

    An attempt that dies with its process counts as the one that the next process makes again.
    """
    made = 0
    if record is not None and record.retry is not None:
        made = record.retry.attempts
        await delivery.wait_until(record.retry.due_at)
    while True:
        try:
            return await attempt()
        except Exception as error:
            made += 1
            if delivery.interrupt is not None or not retry.admits(error, made):
                raise
            scheduled = await schedule(delivery, operation, place, retry, made, error)
            await delivery.wait_until(scheduled.due_at)


async def schedule(
    delivery: Delivery,
    operation: Kind,
    place: Place,
    retry: Retry,
    made: int,
    error: Exception,
) -> events.RetryScheduled:
    """Record that an attempt failed and when the next one is due."""
    seed = f"{place.delivery} {place.branch} {place.name} {place.ordinal} {made}"
    scheduled = events.RetryScheduled(
        operation=operation,
        place=place,
        attempts=made,
        error=type(error).__name__,
        message=str(error),
        due_at=delivery.journal.now() + retry.wait_ms(made, seed),
    )
    await delivery.append(scheduled)
    return scheduled
