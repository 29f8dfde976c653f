"""A process to be killed: runs a small workflow of every kind of operation, armed at a boundary.

    python victim.py STORE RUN WORLD [BOUNDARY ARRIVAL]

The workflow counts down from 2. For each number a model is asked, a step is made and the outside
world is notified; then a fan-out of two notifies again and joins.
"""

from __future__ import annotations

import asyncio
import json
import sys
import urllib.error
import urllib.parse
import urllib.request
from typing import Never

from ninelives import errors, faults
from ninelives.durable.context import WorkflowContext
from ninelives.durable.effects import Absent, Applied
from ninelives.engine.runtime import Runtime
from ninelives.graph.builder import WorkflowBuilder
from ninelives.graph.executor import Executor, handler
from ninelives.graph.workflow import Workflow
from ninelives.testing.scripted import ScriptedModel

START = 2


class World:
    """The outside world's client: the address is this process's, not the run's."""

    url = ""

    @classmethod
    def notify(cls, text: str, *, key: str) -> str:
        body = json.dumps({"text": text}).encode()
        headers = {"Idempotency-Key": key, "Content-Type": "application/json"}
        request = urllib.request.Request(cls.url, body, headers, method="POST")
        with urllib.request.urlopen(request, timeout=10):
            return text

    @classmethod
    def reconcile(cls, key: str) -> Applied | Absent:
        try:
            with urllib.request.urlopen(
                f"{cls.url}/{urllib.parse.quote(key)}", timeout=10
            ) as found:
                return Applied(json.load(found)["payload"]["text"])
        except urllib.error.HTTPError as error:
            error.close()
            return Absent(final=True)


class Worker(Executor):
    @handler
    async def work(self, number: int, ctx: WorkflowContext[int | str, str]) -> None:
        line = await ctx.model(ScriptedModel(), f"item {number}", reserve_tokens=400)
        shout = await ctx.step(str.upper, line, name="shout")
        await ctx.effect(World.notify, shout, key=f"n:{number}", reconcile=World.reconcile)
        ctx.append_state("done", number)
        await ctx.yield_output(f"{number}: {shout}")
        await ctx.send_message(number - 1 if number > 1 else "split")


class Side(Executor):
    @handler
    async def side(self, word: str, ctx: WorkflowContext[str]) -> None:
        await ctx.effect(World.notify, word, key=self.id, reconcile=World.reconcile)
        await ctx.send_message(f"{self.id} {word}")


class Join(Executor):
    @handler
    async def join(self, words: list[str], ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(f"{words} {ctx.get_state('done')}")


def workflow() -> Workflow:
    worker, join = Worker(id="worker"), Join(id="join")
    sides = [Side(id="left"), Side(id="right")]
    return (
        WorkflowBuilder(name="victim", start_executor=worker)
        .add_edge(worker, worker)
        .add_fan_out_edges(worker, sides)
        .add_fan_in_edges(sides, join)
        .build()
    )


async def main(store: str, run_id: str, world: str) -> None:
    World.url = world
    async with Runtime(store, crashes_max=1000) as runtime:  # it is meant to be killed
        try:
            run = await runtime.start(workflow(), START, run_id=run_id)
            seen = [event.seq async for event in run.watch()]
            outputs = await run.outputs()
        except errors.UsageError as error:
            print(error, file=sys.stderr)
            sys.exit(2)
        status = await run.status()
        ended = {"seen": seen, "outputs": outputs, "state": status.state, "why": status.reason}
        print(json.dumps(ended))


if __name__ == "__main__":
    if len(sys.argv) > 4:
        faults.arm(faults.Boundary(sys.argv[4]), int(sys.argv[5]))
    asyncio.run(main(*sys.argv[1:4]))
