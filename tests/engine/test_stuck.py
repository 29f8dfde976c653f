"""A run that kills its processes is not handed out for ever."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Never

from ninelives import errors
from ninelives.durable.context import WorkflowContext
from ninelives.engine.runtime import Runtime
from ninelives.graph.workflow import Workflow
from support import crash

Single = Callable[[object], Workflow]
Context = WorkflowContext[Never, str]


async def handed_out(url: str, workflow: Workflow, *, crashes_max: int, force: bool = False) -> str:
    """Resume once more; returns how that ended."""
    async with Runtime(url, crashes_max=crashes_max) as runtime:
        run = await runtime.resume("r", workflow, force=force)
        with contextlib.suppress(errors.StaleEpoch):
            return (await run.wait()).state
        return "died"


async def test_after_so_many_deaths_without_progress_it_is_parked_and_names_the_place(
    url: str, single: Single
) -> None:
    started: list[int] = []

    async def node(value: int, ctx: Context) -> None:
        started.append(1)
        raise errors.OwnershipLost("killed by a test")

    await crash.until_dead(url, single(node), 0)
    ends = [await handed_out(url, single(node), crashes_max=3) for _ in range(4)]
    assert ends == ["died", "died", "parked", "parked"]
    assert len(started) == 3
    async with Runtime(url) as runtime:
        status = await (await runtime.attach("r")).status()
    assert status.code == "Stuck"
    assert "superstep 1" in status.reason
    assert await handed_out(url, single(node), crashes_max=3, force=True) == "died"
    assert len(started) == 4


async def test_deaths_with_progress_between_them_are_not_counted(url: str, single: Single) -> None:
    async def node(value: int, ctx: Context) -> None:
        for number in range(8):
            await ctx.step(str, number)
            if number == ctx.incarnation:
                raise errors.OwnershipLost("killed by a test")
        await ctx.yield_output("through")

    await crash.until_dead(url, single(node), 0)
    ends = [await handed_out(url, single(node), crashes_max=2) for _ in range(7)]
    assert ends == ["died"] * 6 + ["completed"]


async def test_orderly_stops_are_no_deaths(url: str, single: Single) -> None:
    async def node(value: int, ctx: Context) -> None:
        if ctx.incarnation < 6:
            raise errors.Stopped
        await ctx.yield_output("through")

    async with Runtime(url) as runtime:
        await (await runtime.start(single(node), 0, run_id="r")).wait()
    ends = [await handed_out(url, single(node), crashes_max=1) for _ in range(5)]
    assert ends == ["interrupted"] * 4 + ["completed"]


async def test_a_limit_of_one_means_one_start(url: str, single: Single) -> None:
    started: list[int] = []

    async def node(value: int, ctx: Context) -> None:
        started.append(1)
        raise errors.OwnershipLost("killed by a test")

    await crash.until_dead(url, single(node), 0)
    assert await handed_out(url, single(node), crashes_max=1) == "parked"
    assert len(started) == 1
