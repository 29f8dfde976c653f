"""The cost of a superstep does not grow with the length of its run: counted, not timed."""

from __future__ import annotations

from typing import Never

import apsw
import pytest

from ninelives.durable.context import WorkflowContext
from ninelives.engine.runtime import Runtime
from ninelives.graph.builder import WorkflowBuilder
from ninelives.graph.executor import Executor, handler
from ninelives.graph.workflow import Workflow
from ninelives.ids import RunId
from ninelives.store.sqlite import SqliteStore
from support import crash

EARLY, LATE = 10, 1000


class Grows(Executor):
    """Appends a line to a list, sets a value, makes a step and yields, at every superstep."""

    @handler
    async def grow(self, number: int, ctx: WorkflowContext[int, str]) -> None:
        ctx.append_state("log", "x" * 200)
        ctx.local.set("number", number)
        await ctx.step(str, number)
        await ctx.yield_output("y")
        if number:
            await ctx.send_message(number - 1)


def grows() -> Workflow:
    node = Grows(id="grows")
    return WorkflowBuilder(name="grows", start_executor=node).add_edge(node, node).build()


class Counted:
    """Statements, changed rows and commits of the writer, superstep by superstep."""

    def __init__(self, store: SqliteStore) -> None:
        self.marks: list[tuple[int, int, int]] = []
        self._store = store
        self._statements = 0

    def begin(self) -> None:
        self._connection = self._store._writing
        self._connection.trace_v2(apsw.SQLITE_TRACE_STMT, self._trace)

    def _trace(self, _: object) -> None:
        self._statements += 1

    def mark(self) -> None:
        changes = self._connection.total_changes()
        self.marks.append((self._statements, changes, self._store._writer.commits))

    def work(self, superstep: int) -> tuple[int, ...]:
        before, after = self.marks[superstep - 1], self.marks[superstep]
        return tuple(b - a for a, b in zip(before, after, strict=True))


@pytest.mark.timeout(120)
async def test_the_work_of_superstep_1000_is_that_of_superstep_10(url: str) -> None:
    async with Runtime(url, on_output=lambda run, seq, value: counted.mark()) as runtime:
        assert isinstance(runtime.store, SqliteStore)
        counted = Counted(runtime.store)
        counted.begin()
        run = await runtime.start(grows(), LATE + 10, run_id="r")
        assert (await run.wait()).state == "completed"
    assert counted.work(EARLY) == counted.work(LATE)
    statements, rows, commits = counted.work(EARLY)
    assert commits == 2, "one for the step, one for the superstep"
    assert statements <= 20
    assert rows <= 15


@pytest.mark.timeout(120)
async def test_recovery_reads_the_present_state_and_not_the_history(url: str) -> None:
    read: list[int] = []

    class Dies(Executor):
        @handler
        async def go(self, number: int, ctx: WorkflowContext[int, Never]) -> None:
            ctx.set_state("number", number)
            if number == 0:
                bomb.here()
            else:
                await ctx.send_message(number - 1)

    for length in (EARLY, LATE):
        bomb = crash.Bomb()
        node = Dies(id="dies")
        workflow = WorkflowBuilder(name="dies", start_executor=node).add_edge(node, node).build()
        name = f"r{length}"
        await crash.until_dead(url, workflow, length, run_id=name)
        async with Runtime(url) as runtime:
            checkpoint = await runtime.store.load(RunId(name))
        read.append(len(checkpoint.state) + len(checkpoint.pending) + len(checkpoint.since))
    assert read[0] == read[1]
