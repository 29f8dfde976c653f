"""Retries survive, deadlines are unknown outcomes, late outcomes are recorded."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Never

import pytest

from ninelives import Retry, effect, errors
from ninelives.durable.context import WorkflowContext
from ninelives.durable.effects import Absent, Applied
from ninelives.engine.runtime import Runtime
from ninelives.graph.workflow import Workflow
from ninelives.log import events, invariants
from support import crash, facts, worlds

Single = Callable[[object], Workflow]
Context = WorkflowContext[Never, str]
QUICK = Retry(attempts_max=3, wait_seconds=0.001)


async def test_a_step_is_tried_again_and_each_attempt_is_in_the_journal(
    url: str, single: Single
) -> None:
    tries: list[int] = []

    async def flaky() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionError(f"try {len(tries)}")
        return "third time"

    async def node(value: int, ctx: Context) -> None:
        await ctx.yield_output(await ctx.step(flaky, retry=QUICK))

    ended = await crash.ran(url, single(node), 0)
    assert ended.outputs == ["third time"]
    made = [event.fact for event in ended.events if event.kind == "retry_scheduled"]
    assert [(each.attempts, each.message) for each in made] == [(1, "try 1"), (2, "try 2")]  # type: ignore[attr-defined]


async def test_at_its_limit_a_step_fails_with_the_last_error(url: str, single: Single) -> None:
    tries: list[int] = []

    async def always() -> None:
        tries.append(1)
        raise ConnectionError(f"try {len(tries)}")

    async def node(value: int, ctx: Context) -> None:
        await ctx.step(always, retry=QUICK)

    ended = await crash.ran(url, single(node), 0)
    assert (ended.status.state, ended.status.code) == ("failed", "StepFailed")
    assert "try 3" in ended.status.reason
    assert len(tries) == 3


@pytest.mark.parametrize(
    "retry",
    [
        Retry(wait_seconds=0.001, retry_on=(ConnectionError,)),
        Retry(wait_seconds=0.001, give_up_on=(LookupError,)),
    ],
)
async def test_an_error_that_the_policy_does_not_name_is_not_tried_again(
    url: str, single: Single, retry: Retry
) -> None:
    tries: list[int] = []

    async def fails() -> None:
        tries.append(1)
        raise KeyError("gone")

    async def node(value: int, ctx: Context) -> None:
        await ctx.step(fails, retry=retry)

    assert (await crash.ran(url, single(node), 0)).status.state == "failed"
    assert len(tries) == 1


async def test_attempts_made_before_a_crash_count_after_it(url: str, single: Single) -> None:
    tries: list[int] = []
    bomb = crash.Bomb(at=2)

    async def fails() -> None:
        tries.append(1)
        bomb.here()  # dies in the second attempt
        raise ConnectionError("down")

    async def node(value: int, ctx: Context) -> None:
        await ctx.step(fails, retry=QUICK)

    await crash.until_dead(url, single(node), 0)
    ended = await crash.resumed(url, single(node))
    assert ended.status.state == "failed"
    assert len(tries) == 4  # the one that died is made again


async def test_a_wait_is_a_recorded_moment_and_not_a_duration(url: str, single: Single) -> None:
    tries: list[int] = []
    clock = [1_000_000]

    async def flaky() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise ConnectionError("down")
        return "up"

    async def node(value: int, ctx: Context) -> None:
        await ctx.yield_output(await ctx.step(flaky, retry=Retry(wait_seconds=3600)))

    async with Runtime(url, now=lambda: clock[0]) as runtime:
        run = await runtime.start(single(node), 0, run_id="r")
        async for event in run.watch():
            if event.kind == "retry_scheduled":
                break
        runtime.request_stop()
        assert (await run.wait()).state == "interrupted"
    clock[0] += 4_000_000
    async with Runtime(url, now=lambda: clock[0]) as runtime:
        run = await runtime.resume("r", single(node))
        assert await run.outputs() == ["up"]


async def test_each_attempt_of_a_model_call_has_a_hold_of_its_own(url: str, single: Single) -> None:
    asked: list[str] = []

    def drop(prompt: str) -> None:
        asked.append(prompt)
        if len(asked) == 1:
            raise ConnectionResetError("dropped")
        if len(asked) == 2:
            raise errors.ModelRefused("echo", "429 too many requests", transient=True)

    async def node(value: int, ctx: Context) -> None:
        model = worlds.Echo(before=drop)
        await ctx.yield_output(await ctx.model(model, "hi", reserve_tokens=400, retry=QUICK))

    ended = await crash.ran(url, single(node), 0)
    assert ended.outputs == ["<hi>"]
    assert ended.count("model_requested") == 3
    async with Runtime(url) as runtime:
        budget = await facts.spent(runtime.store)
    assert (budget.settled, budget.held, budget.unknown) == (30, 0, 400)


async def test_a_permanent_refusal_is_asked_once(url: str, single: Single) -> None:
    def refuse(prompt: str) -> None:
        raise errors.ModelRefused("echo", "401 bad key")

    model = worlds.Echo(before=refuse)

    async def node(value: int, ctx: Context) -> None:
        await ctx.model(model, "hi", retry=QUICK)

    ended = await crash.ran(url, single(node), 0)
    assert (ended.status.code, len(model.requests)) == ("ModelRefused", 1)


async def test_an_effect_is_sent_again_only_after_the_other_side_was_asked(
    url: str, single: Single
) -> None:
    outside, asked = worlds.Outside(), list[str]()

    async def send(text: str, *, key: str) -> str:
        if len(asked) < 2:
            raise ConnectionError("not reached")
        return await outside.notify(text, key=key)

    def reconcile(key: str) -> Absent | Applied:
        asked.append(key)
        return outside.reconcile(key)

    async def node(value: int, ctx: Context) -> None:
        await ctx.yield_output(
            await ctx.effect(send, "x", key="k", reconcile=reconcile, retry=QUICK)
        )

    ended = await crash.ran(url, single(node), 0)
    assert ended.outputs == ["sent x"]
    assert outside.keys == ["r:k"]
    assert asked == ["r:k", "r:k"]


async def test_a_coroutine_that_passes_its_deadline_is_asked_about(
    url: str, single: Single
) -> None:
    outside = worlds.Outside()

    async def send(text: str, *, key: str) -> str:
        answer = await outside.notify(text, key=key)
        await asyncio.Event().wait()  # the answer never comes
        return answer

    async def node(value: int, ctx: Context) -> None:
        answer = await ctx.effect(
            send, "x", key="k", reconcile=outside.reconcile, deadline_seconds=0.02
        )
        await ctx.yield_output(answer)

    ended = await crash.ran(url, single(node), 0)
    assert ended.outputs == ["sent x"]
    outcomes = [event.fact.outcome for event in ended.events if event.kind == "effect_ended"]  # type: ignore[attr-defined]
    assert outcomes == ["unknown", "confirmed"]


async def test_a_passed_deadline_without_an_answer_parks(url: str, single: Single) -> None:
    async def send(*, key: str) -> None:
        await asyncio.Event().wait()

    async def node(value: int, ctx: Context) -> None:
        await ctx.effect(send, key="k", deadline_seconds=0.02)

    ended = await crash.ran(url, single(node), 0)
    assert (ended.status.state, ended.status.code) == ("parked", "DeadlineExceeded")


async def test_a_thread_that_outlives_its_deadline_delivers_its_outcome(
    url: str, single: Single
) -> None:
    go, sent = threading.Event(), list[str]()

    def send(text: str, *, key: str) -> str:
        go.wait(20)
        sent.append(key)
        return f"late {text}"

    async def node(value: int, ctx: Context) -> None:
        answer = await ctx.effect(
            send, "x", key="k", deadline_seconds=0.02, idempotent_downstream=True
        )
        await ctx.yield_output(answer)

    async with Runtime(url) as runtime, Runtime(url) as other:
        run = await runtime.start(single(node), 0, run_id="r")
        async for event in run.watch(follow=True):
            if isinstance(event.fact, events.RunParked):
                break
        with pytest.raises(errors.RunOwned):  # nobody sends again before that is settled
            await other.resume("r", single(node))
        go.set()
        assert (await run.wait()).code == "DeadlineExceeded"
        resumed = await other.resume("r", single(node))
        assert await resumed.outputs() == ["late x"]
    assert sent == ["r:k"]


async def test_settings_declared_beside_the_function_hold_for_every_call(
    url: str, single: Single
) -> None:
    outside, bomb = worlds.Outside(), crash.Bomb()

    @effect(reconcile=outside.reconcile)
    async def send(text: str, *, key: str) -> str:
        answer = await outside.notify(text, key=key)
        bomb.here()
        return answer

    async def node(value: int, ctx: Context) -> None:
        await ctx.yield_output(await ctx.effect(send, "x", key="k"))

    await crash.until_dead(url, single(node), 0)
    ended = await crash.resumed(url, single(node))
    assert ended.outputs == ["sent x"]
    assert outside.keys == ["r:k"]


async def test_a_handler_is_entered_again_and_what_it_recorded_is_not_repeated(
    url: str, single: Single
) -> None:
    outside, entered = worlds.Outside(), list[int]()

    async def node(value: int, ctx: Context) -> None:
        entered.append(1)
        await ctx.effect(outside.notify, "x", key="k")
        if len(entered) < 3:
            raise ConnectionError(f"try {len(entered)}")
        await ctx.yield_output("through")

    workflow = single(node)
    workflow.executors["node"].retry = QUICK
    ended = await crash.ran(url, workflow, 0)
    assert ended.outputs == ["through"]
    assert (len(entered), len(outside.received)) == (3, 1)
    assert ended.count("handler_retried") == 2
    assert invariants.check(ended.events) == []


async def test_a_handlers_attempts_survive_a_crash_and_end_at_the_limit(
    url: str, single: Single
) -> None:
    entered, bomb = list[int](), crash.Bomb(at=2)

    async def fails() -> None:
        raise ConnectionError("down")

    async def node(value: int, ctx: Context) -> None:
        entered.append(1)
        bomb.here()  # the second attempt dies with its process
        await ctx.step(fails)

    workflow = single(node)
    workflow.executors["node"].retry = QUICK
    await crash.until_dead(url, workflow, 0)
    ended = await crash.resumed(url, workflow)
    assert (ended.status.state, ended.status.code) == ("failed", "StepFailed")
    assert len(entered) == 4  # two failed, one died and was made again, the third failed
    assert ended.count("handler_retried") == 2
    assert ended.count("step_failed") == 3


async def test_a_late_outcome_does_not_come_beside_what_was_adopted_meanwhile(
    url: str, single: Single
) -> None:
    asked = threading.Event()

    def send(*, key: str) -> str:
        asked.wait(20)
        return "from the thread"

    async def reconcile(key: str) -> Applied:
        asked.set()  # the thread returns while this answer is being recorded
        return Applied("from reconcile")

    async def node(value: int, ctx: Context) -> None:
        await ctx.yield_output(
            await ctx.effect(send, key="k", reconcile=reconcile, deadline_seconds=0.01)
        )

    async with Runtime(url) as runtime:
        for number in range(20):
            asked.clear()
            run = await runtime.start(single(node), 0, run_id=f"r{number}")
            ended = await crash.ended(run)
            assert ended.status.state == "completed"
            assert invariants.check(ended.events) == []
            assert ended.count("effect_ended") == 2
