"""Folding a journal in parts is folding it whole, wherever it is cut."""

from __future__ import annotations

import asyncio
import copy
import pathlib
import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ninelives.durable.context import WorkflowContext
from ninelives.durable.usage import Usage
from ninelives.graph.builder import WorkflowBuilder
from ninelives.graph.executor import Executor, handler
from ninelives.graph.workflow import Workflow
from ninelives.log import projection
from ninelives.log.events import Event
from support import crash, worlds

outside = worlds.Outside()
model = worlds.Echo()


class Works(Executor):
    """Does everything that leaves facts behind, and dies once."""

    bomb = crash.Bomb(at=-1)

    @handler
    async def work(self, number: int, ctx: WorkflowContext[int, int]) -> None:
        await ctx.model(model, str(number))
        await ctx.step(str, number)
        await ctx.effect(outside.notify, "x", key=str(number))
        if number == 1:
            self.bomb.here()
        await ctx.outbox("c", number, key=f"o:{number}")
        await ctx.yield_output(number)
        if number:
            await ctx.send_message(number - 1)


async def journal() -> list[Event]:
    """A real journal: killed, resumed, parked by missing usage."""
    Works.bomb = crash.Bomb()
    node = Works(id="works")
    workflow: Workflow = (
        WorkflowBuilder(name="works", start_executor=node).add_edge(node, node).build()
    )
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{pathlib.Path(folder)}/a.db"
        await crash.until_dead(url, workflow, 3)
        model.usage = Usage(input_tokens=None, output_tokens=1)
        try:
            return (await crash.resumed(url, workflow)).events
        finally:
            model.usage = worlds.REPORTED


@pytest.fixture(scope="module")
def recorded() -> list[Event]:
    return asyncio.run(journal())


@given(cut=st.integers(0, 200))
def test_folding_in_two_parts_is_folding_once(recorded: list[Event], cut: int) -> None:
    first = projection.fold(recorded[:cut])
    before = copy.deepcopy(first)
    parts = projection.fold(recorded[cut:], first)
    assert parts == projection.fold(recorded)
    assert first == before  # it can be gone on from again


def test_a_real_journal_is_counted_right(recorded: list[Event]) -> None:
    report = projection.fold(recorded)
    assert (report.state, report.code) == ("parked", "BudgetHalted")
    assert report.count("settled") == (3, 90)
    assert report.count("unknown") == (1, 1000)
    assert report.committed_tokens == 1090
    assert report.effects_in("confirmed") == 3
    assert report.skipped_effects == 1
    assert report.replayed_models == 1
    assert [(executor, numbers) for executor, _, _, numbers in report.reentered()] == [
        ("works", (1, 2))
    ]
