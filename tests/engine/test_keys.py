"""One key names one act: an effect or a message, in one handler, one superstep, one store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Never

import pytest

from ninelives import errors
from ninelives.durable.context import WorkflowContext
from ninelives.durable.effects import Absent
from ninelives.engine.runtime import Runtime
from ninelives.graph.builder import WorkflowBuilder
from ninelives.graph.executor import Executor, handler
from ninelives.graph.workflow import Workflow
from ninelives.log import invariants
from support import crash
from support.worlds import Outside

Single = Callable[[object], Workflow]
Context = WorkflowContext[Never, str]


async def waiting(url: str) -> int:
    async with Runtime(url) as runtime:
        assert await runtime.store.check() == []
        return sum((await runtime.store.outbox.waiting()).values())


@pytest.mark.parametrize("effect_first", [True, False])
async def test_one_handler_may_not_use_a_key_for_an_effect_and_a_message(
    url: str, single: Single, effect_first: bool
) -> None:
    outside = Outside()

    async def node(_: int, ctx: Context) -> None:
        if effect_first:
            await ctx.effect(outside.notify, "x", key="a")
        await ctx.outbox("orders", 1, key="a")
        await ctx.effect(outside.notify, "x", key="a")

    workflow = single(node)
    ended = await crash.ran(url, workflow, 0)
    assert (ended.status.state, ended.status.code) == ("failed", "KeyConflict")
    again = await crash.resumed(url, workflow)
    assert (again.status.state, again.status.code) == ("failed", "KeyConflict")
    assert len(outside.received) == effect_first, "what was refused was not sent"
    assert await waiting(url) == 0
    assert invariants.check(again.events) == []


@pytest.mark.parametrize("effect_first", [True, False])
async def test_two_runs_may_not_use_a_key_for_an_effect_and_a_message(
    url: str, single: Single, effect_first: bool
) -> None:
    outside = Outside()

    async def node(given: tuple[str, bool], ctx: Context) -> None:
        key, effect = given
        if effect:
            await ctx.effect(outside.notify, "x", key=key)
        else:
            await ctx.outbox("orders", 1, key=key)

    workflow = single(node)
    await crash.ran(url, workflow, ("b:c", effect_first), run_id="a")
    ended = await crash.ran(url, workflow, ("c", not effect_first), run_id="a:b")
    assert (ended.status.state, ended.status.code) == ("failed", "KeyConflict")
    assert "run 'a'" in ended.status.reason
    assert len(outside.received) == effect_first
    assert await waiting(url) == (not effect_first)


async def test_a_person_cannot_resolve_the_key_of_a_message(url: str, single: Single) -> None:
    async def node(_: int, ctx: Context) -> None:
        await ctx.outbox("orders", 1, key="a")

    await crash.ran(url, single(node), 0)
    async with Runtime(url) as runtime:
        with pytest.raises(errors.EffectNotOpen, match="not known"):
            await runtime.resolve("r", "a", Absent(final=True))


class Start(Executor):
    @handler
    async def start(self, number: int, ctx: WorkflowContext[int]) -> None:
        await ctx.send_message(number)


class Left(Executor):
    @handler
    async def leave(self, _: int, ctx: WorkflowContext[Never]) -> None:
        await ctx.outbox("orders", 1, key="same")


class Right(Executor):
    outside: Outside
    bomb: crash.Bomb

    @handler
    async def act(self, _: int, ctx: WorkflowContext[Never]) -> None:
        await ctx.step(str, 1)  # the left one has left its message by now
        self.bomb.here()
        await ctx.effect(self.outside.notify, "x", key="same")


async def test_a_message_of_a_sibling_keeps_an_effect_from_being_sent_also_after_a_death(
    url: str,
) -> None:
    start, left, right = Start(id="start"), Left(id="left"), Right(id="right")
    right.outside, right.bomb = Outside(), crash.Bomb()
    workflow = (
        WorkflowBuilder(name="fan", start_executor=start)
        .add_fan_out_edges(start, [left, right])
        .build()
    )
    await crash.until_dead(url, workflow, 1)
    ended = await crash.resumed(url, workflow)
    assert (ended.status.state, ended.status.code) == ("failed", "KeyConflict")
    assert right.outside.received == []
    assert await waiting(url) == 0
