"""Answers that arrive in pieces: settled at their end, unknown if they break."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Never

import pytest

from ninelives.durable.context import WorkflowContext
from ninelives.durable.usage import ModelPiece, ModelReply, ModelRequest, Usage
from ninelives.engine.runtime import Runtime
from ninelives.graph.workflow import Workflow
from support import crash, facts

Single = Callable[[object], Workflow]
Context = WorkflowContext[Never, str]
READ = ModelPiece(text="Good ", usage=Usage(input_tokens=20, output_tokens=1), response_id="r-1")
WRITTEN = ModelPiece(text="day.", usage=Usage(output_tokens=10), last=True)


class Streamer:
    """Gives the pieces it was told, then breaks, stalls or just stops."""

    name = "streamer"

    def __init__(self, *pieces: ModelPiece, broken: str = "") -> None:
        self.pieces, self.broken = pieces, broken
        self.asked = self.closed = 0

    async def request(self, request: ModelRequest) -> ModelReply:
        raise NotImplementedError

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece, None]:
        self.asked += 1
        try:
            for piece in self.pieces:
                yield piece
            if self.broken == "error":
                raise ConnectionResetError("peer went away")
            if self.broken == "silence":
                await asyncio.Event().wait()
        finally:
            self.closed += 1


def writes(single: Single, model: Streamer) -> Workflow:
    async def node(value: int, ctx: Context) -> None:
        seconds = 0.2 if model.broken == "silence" else 30
        line = await ctx.model(model, "hi", reserve_tokens=400, deadline_seconds=seconds)
        await ctx.yield_output(line)

    return single(node)


async def test_a_stream_settles_at_its_end_by_the_parts_of_its_report(
    url: str, single: Single
) -> None:
    model = Streamer(READ, WRITTEN, ModelPiece(text=" Never read."))
    ended = await crash.ran(url, writes(single, model), 0)
    assert ended.outputs == ["Good day."]
    assert (model.asked, model.closed) == (1, 1)
    async with Runtime(url) as runtime:
        spent = await facts.spent(runtime.store)
    assert (spent.settled, spent.held, spent.unknown) == (30, 0, 0)


async def test_a_stream_that_ends_without_a_report_halts_and_keeps_the_reply(
    url: str, single: Single
) -> None:
    model = Streamer(ModelPiece(text="Good day.", last=True))
    ended = await crash.ran(url, writes(single, model), 0)
    assert (ended.status.state, ended.status.code) == ("parked", "BudgetHalted")
    async with Runtime(url) as runtime:
        await runtime.budgets.clear_halt("run:r")
    again = await crash.resumed(url, writes(single, model))
    assert (again.outputs, model.asked) == (["Good day."], 1)


@pytest.mark.parametrize(
    ("broken", "code"),
    [("error", "OutcomeUnknown"), ("quiet end", "OutcomeUnknown"), ("silence", "DeadlineExceeded")],
)
async def test_a_stream_that_breaks_is_unknown_and_stays_counted(
    url: str, single: Single, broken: str, code: str
) -> None:
    model = Streamer(READ, broken=broken)
    ended = await crash.ran(url, writes(single, model), 0)
    assert (ended.status.state, ended.status.code) == ("parked", code)
    assert (ended.outputs, model.closed) == ([], 1)
    async with Runtime(url) as runtime:
        spent = await facts.spent(runtime.store)
    assert (spent.settled, spent.held, spent.unknown) == (0, 0, 400)
    model.pieces = (READ, WRITTEN)
    again = await crash.resumed(url, writes(single, model))
    assert (again.outputs, model.asked) == (["Good day."], 2)
