"""Who ended a wait: the deadline, the caller, or the awaited work itself."""

from __future__ import annotations

import asyncio

import pytest

from ninelives.durable import deadlines


async def test_an_answer_in_time_is_returned() -> None:
    async def answer() -> int:
        return 1

    assert await deadlines.within(answer(), 60) == 1
    assert await deadlines.within(answer(), None) == 1


async def test_a_passed_deadline_is_ours() -> None:
    with pytest.raises(deadlines.Expired) as caught:
        await deadlines.within(asyncio.Event().wait(), 0.01)
    assert caught.value.seconds == 0.01


async def test_a_timeout_error_of_the_work_itself_is_not_taken_for_ours() -> None:
    async def impatient() -> None:
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        await deadlines.within(impatient(), 60)


async def test_a_callers_cancellation_is_the_callers() -> None:
    task = asyncio.create_task(deadlines.within(asyncio.Event().wait(), 60))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancellation_that_nobody_asked_for_propagates_unchanged() -> None:
    async def cancels_itself() -> None:
        raise asyncio.CancelledError("from inside a library")

    with pytest.raises(asyncio.CancelledError, match="from inside a library"):
        await deadlines.within(cancels_itself(), 60)


@pytest.mark.parametrize("caller_first", [True, False])
async def test_in_a_tie_of_deadline_and_caller_the_caller_wins(caller_first: bool) -> None:
    for _ in range(200):
        task = asyncio.create_task(deadlines.within(asyncio.Event().wait(), 0))
        if caller_first:
            await asyncio.sleep(0)
            task.cancel()
        else:
            asyncio.get_running_loop().call_soon(task.cancel)
            await asyncio.sleep(0)
        with pytest.raises((asyncio.CancelledError, deadlines.Expired)) as caught:
            await task
        assert task.cancelled() or isinstance(caught.value, deadlines.Expired)
        assert not (task.cancelling() and isinstance(caught.value, deadlines.Expired))


@pytest.mark.parametrize(("inner", "outer"), [(0.01, 60), (60, 0.01)])
async def test_of_nested_deadlines_the_tighter_one_is_named(inner: float, outer: float) -> None:
    async def within_inner() -> None:
        await deadlines.within(asyncio.Event().wait(), inner)

    with pytest.raises(deadlines.Expired) as caught:
        await deadlines.within(within_inner(), outer)
    assert caught.value.seconds == 0.01
