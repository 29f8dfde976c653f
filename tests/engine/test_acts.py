"""What a person can do to a run: resolve an unknown effect, cancel, clear a halt."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Never

import pytest

from ninelives import errors
from ninelives.durable.context import WorkflowContext
from ninelives.durable.effects import Absent, Applied
from ninelives.engine.runtime import Runtime
from ninelives.graph.builder import WorkflowBuilder
from ninelives.graph.executor import Executor, handler
from ninelives.graph.workflow import Workflow
from ninelives.log import invariants
from support import crash, worlds

Single = Callable[[object], Workflow]
Context = WorkflowContext[Never, str]


@pytest.fixture
def outside() -> worlds.Outside:
    return worlds.Outside()


@pytest.fixture
def unknown(single: Single, outside: worlds.Outside) -> Workflow:
    """A workflow whose effect dies after the act, the first time, and nobody can be asked."""
    bomb = crash.Bomb()

    async def send(text: str, *, key: str) -> str:
        answer = await outside.notify(text, key=key)
        bomb.here()
        return answer

    async def node(value: int, ctx: Context) -> None:
        await ctx.yield_output(await ctx.effect(send, "hello", key="k"))

    return single(node)


async def park(url: str, workflow: Workflow) -> None:
    await crash.until_dead(url, workflow, 0)
    assert (await crash.resumed(url, workflow)).status.code == "OutcomeUnknown"


@pytest.mark.parametrize("key", ["k", "r:k"])
async def test_a_person_who_knows_that_it_happened_lets_the_run_go_on(
    url: str, unknown: Workflow, outside: worlds.Outside, key: str
) -> None:
    await park(url, unknown)
    async with Runtime(url) as runtime:
        await runtime.resolve("r", key, Applied("seen in their log"), by="me")
    ended = await crash.resumed(url, unknown)
    assert ended.outputs == ["seen in their log"]
    assert outside.keys == ["r:k"]
    ends = [event.fact for event in ended.events if event.kind == "effect_ended"]
    assert [each.by for each in ends] == ["person"]  # type: ignore[attr-defined]
    assert invariants.check(ended.events) == []


async def test_a_person_who_knows_that_it_did_not_happen_lets_it_be_sent_again(
    url: str, unknown: Workflow, outside: worlds.Outside
) -> None:
    await park(url, unknown)
    outside.received.clear()
    async with Runtime(url) as runtime:
        await runtime.resolve("r", "k", Absent(), by="me")
    ended = await crash.resumed(url, unknown)
    assert ended.outputs == ["sent hello"]
    assert outside.keys == ["r:k"]


async def test_what_a_person_knew_does_not_hold_for_a_later_sending(
    url: str, single: Single, outside: worlds.Outside
) -> None:
    bombs = [crash.Bomb(), crash.Bomb()]

    async def send(*, key: str) -> None:
        await outside.notify("x", key=key)
        for bomb in bombs:
            bomb.here()

    async def node(value: int, ctx: Context) -> None:
        await ctx.effect(send, key="k")

    await park(url, single(node))
    async with Runtime(url) as runtime:
        await runtime.resolve("r", "k", Absent())
    async with Runtime(url) as runtime:
        run = await runtime.resume("r", single(node))
        with pytest.raises(errors.StaleEpoch):  # it dies in the second sending
            await run.wait()
    ended = await crash.resumed(url, single(node))
    assert (ended.status.state, ended.status.code) == ("parked", "OutcomeUnknown")
    assert len(outside.received) == 2


async def test_only_an_open_effect_can_be_resolved(
    url: str, single: Single, outside: worlds.Outside
) -> None:
    async def node(value: int, ctx: Context) -> None:
        await ctx.effect(outside.notify, "x", key="k")

    await crash.ran(url, single(node), 0)
    async with Runtime(url) as runtime:
        for key in ("k", "other"):
            with pytest.raises(errors.EffectNotOpen):
                await runtime.resolve("r", key, Applied())
        with pytest.raises(errors.RunNotFound):
            await runtime.resolve("nobody", "k", Applied())


class Loops(Executor):
    """Goes on for ever; sees its effects to their outcome."""

    def __init__(self, outside: worlds.Outside, entered: asyncio.Event) -> None:
        super().__init__(id="loops")
        self.outside, self.entered = outside, entered

    @handler
    async def go(self, number: int, ctx: WorkflowContext[int, Never]) -> None:
        async def slow(*, key: str) -> str:
            self.entered.set()
            await asyncio.sleep(0.02)
            return await self.outside.notify("x", key=key)

        await ctx.effect(slow, key=str(number))
        await ctx.send_message(number + 1)


def looping(outside: worlds.Outside, entered: asyncio.Event) -> Workflow:
    node = Loops(outside, entered)
    return WorkflowBuilder(name="loops", start_executor=node).add_edge(node, node).build()


async def test_a_cancelled_run_ends_at_its_next_boundary_with_its_effect_seen_through(
    url: str, outside: worlds.Outside
) -> None:
    entered = asyncio.Event()
    async with Runtime(url) as owner, Runtime(url) as other:
        run = await owner.start(looping(outside, entered), 0, run_id="r")
        await entered.wait()
        assert (await other.cancel("r", by="me")).state == "running"
        assert (await run.wait()).state == "cancelled"
        ended = await crash.ended(run)
    assert ended.kinds()[-2:] == ["run_cancelled", "incarnation_ended"]
    assert ended.count("effect_intended") == ended.count("effect_ended") == len(outside.keys)
    assert invariants.check(ended.events) == []


async def test_a_run_that_nobody_works_on_is_cancelled_at_once(url: str, unknown: Workflow) -> None:
    await park(url, unknown)
    async with Runtime(url) as runtime:
        assert (await runtime.cancel("r", by="me")).state == "cancelled"
        with pytest.raises(errors.RunEnded):
            await runtime.resume("r", unknown)
        with pytest.raises(errors.RunEnded):
            await runtime.cancel("r")


async def test_cancel_and_finish_at_once_leave_one_end(url: str, single: Single) -> None:
    async def node(value: int, ctx: Context) -> None:
        await asyncio.sleep(value / 10_000)

    async with Runtime(url) as runtime:
        for number in range(60):
            run = await runtime.start(single(node), number % 12, run_id=f"r{number}")
            await asyncio.sleep(0.0005)
            told = await asyncio.gather(runtime.cancel(run.id), return_exceptions=True)
            status = await run.wait()
            journal = [event async for event in run.recorded()]
            ends = [
                event.kind for event in journal if event.kind in {"run_completed", "run_cancelled"}
            ]
            assert ends == [f"run_{status.state}"]
            assert invariants.check(journal) == []
            if isinstance(told[0], errors.RunEnded):
                assert status.state == "completed"
