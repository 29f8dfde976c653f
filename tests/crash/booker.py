"""A process to be killed: books three items, each in a transaction of the user's database.

    python booker.py STORE DATABASE [BOUNDARY ARRIVAL]

Started again on the same store it goes on. Each booking's number is the count of bookings before
it, which a booking that was made twice would show.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, Never

from ninelives import faults
from ninelives.durable.context import WorkflowContext
from ninelives.engine.runtime import Runtime
from ninelives.graph.builder import WorkflowBuilder
from ninelives.graph.executor import Executor, handler
from support import bookings

ITEMS = ("room", "table", "seat")


def book(transaction: Any, item: str) -> int:
    bookings.write(transaction, item)
    return bookings.count(transaction)


class Booker(Executor):
    database = ""

    @handler
    async def work(self, value: int, ctx: WorkflowContext[Never, str]) -> None:
        for item in ITEMS:
            number = await ctx.transaction(self.database, book, item, key=item)
            await ctx.yield_output(f"{number}: {item}")


async def main(store: str, database: str) -> None:
    Booker.database = database
    workflow = WorkflowBuilder(name="booker", start_executor=Booker(id="booker")).build()
    async with Runtime(store, crashes_max=1000) as runtime:
        run = await runtime.start(workflow, 1, run_id="r")
        status = await run.wait()
        print(json.dumps({"outputs": await run.outputs(), "why": status.reason}))


if __name__ == "__main__":
    if len(sys.argv) > 3:
        faults.arm(faults.Boundary(sys.argv[3]), int(sys.argv[4]))
    asyncio.run(main(*sys.argv[1:3]))
