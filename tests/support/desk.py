"""A small workflow with every kind of operation, its outside world in memory, and what both saw.

The workflow counts down: for each number a model is asked, a step made, the world notified, a
message left in the outbox, an item added to the state, an output yielded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ninelives import codec, errors
from ninelives.durable.context import WorkflowContext
from ninelives.engine.runtime import Runtime
from ninelives.graph.builder import WorkflowBuilder
from ninelives.graph.executor import Executor, handler
from ninelives.graph.workflow import Workflow
from ninelives.ids import RunId
from ninelives.log import events, invariants
from ninelives.log.events import Event
from support.worlds import Echo, Outside

START = 3


@dataclass
class Desk:
    """The workflow and everything it touches; `before_sending` hears of an effect's key."""

    outside: Outside = field(default_factory=Outside)
    echo: Echo = field(default_factory=Echo)
    before_sending: Callable[[str, str], object] = lambda _key, _text: None

    def workflow(self) -> Workflow:
        clerk = Clerk(self)
        builder = WorkflowBuilder(name="desk", start_executor=clerk)
        return builder.add_edge(clerk, clerk).build()

    async def notify(self, text: str, *, key: str) -> str:
        self.before_sending(key, text)
        return await self.outside.notify(text, key=key)


class Clerk(Executor):
    def __init__(self, desk: Desk) -> None:
        super().__init__(id="clerk")
        self._desk = desk

    @handler
    async def work(self, number: int, ctx: WorkflowContext[int, str]) -> None:
        desk = self._desk
        line = await ctx.model(desk.echo, f"item {number}", reserve_tokens=100)
        shout = await ctx.step(str.upper, line, name="shout")
        key = f"n:{number}"
        await ctx.effect(desk.notify, shout, key=key, reconcile=desk.outside.reconcile)
        await ctx.outbox("c", {"number": number}, key=f"m:{number}")
        ctx.append_state("done", number)
        await ctx.yield_output(f"{shout} {ctx.get_state('done')}")
        if number > 1:
            await ctx.send_message(number - 1)


@dataclass(frozen=True)
class Seen:
    """A store as those see it who look into it afterwards."""

    events: tuple[Event, ...]
    damage: tuple[str, ...]
    letters: tuple[str, ...]

    @property
    def outputs(self) -> list[tuple[int, object]]:
        return [
            (event.seq, codec.plain(event.fact.value))
            for event in self.events
            if isinstance(event.fact, events.Output)
        ]


async def look(runtime: Runtime, run: str = "r") -> Seen:
    store: Any = runtime.store
    damage = list(await store.check())
    try:
        journal = await store.events(RunId(run), after=0, limit=100_000)
    except errors.RunNotFound:
        return Seen((), tuple(damage), ())
    damage += [str(each) for each in invariants.check(journal)]
    letters = await store.outbox.letters("queued", run=RunId(run), limit=100)
    return Seen(tuple(journal), tuple(damage), tuple(letter.key for letter in letters))
