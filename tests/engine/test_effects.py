"""Effects: once, whatever dies; unknown until somebody knows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Never

import pytest

from ninelives import errors
from ninelives.durable.context import WorkflowContext
from ninelives.durable.effects import Absent, Applied, CannotTell
from ninelives.engine.runtime import Runtime
from ninelives.graph.workflow import Workflow
from support import crash, worlds

Single = Callable[[object], Workflow]
Context = WorkflowContext[Never, str]


async def test_a_confirmed_effect_is_not_sent_again(url: str, single: Single) -> None:
    outside, bomb = worlds.Outside(), crash.Bomb()

    async def node(value: int, ctx: Context) -> None:
        answer = await ctx.effect(outside.notify, "hello", key="k")
        bomb.here()
        await ctx.yield_output(answer)

    await crash.until_dead(url, single(node), 0)
    ended = await crash.resumed(url, single(node))
    assert ended.outputs == ["sent hello"]
    assert outside.received == [("r:k", "hello")]


async def dies_inside(outside: worlds.Outside, bomb: crash.Bomb, text: str, key: str) -> str:
    answer = await outside.notify(text, key=key)
    bomb.here()
    return answer


async def test_an_effect_that_died_after_the_act_is_adopted(url: str, single: Single) -> None:
    outside, bomb = worlds.Outside(), crash.Bomb()

    async def send(text: str, *, key: str) -> str:
        return await dies_inside(outside, bomb, text, key)

    async def node(value: int, ctx: Context) -> None:
        await ctx.yield_output(
            await ctx.effect(send, "hello", key="k", reconcile=outside.reconcile)
        )

    await crash.until_dead(url, single(node), 0)
    ended = await crash.resumed(url, single(node))
    assert ended.outputs == ["sent hello"]
    assert outside.keys == ["r:k"]
    ends = [event.fact for event in ended.events if event.kind == "effect_ended"]
    assert [each.by for each in ends] == ["reconcile"]  # type: ignore[attr-defined]


async def test_an_effect_that_died_before_the_act_is_sent_by_the_next_process(
    url: str, single: Single
) -> None:
    outside, bomb = worlds.Outside(), crash.Bomb()

    async def send(text: str, *, key: str) -> str:
        bomb.here()
        return await outside.notify(text, key=key)

    async def node(value: int, ctx: Context) -> None:
        await ctx.effect(send, f"hello {ctx.incarnation}", key="k", reconcile=outside.reconcile)

    await crash.until_dead(url, single(node), 0)
    ended = await crash.resumed(url, single(node))
    assert ended.status.state == "completed"
    # The arguments recorded with the intent are the ones that are sent.
    assert outside.received == [("r:k", "hello 1")]
    assert ended.count("effect_resent") == 1


@pytest.mark.parametrize(
    "answer", [None, Absent(), CannotTell("try later"), "nonsense", ValueError("down")]
)
async def test_without_a_certain_answer_the_run_parks(
    url: str, single: Single, answer: object
) -> None:
    outside, bomb = worlds.Outside(), crash.Bomb()

    def reconcile(key: str) -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def send(text: str, *, key: str) -> str:
        return await dies_inside(outside, bomb, text, key)

    async def node(value: int, ctx: Context) -> None:
        asked = None if answer is None else reconcile
        await ctx.effect(send, "hello", key="k", reconcile=asked)

    await crash.until_dead(url, single(node), 0)
    for _ in range(2):  # a person who resumes without knowing changes nothing
        ended = await crash.resumed(url, single(node))
        assert (ended.status.state, ended.status.code) == ("parked", "OutcomeUnknown")
        assert "r:k" in ended.status.reason
        assert outside.keys == ["r:k"]


@pytest.mark.parametrize("reconciled", [True, False])
async def test_a_receiver_that_deduplicates_gets_the_same_key_again(
    url: str, single: Single, reconciled: bool
) -> None:
    outside, bomb = worlds.Outside(), crash.Bomb()

    async def send(text: str, *, key: str) -> str:
        return await dies_inside(outside, bomb, text, key)

    async def node(value: int, ctx: Context) -> None:
        await ctx.effect(
            send,
            "hello",
            key="k",
            idempotent_downstream=True,
            reconcile=(lambda key: Absent()) if reconciled else None,
        )

    await crash.until_dead(url, single(node), 0)
    ended = await crash.resumed(url, single(node))
    assert ended.status.state == "completed"
    assert outside.keys == ["r:k", "r:k"]


async def test_absent_is_not_final_while_the_old_owner_may_live(url: str, single: Single) -> None:
    outside = worlds.Outside()
    sending, hung = asyncio.Event(), asyncio.Event()

    async def send(text: str, *, key: str) -> str:
        sending.set()
        await hung.wait()  # hung: it may still send
        return await outside.notify(text, key=key)

    async def node(value: int, ctx: Context) -> None:
        await ctx.effect(send, "hello", key="k", reconcile=outside.reconcile)

    async with Runtime(url) as one, Runtime(url) as two:
        old = await one.start(single(node), 0, run_id="r")
        await sending.wait()
        new = await two.resume("r", single(node), take_over=True)
        status = await new.wait()
        assert (status.state, status.code) == ("parked", "OutcomeUnknown")
        assert not outside.received
        hung.set()
        with pytest.raises(errors.StaleEpoch):
            await old.wait()
    assert outside.keys == ["r:k"]


async def test_a_refused_effect_is_final(url: str, single: Single) -> None:
    tries, bomb = [], crash.Bomb()

    async def pay(*, key: str) -> None:
        tries.append(key)
        raise errors.EffectRefused("no such account")

    async def node(value: int, ctx: Context) -> None:
        try:
            await ctx.effect(pay, key="k")
        except errors.EffectRefused as refused:
            bomb.here()
            await ctx.yield_output(str(refused))

    await crash.until_dead(url, single(node), 0)
    ended = await crash.resumed(url, single(node))
    assert (ended.outputs, tries) == (["no such account"], ["r:k"])


async def test_a_lost_answer_is_asked_for_at_once(url: str, single: Single) -> None:
    outside = worlds.Outside()

    async def send(text: str, *, key: str) -> str:
        await outside.notify(text, key=key)
        raise ConnectionResetError("dropped after applying")

    async def node(value: int, ctx: Context) -> None:
        await ctx.yield_output(
            await ctx.effect(send, "hello", key="k", reconcile=outside.reconcile)
        )

    ended = await crash.ran(url, single(node), 0)
    assert ended.outputs == ["sent hello"]
    assert outside.keys == ["r:k"]


async def test_a_lost_answer_without_anybody_to_ask_parks(url: str, single: Single) -> None:
    async def send(*, key: str) -> None:
        raise ConnectionResetError("dropped")

    async def node(value: int, ctx: Context) -> None:
        await ctx.effect(send, key="k")

    ended = await crash.ran(url, single(node), 0)
    assert (ended.status.state, ended.status.code) == ("parked", "OutcomeUnknown")
    assert "failed" not in ended.status.reason.split("effect")[0]


async def test_a_result_that_cannot_be_recorded_is_done_and_never_sent_again(
    url: str, single: Single
) -> None:
    outside = worlds.Outside()

    async def send(*, key: str) -> object:
        await outside.notify("x", key=key)
        return object()

    async def node(value: int, ctx: Context) -> None:
        await ctx.effect(send, key="k")

    first = await crash.ran(url, single(node), 0)
    assert (first.status.state, first.status.code) == ("failed", "EffectFailed")
    again = await crash.resumed(url, single(node))
    assert "done, result unusable" in again.status.reason
    assert outside.keys == ["r:k"]


async def test_arguments_that_cannot_be_recorded_are_refused_before_anything_is_sent(
    url: str, single: Single
) -> None:
    outside = worlds.Outside()

    async def send(text: object, *, key: str) -> None:
        await outside.notify(str(text), key=key)

    async def node(value: int, ctx: Context) -> None:
        await ctx.effect(send, {"client": object()}, key="k")

    ended = await crash.ran(url, single(node), 0)
    assert (ended.status.state, ended.status.code) == ("failed", "Unencodable")
    assert "client" in ended.status.reason
    assert not outside.received
    assert ended.count("effect_intended") == 0


async def test_a_function_that_does_not_take_its_arguments_is_refused_before_anything_is_recorded(
    url: str, single: Single
) -> None:
    def send(text: str, urgency: int, *, key: str) -> None:
        raise NotImplementedError

    async def node(value: int, ctx: Context) -> None:
        await ctx.effect(send, "hello", key="k")

    ended = await crash.ran(url, single(node), 0)
    assert (ended.status.state, ended.status.code) == ("failed", "TypeError")
    assert "effect 'r:k', nothing was sent" in ended.status.reason
    assert "'urgency'" in ended.status.reason
    assert ended.count("effect_intended") == 0


async def test_one_key_for_two_effects_is_a_conflict(url: str, single: Single) -> None:
    outside = worlds.Outside()

    async def node(value: int, ctx: Context) -> None:
        await ctx.effect(outside.notify, "pay 1", key="k")
        await ctx.effect(outside.notify, "pay 2", key="k")

    ended = await crash.ran(url, single(node), 0)
    assert (ended.status.state, ended.status.code) == ("failed", "KeyConflict")
    assert len(outside.received) == 1


async def test_the_same_effect_under_the_same_key_gives_the_same_result(
    url: str, single: Single
) -> None:
    outside = worlds.Outside()

    async def node(value: int, ctx: Context) -> None:
        one = await ctx.effect(outside.notify, "pay", key="k")
        two = await ctx.effect(outside.notify, "pay", key="k")
        await ctx.yield_output(one + two)

    ended = await crash.ran(url, single(node), 0)
    assert ended.outputs == ["sent paysent pay"]
    assert len(outside.received) == 1


async def test_eight_parallel_effects_are_each_done_once(url: str, single: Single) -> None:
    outside = worlds.Outside()

    def workflow(bomb: crash.Bomb) -> Workflow:
        async def send(text: str, *, key: str) -> str:
            answer = await outside.notify(text, key=key)
            bomb.here()
            return answer

        async def node(value: int, ctx: Context) -> None:
            await asyncio.gather(
                *[
                    ctx.effect(send, str(n), key=str(n), reconcile=outside.reconcile)
                    for n in range(8)
                ]
            )

        return single(node)

    await crash.until_dead(url, workflow(crash.Bomb(at=4)), 0)
    ended = await crash.resumed(url, workflow(crash.Bomb(at=-1)))
    assert ended.status.state == "completed"
    assert sorted(outside.keys) == [f"r:{n}" for n in range(8)]


async def test_the_answer_applied_carries_its_result(url: str, single: Single) -> None:
    bomb = crash.Bomb()

    async def pay(*, key: str) -> dict[str, int]:
        bomb.here()
        return {"id": 1}

    async def node(value: int, ctx: Context) -> None:
        paid = await ctx.effect(pay, key="k", reconcile=lambda key: Applied({"id": 7}))
        await ctx.yield_output(str(paid))

    await crash.until_dead(url, single(node), 0)
    assert (await crash.resumed(url, single(node))).outputs == ["{'id': 7}"]
