"""Model calls through the ledger: paid once, unknown counted, missing usage halts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Never

import pytest

from ninelives import errors
from ninelives.durable.context import WorkflowContext
from ninelives.durable.usage import Usage
from ninelives.engine.runtime import Runtime
from ninelives.graph.builder import WorkflowBuilder
from ninelives.graph.executor import Executor, handler
from ninelives.graph.settings import Budget, RunSettings
from ninelives.graph.workflow import Workflow
from ninelives.store.budgets import Spending
from support import crash, facts, worlds

Single = Callable[[object], Workflow]
Context = WorkflowContext[Never, str]


async def budget(url: str) -> Spending:
    async with Runtime(url) as runtime:
        return await facts.spent(runtime.store)


async def test_a_recorded_reply_is_not_paid_for_again(url: str, single: Single) -> None:
    model, bomb = worlds.Echo(), crash.Bomb()

    async def node(value: int, ctx: Context) -> None:
        reply = await ctx.model(model, "hi", reserve_tokens=400)
        bomb.here()
        await ctx.yield_output(reply)

    await crash.until_dead(url, single(node), 0)
    ended = await crash.resumed(url, single(node))
    assert (ended.outputs, len(model.requests)) == (["<hi>"], 1)
    counters = await budget(url)
    assert (counters.settled, counters.held, counters.unknown) == (30, 0, 0)


async def test_a_request_that_died_is_made_again_and_its_first_hold_stays_counted(
    url: str, single: Single
) -> None:
    bomb = crash.Bomb()
    model = worlds.Echo(before=lambda prompt: bomb.here())

    async def node(value: int, ctx: Context) -> None:
        await ctx.yield_output(await ctx.model(model, "hi", reserve_tokens=400))

    await crash.until_dead(url, single(node), 0)
    async with Runtime(url) as runtime:
        run = await runtime.resume("r", single(node))
        assert [hold.tokens for hold in run.orphaned_holds] == [400]
        assert await run.outputs() == ["<hi>"]
    counters = await budget(url)
    assert (counters.settled, counters.held, len(model.requests)) == (30, 400, 2)


async def test_a_missing_usage_report_keeps_the_reply_and_halts_the_budget(
    url: str, single: Single
) -> None:
    outside, model = worlds.Outside(), worlds.Echo(usage=None)

    async def node(value: int, ctx: Context) -> None:
        reply = await ctx.model(model, "hi", reserve_tokens=400)
        await ctx.effect(outside.notify, reply, key="k")

    first = await crash.ran(url, single(node), 0)
    assert (first.status.state, first.status.code) == ("parked", "BudgetHalted")
    assert not outside.received

    halted = await crash.resumed(url, single(node))
    assert (halted.status.state, halted.status.code) == ("parked", "BudgetHalted")
    assert len(halted.events) == len(first.events)  # asked, and nothing was done

    async with Runtime(url) as runtime:
        assert await runtime.clear_halt("r", by="me")
        assert not await runtime.clear_halt("r", by="me")
    ended = await crash.resumed(url, single(node))
    assert ended.status.state == "completed"
    assert len(model.requests) == 1
    assert outside.received == [("r:k", "<hi>")]
    assert (await budget(url)).unknown == 400


@pytest.mark.parametrize("died_between", [False, True])
async def test_a_halt_outlives_the_process_that_halted(
    url: str, single: Single, died_between: bool
) -> None:
    model = worlds.Echo(usage=Usage(input_tokens=None, output_tokens=12))

    async def node(value: int, ctx: Context) -> None:
        try:
            await ctx.model(model, "hi")
        finally:
            if died_between:
                raise errors.OwnershipLost("killed between the halt and the parking")

    if died_between:
        await crash.until_dead(url, single(node), 0)
    else:
        await crash.ran(url, single(node), 0)
    ended = await crash.resumed(url, single(node))
    assert (ended.status.state, ended.status.code) == ("parked", "BudgetHalted")
    assert len(model.requests) == 1


async def test_a_passed_deadline_is_unknown_and_counted_and_resume_tries_again(
    url: str, single: Single
) -> None:
    stalls = [True]

    async def before() -> None:
        if stalls.pop(0):
            await asyncio.Event().wait()

    model = worlds.Echo(before=lambda prompt: before())

    async def node(value: int, ctx: Context) -> None:
        await ctx.yield_output(
            await ctx.model(model, "hi", deadline_seconds=0.02, reserve_tokens=400)
        )

    first = await crash.ran(url, single(node), 0)
    assert (first.status.state, first.status.code) == ("parked", "DeadlineExceeded")
    assert "unknown" in first.status.reason
    assert (await budget(url)).unknown == 400
    stalls.append(False)
    ended = await crash.resumed(url, single(node))
    assert ended.outputs == ["<hi>"]
    counters = await budget(url)
    assert (counters.settled, counters.held, counters.unknown) == (30, 0, 400)


async def test_a_lost_answer_is_unknown_and_parks(url: str, single: Single) -> None:
    def drop(prompt: str) -> None:
        raise ConnectionResetError("dropped")

    async def node(value: int, ctx: Context) -> None:
        await ctx.model(worlds.Echo(before=drop), "hi", reserve_tokens=400)

    ended = await crash.ran(url, single(node), 0)
    assert (ended.status.state, ended.status.code) == ("parked", "OutcomeUnknown")
    assert (await budget(url)).unknown == 400


async def test_a_certain_refusal_releases_the_hold(url: str, single: Single) -> None:
    def refuse(prompt: str) -> None:
        raise errors.ModelRefused("echo", "401 bad key")

    async def node(value: int, ctx: Context) -> None:
        await ctx.model(worlds.Echo(before=refuse), "hi", reserve_tokens=400)

    ended = await crash.ran(url, single(node), 0)
    assert (ended.status.state, ended.status.code) == ("failed", "ModelRefused")
    assert (await budget(url)).committed == 0


async def test_a_callers_cancellation_leaves_the_outcome_unknown(url: str, single: Single) -> None:
    model = worlds.Echo(before=lambda prompt: asyncio.Event().wait())

    async def node(value: int, ctx: Context) -> None:
        try:
            async with asyncio.timeout(0.02):
                await ctx.model(model, "hi", deadline_seconds=60, reserve_tokens=400)
        except TimeoutError:
            await ctx.yield_output("gave up")

    ended = await crash.ran(url, single(node), 0)
    assert ended.outputs == ["gave up"]
    assert (await budget(url)).unknown == 400


async def test_a_budget_admits_what_fits_and_parks_the_rest(url: str) -> None:
    class Asks(Executor):
        @handler
        async def ask(self, value: int, ctx: Context) -> None:
            for n in range(value):
                await ctx.model(model, f"q{n}", reserve_tokens=400)

    model = worlds.Echo()
    settings = RunSettings(budget=Budget(tokens=460))
    workflow = WorkflowBuilder(
        name="asks", start_executor=Asks(id="asks"), settings=settings
    ).build()
    ended = await crash.ran(url, workflow, 5)
    assert (ended.status.state, ended.status.code) == ("parked", "BudgetExceeded")
    assert len(model.requests) == 3  # 0 + 400, 30 + 400, 60 + 400 fit; 90 + 400 does not


async def test_the_coarse_mode_pays_again_but_keeps_the_keys_of_effects(url: str) -> None:
    class Asks(Executor):
        @handler
        async def ask(self, value: int, ctx: Context) -> None:
            reply = await ctx.model(model, "hi", reserve_tokens=400)
            await ctx.effect(outside.notify, reply, key="k")
            bomb.here()
            await ctx.yield_output(reply)

    model, outside, bomb = worlds.Echo(), worlds.Outside(), crash.Bomb()
    settings = RunSettings(record="superstep")
    workflow = WorkflowBuilder(
        name="asks", start_executor=Asks(id="asks"), settings=settings
    ).build()
    await crash.until_dead(url, workflow, 1)
    ended = await crash.resumed(url, workflow)
    assert ended.outputs == ["<hi>"]
    assert (len(model.requests), len(outside.received)) == (2, 1)
    counters = await budget(url)
    assert (counters.settled, counters.held) == (30, 400)
