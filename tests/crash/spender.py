"""A process that spends from a tenant's budget as soon as it is told to: for test_one_budget."""

from __future__ import annotations

import asyncio
import sys
from typing import Never

from ninelives.durable.context import WorkflowContext
from ninelives.engine.runtime import Runtime
from ninelives.graph.builder import WorkflowBuilder
from ninelives.graph.executor import Executor, handler
from ninelives.graph.settings import RunSettings
from ninelives.testing.scripted import ScriptedModel


class Spends(Executor):
    """Asks as often as it is told; each call reserves 100 tokens and takes 30."""

    def __init__(self, log: str) -> None:
        super().__init__(id="spends")
        self.model = ScriptedModel(log=log, delay_seconds=0.2)

    @handler
    async def go(self, calls: int, ctx: WorkflowContext[Never, str]) -> None:
        for number in range(calls):
            await ctx.model(self.model, f"{ctx.run_id} {number}", reserve_tokens=100)
        await ctx.yield_output("done")


async def main(url: str, run_id: str, log: str, calls: str) -> None:
    """Say when ready, wait for a line, spend, say how it ended."""
    workflow = WorkflowBuilder(
        name="spends", start_executor=Spends(log), settings=RunSettings(tenant="acme")
    ).build()
    async with Runtime(url) as runtime:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        run = await runtime.start(workflow, int(calls), run_id=run_id)
        status = await run.wait()
        print(status.state, status.code, flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
