"""Durable operations that a handler forgets to await, or leaves under way when it ends."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from typing import Never

import pytest

from ninelives.durable.context import WorkflowContext
from ninelives.durable.retries import Retry
from ninelives.engine.runtime import Runtime
from ninelives.graph.workflow import Workflow
from ninelives.log import invariants
from support import crash, worlds

Single = Callable[[object], Workflow]
Context = WorkflowContext[Never, str]


@pytest.mark.parametrize("operation", ["effect", "step", "model"])
async def test_a_forgotten_await_fails_its_handler_and_says_so(
    url: str, single: Single, operation: str
) -> None:
    outside = worlds.Outside()

    async def node(value: int, ctx: Context) -> None:
        match operation:
            case "effect":
                ctx.effect(outside.notify, "hello", key="k")
            case "step":
                ctx.step(len, "hello")
            case _:
                ctx.model(worlds.Echo(), "hello", reserve_tokens=9)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ended = await crash.ran(url, single(node), 0)
    assert (ended.status.state, ended.status.code) == ("failed", "NotAwaited")
    assert "never awaited it, so it has not happened" in ended.status.reason
    assert operation in ended.status.reason
    assert not outside.received


async def test_an_effect_under_way_when_its_handler_ends_is_seen_to_its_outcome(
    url: str, single: Single
) -> None:
    outside = worlds.Outside()
    begun, awaited, tasks = asyncio.Event(), [False], []

    async def send(text: str, *, key: str) -> None:
        begun.set()
        await asyncio.sleep(0.05)
        await outside.notify(text, key=key)

    async def node(value: int, ctx: Context) -> None:
        task = asyncio.create_task(ctx.effect(send, "hello", key="k"))
        tasks.append(task)
        await begun.wait()
        if awaited[0]:
            await task
            await ctx.yield_output("sent")

    ended = await crash.ran(url, single(node), 0)
    assert (ended.status.state, ended.status.code) == ("failed", "NotAwaited")
    assert "it was seen to its end" in ended.status.reason
    assert [event.kind for event in ended.events if event.kind.startswith("effect")] == [
        "effect_intended",
        "effect_ended",
    ]
    awaited[0] = True  # the mended code finds what the other recorded
    again = await crash.resumed(url, single(node))
    assert (again.status.state, again.outputs) == ("completed", ["sent"])
    assert len(outside.received) == 1
    assert not list(invariants.check(again.events))


async def test_siblings_of_a_failure_are_seen_to_their_outcome_before_the_run_fails(
    url: str, single: Single
) -> None:
    begun = asyncio.Event()

    async def slow(*, key: str) -> str:
        begun.set()
        await asyncio.sleep(0.05)
        return "done"

    async def fails() -> None:
        await begun.wait()
        raise ValueError("no")

    async def node(value: int, ctx: Context) -> None:
        await asyncio.gather(ctx.effect(slow, key="k"), ctx.step(fails))

    ended = await crash.ran(url, single(node), 0)
    assert (ended.status.state, ended.status.code) == ("failed", "StepFailed")
    kinds = ended.kinds()
    assert kinds.index("effect_ended") < kinds.index("run_failed")


async def test_a_wait_of_a_sibling_ends_when_the_handler_is_unwound(
    url: str, single: Single
) -> None:
    waits = asyncio.Event()

    async def fails() -> None:
        waits.set()
        raise ConnectionError("try later")

    async def lost(*, key: str) -> None:
        await waits.wait()
        await asyncio.sleep(0.02)
        raise ConnectionError("no answer")

    async def node(value: int, ctx: Context) -> None:
        patient = Retry(attempts_max=2, wait_seconds=3600, wait_max_seconds=3600)
        await ctx.gather(ctx.step(fails, retry=patient), ctx.effect(lost, key="k"))

    ended = await asyncio.wait_for(crash.ran(url, single(node), 0), 30)
    assert (ended.status.state, ended.status.code) == ("parked", "OutcomeUnknown")
    assert ended.count("retry_scheduled") == 1


async def test_a_context_that_outlives_its_handler_begins_nothing(url: str, single: Single) -> None:
    outside, kept = worlds.Outside(), []

    async def node(value: int, ctx: Context) -> None:
        kept.append(ctx)

    async with Runtime(url) as runtime:
        run = await runtime.start(single(node), 0, run_id="r")
        assert (await run.wait()).state == "completed"
        before = len([event async for event in run.watch()])
        with pytest.raises(Exception, match="has ended, and its context with it"):
            await kept[0].effect(outside.notify, "late", key="k")
        assert len([event async for event in run.watch()]) == before
    assert not outside.received
