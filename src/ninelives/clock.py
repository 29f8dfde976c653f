"""The only source of time.

Time is a label and a wait, never an order: what came first is told by a journal's `seq`. The
core takes its time from here, so that a test can put a clock of its own in its place.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import time
from collections.abc import Callable
from typing import Final

Now = Callable[[], int]


def now_ms() -> int:
    """The wall clock in milliseconds since 1970, as a label for events."""
    return time.time_ns() // 1_000_000


def monotonic_seconds() -> float:
    """Seconds that never go back, for measuring a wait."""
    return time.monotonic()


async def sleep(seconds: float) -> None:
    """Wait inside the event loop; 0 gives the other tasks one turn."""
    await asyncio.sleep(seconds)


def pause(seconds: float) -> None:
    """Wait in a thread that has no event loop."""
    time.sleep(seconds)


def timeout(seconds: float | None) -> asyncio.Timeout:
    """A deadline on the running task (see `durable.deadlines` for who may judge it)."""
    return asyncio.timeout(seconds)


def iso(at_ms: int) -> str:
    """A label in ISO 8601, UTC, to the millisecond."""
    moment = dt.datetime.fromtimestamp(at_ms / 1000, tz=dt.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def day(at_ms: int) -> str:
    """The day of a label in UTC, as 2026-12-01: days sort as text."""
    return iso(at_ms)[:10]


PROCESS_STARTED_AT: Final[int] = now_ms()
