"""The durable operations that one handler has asked for: none outlives it, none is forgotten.

An operation that nobody awaits would not happen, and one that is still under way when its handler
has ended would have an outcome that nobody records. Both are mistakes that cost money, so the
handler fails by them, after what was under way has been seen to its end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from ninelives import clock

T = TypeVar("T")
_KEPT = 64


@dataclass(slots=True, eq=False)
class Operation:
    """One call of a durable operation; `work` is what the handler was given to await."""

    what: str
    state: Literal["asked", "under way", "ended"] = "asked"
    work: Coroutine[object, object, object] | None = None


@dataclass(slots=True)
class Operations:
    """Those of one handler. `closing` is set once it has ended, or is being unwound."""

    asked: list[Operation] = field(default_factory=list)
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    closed: bool = False
    _kept: int = _KEPT
    _ended: asyncio.Event = field(default_factory=asyncio.Event)

    def own(self, what: str, begin: Callable[[], Awaitable[T]]) -> Coroutine[object, object, T]:
        """What the handler is to await; `begin` is called when it does."""
        operation = Operation(what)

        async def carried_out() -> T:
            operation.state = "under way"
            try:
                return await begin()
            finally:
                operation.state, operation.work = "ended", None
                self._ended.set()

        work = operation.work = carried_out()
        if len(self.asked) >= self._kept:
            self.asked = [each for each in self.asked if each.state != "ended"]
            self._kept = max(_KEPT, 2 * len(self.asked))
        self.asked.append(operation)
        return work

    def close(self) -> None:
        """Begin nothing more, and end every wait."""
        self.closed = True
        self.closing.set()
        for each in self.asked:
            if each.state == "asked" and each.work is not None:
                each.work.close()
                each.state = "ended"

    async def settle(self) -> list[Operation]:
        """See what is under way to its end; returns what the handler should have awaited."""
        left = [each for each in self.asked if each.state != "ended"]
        loose = [Operation(each.what, each.state) for each in left]
        self.closed = bool(left)
        if any(each.state == "asked" for each in left):
            await clock.sleep(0)  # one in a task of its own begins, and is told that it may not
        self.close()
        while any(each.state == "under way" for each in left):
            self._ended.clear()
            await self._ended.wait()
        return loose
