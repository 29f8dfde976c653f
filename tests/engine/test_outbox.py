"""What a handler leaves for the outside: with its superstep or not at all, each key once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Never

import pytest

from ninelives import errors
from ninelives.durable.context import WorkflowContext
from ninelives.engine.runtime import Runtime
from ninelives.graph.builder import WorkflowBuilder
from ninelives.graph.executor import Executor, handler
from ninelives.graph.workflow import Workflow
from ninelives.log import invariants
from support import crash

Single = Callable[[object], Workflow]
Context = WorkflowContext[Never, str]


async def waiting(url: str) -> dict[str, int]:
    async with Runtime(url) as runtime:
        return await runtime.store.outbox.waiting()


async def test_a_message_is_queued_with_the_superstep_that_left_it(
    url: str, single: Single
) -> None:
    async def node(_: int, ctx: Context) -> None:
        await ctx.outbox("orders", {"total": 3}, key="a")
        await ctx.outbox("orders", "second", key="b")

    ended = await crash.ran(url, single(node), 0)
    assert ended.status.state == "completed"
    assert ended.count("outbox_queued") == 2
    assert invariants.check(ended.events) == []
    async with Runtime(url) as runtime:
        letters = await runtime.store.outbox.letters("queued", run=None, limit=9)
        assert await runtime.store.check() == []
    assert [letter.key for letter in letters] == ["r:b", "r:a"]
    assert [letter.channel for letter in letters] == ["orders", "orders"]


async def test_nothing_is_queued_when_the_handler_dies_and_once_when_it_is_entered_again(
    url: str, single: Single
) -> None:
    bomb = crash.Bomb()

    async def node(_: int, ctx: Context) -> None:
        await ctx.outbox("orders", 1, key="a")
        bomb.here()

    workflow = single(node)
    await crash.until_dead(url, workflow, 0)
    assert await waiting(url) == {}
    assert (await crash.resumed(url, workflow)).status.state == "completed"
    assert await waiting(url) == {"orders": 1}


async def test_nothing_is_queued_when_the_handler_raises(url: str, single: Single) -> None:
    async def node(_: int, ctx: Context) -> None:
        await ctx.outbox("orders", 1, key="a")
        raise ValueError("no")

    assert (await crash.ran(url, single(node), 0)).status.state == "failed"
    assert await waiting(url) == {}


async def test_a_message_without_await_is_queued_too(url: str, single: Single) -> None:
    async def node(_: int, ctx: Context) -> None:
        ctx.outbox("orders", 1, key="a")

    await crash.ran(url, single(node), 0)
    assert await waiting(url) == {"orders": 1}


async def test_a_payload_that_cannot_be_recorded_is_refused_in_the_handler(
    url: str, single: Single
) -> None:
    async def node(_: int, ctx: Context) -> None:
        with pytest.raises(errors.Unencodable, match="outbox"):
            await ctx.outbox("orders", object(), key="a")
        with pytest.raises(ValueError, match="empty"):
            await ctx.outbox("orders", 1, key="")

    assert (await crash.ran(url, single(node), 0)).status.state == "completed"


async def test_one_key_for_two_messages_of_a_handler_is_a_conflict(
    url: str, single: Single
) -> None:
    async def node(_: int, ctx: Context) -> None:
        await ctx.outbox("orders", 1, key="a")
        await ctx.outbox("orders", 2, key="a")

    ended = await crash.ran(url, single(node), 0)
    assert (ended.status.state, ended.status.code) == ("failed", "KeyConflict")
    assert await waiting(url) == {}


class Loop(Executor):
    @handler
    async def again(self, number: int, ctx: WorkflowContext[int]) -> None:
        await ctx.outbox("orders", number, key="same")
        if number:
            await ctx.send_message(number - 1)


async def test_a_key_of_an_earlier_superstep_is_a_conflict(url: str) -> None:
    loop = Loop(id="loop")
    workflow = WorkflowBuilder(name="loop", start_executor=loop).add_edge(loop, loop).build()
    ended = await crash.ran(url, workflow, 1)
    assert (ended.status.state, ended.status.code) == ("failed", "KeyConflict")
    assert await waiting(url) == {"orders": 1}
    assert invariants.check(ended.events) == []


class Start(Executor):
    @handler
    async def start(self, number: int, ctx: WorkflowContext[int]) -> None:
        await ctx.send_message(number)


class Side(Executor):
    shared = True

    @handler
    async def side(self, number: int, ctx: WorkflowContext[Never]) -> None:
        await ctx.outbox("orders", self.id, key="same" if self.shared else self.id)


@pytest.mark.parametrize(("shared", "queued"), [(True, 0), (False, 2)])
async def test_siblings_of_a_superstep_may_not_share_a_key(
    url: str, shared: bool, queued: int
) -> None:
    start, sides = Start(id="start"), [Side(id="left"), Side(id="right")]
    for side in sides:
        side.shared = shared
    workflow = (
        WorkflowBuilder(name="fan", start_executor=start).add_fan_out_edges(start, sides).build()
    )
    ended = await crash.ran(url, workflow, 1)
    assert ended.status.code == ("KeyConflict" if shared else "")
    assert sum((await waiting(url)).values()) == queued


async def test_another_run_that_spells_the_same_key_is_told(url: str, single: Single) -> None:
    async def node(key: str, ctx: Context) -> None:
        await ctx.outbox("orders", 1, key=key)

    workflow = single(node)
    await crash.ran(url, workflow, "b:c", run_id="a")
    ended = await crash.ran(url, workflow, "c", run_id="a:b")
    assert (ended.status.state, ended.status.code) == ("failed", "KeyConflict")
