"""Three clients of one run: who watched all along, who came back with a cursor, who came late.

The watcher lives in the lab's process, which outlives every process that it kills.
"""

from __future__ import annotations

import asyncio
import pathlib
import threading
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import msgspec

from ninelives import clock, codec, errors
from ninelives.engine.run import Run
from ninelives.engine.runtime import Runtime
from ninelives.ids import run_budget, run_id
from ninelives.log import events, invariants
from ninelives.log.events import Event
from ninelives.store.budgets import Spending

POLL_SECONDS = 0.02
END_SECONDS = 30.0


class Watcher:
    """A client that is there before the run is, and stays over the deaths of its processes."""

    def __init__(self, store: pathlib.Path, run: str) -> None:
        self.seen: list[Event] = []
        self.trouble = ""
        self._store, self._run = store, run
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._live, name=f"watcher of {run}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """No process works on the run any more: see the rest, and leave."""
        self._over.set()
        self._thread.join(END_SECONDS)
        if self._thread.is_alive():
            self.trouble = f"it waited for the run's end for {END_SECONDS:g} s, in vain"

    def _live(self) -> None:
        try:
            asyncio.run(self._watch())
        except Exception as error:  # noqa: BLE001 - whatever it is, the client lost its stream
            self.trouble = f"{type(error).__name__}: {error}"

    async def _watch(self) -> None:
        while not self._store.exists():
            if self._over.is_set():
                return
            await clock.sleep(POLL_SECONDS)
        async with Runtime(url_of(self._store), create=False) as runtime:
            run = await self._found(runtime)
            while run is not None:
                over = self._over.is_set()
                after = self.seen[-1].seq if self.seen else 0
                async for event in run.watch(after=after):
                    self.seen.append(event)
                if over:
                    return
                await clock.sleep(POLL_SECONDS)

    async def _found(self, runtime: Runtime) -> Run | None:
        while True:
            over = self._over.is_set()
            try:
                return await runtime.attach(self._run)
            except errors.RunNotFound:
                if over:
                    return None
                await clock.sleep(POLL_SECONDS)


@dataclass(slots=True)
class Reading:
    """What is there when all is over: for a late client, a returning one, and an auditor."""

    outputs: list[str] = field(default_factory=list)
    late: list[Event] = field(default_factory=list)
    returned: list[Event] = field(default_factory=list)
    spending: Spending = field(default_factory=Spending)
    violations: list[str] = field(default_factory=list)


async def read(store: pathlib.Path, run: str) -> Reading:
    """Read a run's store in the end.

    Raises:
        NineLivesError: there is no such store or run, or it cannot be read.
    """
    async with Runtime(url_of(store), create=False) as runtime:
        found = await runtime.attach(run)
        reading = Reading(outputs=[value_of(each) async for each in found.output_events()])
        reading.late = [event async for event in found.recorded()]
        cursor = len(reading.late) // 2
        rest = [event async for event in found.watch(after=cursor)]
        reading.returned = [*reading.late[:cursor], *rest]
        budget = await runtime.budgets.show(run_budget(run_id(run)))
        reading.spending = budget.total
        broken = [str(each) for each in invariants.check(reading.late)]
        reading.violations = [*broken, *await runtime.store.check()]
        return reading


def url_of(store: pathlib.Path) -> str:
    return f"sqlite:///{store}"


def value_of(event: Event) -> str:
    """An output as a client sees it."""
    assert isinstance(event.fact, events.Output)
    raw: msgspec.Raw = event.fact.value
    return str(codec.plain(raw))


def outputs_of(seen: list[Event]) -> list[str]:
    return [value_of(event) for event in seen if isinstance(event.fact, events.Output)]
