"""One way to wait under a deadline, which keeps apart who ended the wait.

The deadline and the caller's cancellation are separate sources, and afterwards each is asked:
the deadline whether it expired, the task whether somebody cancelled it. The caller comes first
when both happened. A `TimeoutError` that the awaited code raised by itself is its own error.
Source: CPython issues 86296 and 114496.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from ninelives import clock

T = TypeVar("T")


class Expired(Exception):  # noqa: N818 - a condition, not an error
    """Our own deadline passed; what the awaited work became of is unknown."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds

    def __str__(self) -> str:
        return f"no answer within {self.seconds:g} seconds"


async def within(work: Awaitable[T], seconds: float | None) -> T:
    """Await `work`, at most for `seconds` (None = for ever).

    Raises:
        Expired: the deadline passed, and nobody had cancelled the caller.
    """
    scope = clock.timeout(seconds)
    try:
        async with scope:
            return await work
    except TimeoutError:
        if seconds is not None and scope.expired():
            raise Expired(seconds) from None
        raise
