"""A crash inside one process: the owner stops in its tracks and records nothing more.

Real kills of real processes are in tests/crash; this is for the many cases in which only the
order of durable facts matters. A handler that "dies" is unwound as one that has lost its run,
which is the one way out that writes nothing; its lock is freed as by a death.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from ninelives import errors
from ninelives.engine.run import Run
from ninelives.engine.runner import Status
from ninelives.engine.runtime import Runtime
from ninelives.graph.workflow import Workflow
from ninelives.log.events import Event


@dataclass
class Bomb:
    """Dies at the n-th call of `here`, and never again."""

    at: int = 1

    def here(self) -> None:
        self.at -= 1
        if self.at == 0:
            raise errors.OwnershipLost("killed by a test")


@dataclass
class Ended:
    """A run after its last process: status, outputs, journal."""

    status: Status
    outputs: list[object]
    events: list[Event]

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]

    def count(self, kind: str) -> int:
        return self.kinds().count(kind)


async def until_dead(
    url: str, workflow: Workflow, value: object, *, run_id: str = "r", cold: bool = False
) -> None:
    """Start a run in a runtime that dies."""
    async with Runtime(url, cold=cold) as runtime:
        run = await runtime.start(workflow, value, run_id=run_id)
        with contextlib.suppress(errors.StaleEpoch):
            status = await run.wait()
            raise AssertionError(f"nobody died: {status}")


async def resumed(url: str, workflow: Workflow, *, run_id: str = "r", cold: bool = False) -> Ended:
    """Resume a run in another runtime, to its end."""
    async with Runtime(url, cold=cold) as runtime:
        return await ended(await runtime.resume(run_id, workflow))


async def ran(
    url: str, workflow: Workflow, value: object, *, run_id: str = "r", cold: bool = False
) -> Ended:
    """Start a run and see it to its end."""
    async with Runtime(url, cold=cold) as runtime:
        return await ended(await runtime.start(workflow, value, run_id=run_id))


async def ended(run: Run) -> Ended:
    status = await run.wait()
    return Ended(status, await run.outputs(), [event async for event in run.watch()])
