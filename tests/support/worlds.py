"""An outside world in memory and models with a script, for tests inside one process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from ninelives.durable.effects import Absent, Applied
from ninelives.durable.usage import ModelReply, ModelRequest, Usage

REPORTED = Usage(input_tokens=20, output_tokens=10)


@dataclass
class Outside:
    """Counts how often each key was received, as a receiver that does not deduplicate."""

    received: list[tuple[str, object]] = field(default_factory=list)

    async def notify(self, text: str, *, key: str) -> str:
        self.received.append((key, text))
        return f"sent {text}"

    def reconcile(self, key: str) -> Applied | Absent:
        for known, text in self.received:
            if known == key:
                return Applied(f"sent {text}")
        return Absent(final=True)

    @property
    def keys(self) -> list[str]:
        return [key for key, _ in self.received]


@dataclass
class Echo:
    """A model that answers at once and counts its requests."""

    name: str = "echo"
    usage: Usage | None = REPORTED
    requests: list[str] = field(default_factory=list)
    before: Callable[[str], object] | None = None

    async def request(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request.prompt)
        if self.before is not None:
            waiting = self.before(request.prompt)
            if asyncio.iscoroutine(waiting):
                await waiting
        return ModelReply(text=f"<{request.prompt}>", usage=self.usage)
