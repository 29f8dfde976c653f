"""Which record answers which call when a handler is entered again."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable
from typing import Never

from ninelives import errors
from ninelives.durable.context import WorkflowContext
from ninelives.graph.workflow import Workflow
from support import crash, worlds

Single = Callable[[object], Workflow]


async def test_a_recorded_step_is_not_run_again(url: str, single: Single) -> None:
    ran: list[int] = []
    bomb = crash.Bomb()

    async def node(value: int, ctx: WorkflowContext[Never, int]) -> None:
        async def double(number: int) -> int:
            ran.append(number)
            return number * 2

        doubled = await ctx.step(double, value)
        bomb.here()
        await ctx.yield_output(doubled)

    workflow = single(node)
    await crash.until_dead(url, workflow, 21)
    ended = await crash.resumed(url, workflow)
    assert (ended.outputs, ran) == ([42], [21])
    assert ended.count("replayed") == 1


async def test_three_equal_calls_in_parallel_are_replayed_each_as_itself(
    url: str, single: Single
) -> None:
    counter = itertools.count(1)
    bomb = crash.Bomb()
    gates = [asyncio.Event() for _ in range(3)]
    seen: list[list[object]] = []

    async def draw() -> int:
        number = next(counter)
        if number == 2:
            await gates[0].wait()  # the second call is the last to finish
        return number

    async def node(value: int, ctx: WorkflowContext[Never, list[object]]) -> None:
        async def opened(work: object) -> object:
            result = await work  # type: ignore[misc]
            gates[0].set()
            return result

        drawn = await asyncio.gather(ctx.step(draw), ctx.step(draw), opened(ctx.step(draw)))
        seen.append(list(drawn))
        bomb.here()
        await ctx.yield_output(list(drawn))

    workflow = single(node)
    await crash.until_dead(url, workflow, 0)
    ended = await crash.resumed(url, workflow)
    assert seen[0] == seen[1] == [1, 2, 3]
    assert ended.outputs == [[1, 2, 3]]


async def test_of_equal_calls_only_the_unrecorded_one_runs_again(url: str, single: Single) -> None:
    calls: list[str] = []
    bomb = crash.Bomb()

    async def slow() -> str:
        calls.append("x")
        if len(calls) == 2:
            bomb.here()  # the second dies on its way, the others are recorded
        return f"call {len(calls)}"

    async def node(value: int, ctx: WorkflowContext[Never, list[object]]) -> None:
        first = await ctx.step(slow)
        second = await ctx.step(slow)
        await ctx.yield_output([first, second])

    workflow = single(node)
    await crash.until_dead(url, workflow, 0)
    ended = await crash.resumed(url, workflow)
    assert ended.outputs == [["call 1", "call 3"]]


async def test_a_prompt_that_holds_the_time_replays_its_recorded_reply(
    url: str, single: Single
) -> None:
    model, bomb = worlds.Echo(), crash.Bomb()
    times = iter(["12:00", "12:07"])

    async def node(value: int, ctx: WorkflowContext[Never, str]) -> None:
        reply = await ctx.model(model, f"It is {next(times)}. What now?")
        bomb.here()
        await ctx.yield_output(reply)

    workflow = single(node)
    await crash.until_dead(url, workflow, 0)
    ended = await crash.resumed(url, workflow)
    assert ended.outputs == ["<It is 12:00. What now?>"]
    assert len(model.requests) == 1
    drifts = [event.fact.drift for event in ended.events if event.kind == "replayed"]  # type: ignore[attr-defined]
    assert drifts == [True]


async def test_calls_that_finish_in_another_order_do_not_swap_results(
    url: str, single: Single
) -> None:
    bomb = crash.Bomb()
    first_run = True
    released = asyncio.Event()

    async def fetch(name: str) -> str:
        if first_run and name == "a":
            await released.wait()
        released.set()
        return f"result of {name}"

    async def line(ctx: WorkflowContext[Never, object], name: str) -> object:
        got = await ctx.step(fetch, name)
        return [got, await ctx.step(fetch, f"after {name}")]

    async def node(value: int, ctx: WorkflowContext[Never, object]) -> None:
        nonlocal first_run
        lines = await asyncio.gather(line(ctx, "a"), line(ctx, "b"))
        first_run = False
        bomb.here()
        await ctx.yield_output(lines)

    workflow = single(node)
    await crash.until_dead(url, workflow, 0)
    ended = await crash.resumed(url, workflow)
    expected = [[f"result of {name}", f"result of after {name}"] for name in "ab"]
    assert ended.outputs == [expected]
    assert ended.count("step_recorded") == 4


async def test_branches_of_gather_find_their_own_records(url: str, single: Single) -> None:
    bomb = crash.Bomb(at=3)
    made: list[int] = []

    async def node(value: int, ctx: WorkflowContext[Never, object]) -> None:
        async def draw() -> int:
            made.append(len(made))
            return made[-1]

        async def branch(turns: int) -> list[int]:
            drawn = []
            for _ in range(turns):
                await asyncio.sleep(0)
                drawn.append(await ctx.step(draw))
            bomb.here()
            return drawn

        await ctx.yield_output(await ctx.gather(branch(1), branch(2), branch(3)))

    workflow = single(node)
    await crash.until_dead(url, workflow, 0)
    ended = await crash.resumed(url, workflow)
    drawn = ended.outputs[0]
    assert isinstance(drawn, list)
    assert [len(each) for each in drawn] == [1, 2, 3]
    assert sorted(itertools.chain(*drawn)) == [0, 1, 2, 3, 4, 5]


async def test_other_code_parks_the_run_before_it_sends_anything(url: str, single: Single) -> None:
    outside, bomb = worlds.Outside(), crash.Bomb()
    key = "first"

    async def node(value: int, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.effect(outside.notify, "hello", key=key)
        bomb.here()

    workflow = single(node)
    await crash.until_dead(url, workflow, 0)
    key = "second"
    ended = await crash.resumed(url, workflow)
    assert (ended.status.state, ended.status.code) == ("parked", "Divergence")
    assert outside.keys == ["r:first"]
    assert "r:first" in ended.status.reason


async def test_a_recorded_effect_that_is_not_asked_for_parks_the_run(
    url: str, single: Single
) -> None:
    outside, bomb, asks = worlds.Outside(), crash.Bomb(), True

    async def node(value: int, ctx: WorkflowContext[Never, str]) -> None:
        if asks:
            await ctx.effect(outside.notify, "hello", key="k")
            bomb.here()

    workflow = single(node)
    await crash.until_dead(url, workflow, 0)
    asks = False
    ended = await crash.resumed(url, workflow)
    assert (ended.status.state, ended.status.code) == ("parked", "Divergence")


async def test_a_recorded_step_that_is_not_asked_for_is_noted(url: str, single: Single) -> None:
    bomb, asks = crash.Bomb(), True

    async def node(value: int, ctx: WorkflowContext[Never, str]) -> None:
        if asks:
            await ctx.step(str, 1)
            bomb.here()

    workflow = single(node)
    await crash.until_dead(url, workflow, 0)
    asks = False
    ended = await crash.resumed(url, workflow)
    assert ended.status.state == "completed"
    assert ended.count("leftover") == 1


async def test_a_step_that_raised_raises_the_same_in_the_next_process(
    url: str, single: Single
) -> None:
    bomb, tries = crash.Bomb(), []

    async def fails() -> None:
        tries.append(1)
        raise ValueError("no such page")

    async def node(value: int, ctx: WorkflowContext[Never, str]) -> None:
        try:
            await ctx.step(fails)
        except errors.StepFailed as failure:
            bomb.here()
            await ctx.yield_output(str(failure))

    workflow = single(node)
    await crash.until_dead(url, workflow, 0)
    ended = await crash.resumed(url, workflow)
    assert len(tries) == 1
    assert "no such page" in str(ended.outputs[0])


async def test_resume_of_a_failed_run_tries_only_the_failure_again(
    url: str, single: Single
) -> None:
    done: list[str] = []

    async def work(name: str) -> str:
        done.append(name)
        if done.count("b") == 1 and name == "b":
            raise ValueError("once")
        return name

    async def node(value: int, ctx: WorkflowContext[Never, object]) -> None:
        await ctx.yield_output([await ctx.step(work, name) for name in "abc"])

    workflow = single(node)
    first = await crash.ran(url, workflow, 0)
    assert (first.status.state, first.status.code) == ("failed", "StepFailed")
    ended = await crash.resumed(url, workflow)
    assert ended.outputs == [["a", "b", "c"]]
    assert done == ["a", "b", "b", "c"]


async def test_durable_operations_inside_a_step_are_refused(url: str, single: Single) -> None:
    async def node(value: int, ctx: WorkflowContext[Never, str]) -> None:
        async def outer() -> None:
            await ctx.step(str, 1)

        await ctx.step(outer)

    ended = await crash.ran(url, single(node), 0)
    assert ended.status.state == "failed"
    assert "would not be repeated on replay" in ended.status.reason


async def test_what_user_code_swallows_still_stops_the_handler(url: str, single: Single) -> None:
    outside, model = worlds.Outside(), worlds.Echo(usage=None)

    async def node(value: int, ctx: WorkflowContext[Never, str]) -> None:
        with contextlib.suppress(BaseException):  # what a careless user writes
            await ctx.model(model, "hi")
        await ctx.effect(outside.notify, "hello", key="k")

    ended = await crash.ran(url, single(node), 0)
    assert (ended.status.state, ended.status.code) == ("parked", "BudgetHalted")
    assert not outside.received
