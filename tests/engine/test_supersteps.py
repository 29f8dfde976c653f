"""Supersteps: delivered together, committed together, each handler recorded by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Never

import pytest

from ninelives.durable.context import WorkflowContext
from ninelives.engine.runtime import Runtime
from ninelives.graph.builder import WorkflowBuilder
from ninelives.graph.executor import Executor, handler
from ninelives.graph.workflow import Workflow
from support import crash, worlds

Single = Callable[[object], Workflow]
TEMPERATURES = pytest.mark.parametrize("cold", [False, True], ids=["warm", "cold"])


class Split(Executor):
    """Sends one message to each branch."""

    @handler
    async def split(self, value: int, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(f"item {value}")


class Branch(Executor):
    """Does one effect, then what its hook does, and passes its result on."""

    def __init__(self, name: str, outside: worlds.Outside, hook: Callable[[str], None]) -> None:
        super().__init__(id=name)
        self.outside, self.hook = outside, hook

    @handler
    async def work(self, item: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.effect(self.outside.notify, item, key=self.id)
        for _ in range(3 if self.id == "b2" else 1):
            await asyncio.sleep(0.001)  # b2 ends last
        self.hook(self.id)
        await ctx.yield_output(self.id)
        await ctx.send_message(self.id)


class Join(Executor):
    """Yields what the branches sent, as one list."""

    @handler
    async def join(self, items: list[str], ctx: WorkflowContext[Never, list[str]]) -> None:
        await ctx.yield_output(items)


def fan(outside: worlds.Outside, hook: Callable[[str], None] = lambda name: None) -> Workflow:
    split, join = Split(id="split"), Join(id="join")
    branches = [Branch(f"b{n}", outside, hook) for n in range(1, 5)]
    builder = WorkflowBuilder(name="fan", start_executor=split)
    return builder.add_fan_out_edges(split, branches).add_fan_in_edges(branches, join).build()


ALL = ["b1", "b2", "b3", "b4"]


@TEMPERATURES
async def test_outputs_come_in_the_order_of_delivery_not_of_finishing(url: str, cold: bool) -> None:
    ended = await crash.ran(url, fan(worlds.Outside()), 1, cold=cold)
    assert ended.outputs == [*ALL, ALL]


async def test_only_the_branch_that_died_runs_again(url: str) -> None:
    outside, entered = worlds.Outside(), []
    bomb = crash.Bomb()

    def hook(name: str) -> None:
        entered.append(name)
        if name == "b2":
            bomb.here()

    await crash.until_dead(url, fan(outside, hook), 1)
    assert sorted(entered) == ALL
    ended = await crash.resumed(url, fan(outside, hook))
    assert sorted(entered) == sorted([*ALL, "b2"])
    assert ended.outputs == [*ALL, ALL]
    assert sorted(outside.keys) == [f"r:{name}" for name in ALL]


async def test_siblings_of_a_failure_are_recorded_and_only_the_failed_one_is_tried_again(
    url: str,
) -> None:
    outside, entered = worlds.Outside(), []

    def hook(name: str) -> None:
        entered.append(name)
        if name == "b1" and entered.count("b1") == 1:
            raise ValueError("flaky")

    first = await crash.ran(url, fan(outside, hook), 1)
    assert (first.status.state, first.status.code) == ("failed", "ValueError")
    assert first.outputs == []  # nothing of the superstep was committed
    ended = await crash.resumed(url, fan(outside, hook))
    assert ended.outputs == [*ALL, ALL]
    assert sorted(entered) == sorted([*ALL, "b1"])


async def test_an_output_is_unseen_until_its_superstep_commits(url: str, single: Single) -> None:
    yielded, go = asyncio.Event(), asyncio.Event()

    async def node(value: int, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output("early")
        yielded.set()
        await go.wait()

    async with Runtime(url) as runtime:
        run = await runtime.start(single(node), 0, run_id="r")
        await yielded.wait()
        assert [event async for event in run.output_events()] == []
        go.set()
        assert await run.outputs() == ["early"]


@dataclass
class Tick:
    n: int


class Counter(Executor):
    """Counts down by sending itself messages, with state of every kind."""

    @handler
    async def begin(self, value: int, ctx: WorkflowContext[Tick, str]) -> None:
        await ctx.send_message(Tick(value))

    @handler
    async def tick(self, tick: Tick, ctx: WorkflowContext[Tick, str]) -> None:
        seen = ctx.local.get("seen", 0)
        assert isinstance(seen, int)
        ctx.local.set("seen", seen + 1)
        ctx.append_state("log", tick.n)
        ctx.set_state("last", tick)
        if tick.n:
            await ctx.send_message(Tick(tick.n - 1))
        else:
            ctx.delete_state("last")
            await ctx.yield_output(f"{ctx.local.get('seen')} {ctx.get_state('log')}")
        if tick.n == 2:
            self.bomb.here()

    bomb = crash.Bomb(at=-1)


def counter() -> Workflow:
    node = Counter(id="counter")
    return WorkflowBuilder(name="counter", start_executor=node).add_edge(node, node).build()


@TEMPERATURES
async def test_state_of_every_kind_goes_on_over_supersteps(url: str, cold: bool) -> None:
    ended = await crash.ran(url, counter(), 4, cold=cold)
    assert ended.outputs == ["5 [4, 3, 2, 1, 0]"]


@TEMPERATURES
async def test_state_of_a_superstep_that_died_is_not_there(
    url: str, cold: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Counter, "bomb", crash.Bomb())
    await crash.until_dead(url, counter(), 4, cold=cold)
    ended = await crash.resumed(url, counter(), cold=cold)
    assert ended.outputs == ["5 [4, 3, 2, 1, 0]"]


class Keeper(Executor):
    """Keeps its state in attributes, by the checkpoint hooks."""

    def __init__(self, name: str) -> None:
        super().__init__(id=name)
        self.items: list[int] = []
        self.fixed = "never changes"

    @handler
    async def keep(self, value: int, ctx: WorkflowContext[int, list[int]]) -> None:
        self.items = [*self.items, value]
        if value:
            await ctx.send_message(value - 1)
        else:
            await ctx.yield_output(self.items)

    async def on_checkpoint_save(self) -> dict[str, object]:
        return {"items": self.items, "fixed": self.fixed}

    async def on_checkpoint_restore(self, state: dict[str, object]) -> None:
        items = state.get("items", [])
        assert isinstance(items, list)
        self.items = items


@TEMPERATURES
async def test_the_checkpoint_hooks_keep_attributes_and_write_only_what_changed(
    url: str, cold: bool
) -> None:
    node = Keeper("keeper")
    workflow = WorkflowBuilder(name="keeper", start_executor=node).add_edge(node, node).build()
    ended = await crash.ran(url, workflow, 3, cold=cold)
    assert ended.outputs == [[3, 2, 1, 0]]
    keys = [event.fact.key for event in ended.events if event.kind == "state"]  # type: ignore[attr-defined]
    assert (keys.count("items"), keys.count("fixed")) == (4, 1)


async def test_runs_of_one_workflow_do_not_share_their_executors_attributes(url: str) -> None:
    node = Keeper("keeper")
    workflow = WorkflowBuilder(name="keeper", start_executor=node).add_edge(node, node).build()
    async with Runtime(url) as runtime:
        runs = [await runtime.start(workflow, 3, run_id=f"r{n}") for n in range(5)]
        assert [await run.outputs() for run in runs] == [[[3, 2, 1, 0]]] * 5


class Burst(Executor):
    """Sends several messages at once to one executor."""

    @handler
    async def burst(self, value: int, ctx: WorkflowContext[str]) -> None:
        for n in range(value):
            await ctx.send_message(f"m{n}")
        ctx.set_state("who", "burst")


class Queue(Executor):
    """Handles its messages one at a time; the second may die."""

    active = 0

    def __init__(self, bomb: crash.Bomb) -> None:
        super().__init__(id="queue")
        self.bomb, self.entered = bomb, list[str]()

    @handler
    async def take(self, item: str, ctx: WorkflowContext[Never, str]) -> None:
        assert Queue.active == 0
        Queue.active += 1
        try:
            self.entered.append(item)
            await asyncio.sleep(0)
            before = ctx.local.get("before", "nobody")
            ctx.local.set("before", item)
            ctx.set_state("who", item)
            if item == "m1":
                self.bomb.here()
            await ctx.yield_output(f"{item} after {before}, shared {ctx.get_state('who')}")
        finally:
            Queue.active -= 1


async def test_messages_to_one_executor_are_handled_in_order_each_seeing_the_state_before(
    url: str,
) -> None:
    burst, bomb = Burst(id="burst"), crash.Bomb()

    def workflow() -> Workflow:
        queue = Queue(bomb)
        built = WorkflowBuilder(name="queue", start_executor=burst).add_edge(burst, queue).build()
        entered.append(queue.entered)
        return built

    entered: list[list[str]] = []
    await crash.until_dead(url, workflow(), 3)
    ended = await crash.resumed(url, workflow())
    assert ended.outputs == [
        "m0 after nobody, shared m0",
        "m1 after m0, shared m1",
        "m2 after m1, shared m2",
    ]
    assert entered == [["m0", "m1"], ["m1", "m2"]]  # m0 was recorded by itself


async def test_an_unencodable_message_fails_the_run_with_its_path_and_loses_nothing(
    url: str, single: Single
) -> None:
    outside = worlds.Outside()

    async def node(value: int, ctx: WorkflowContext[object, str]) -> None:
        await ctx.effect(outside.notify, "x", key="k")
        await ctx.send_message({"deep": [object()]})

    ended = await crash.ran(url, single(node), 0)
    assert (ended.status.state, ended.status.code) == ("failed", "Unencodable")
    assert "message.deep[0]" in ended.status.reason
    assert ended.count("effect_ended") == 1


async def test_a_value_above_the_limit_fails_only_its_run(url: str, single: Single) -> None:
    async def node(value: int, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output("x" * value)

    async with Runtime(url, value_bytes_max=1000) as runtime:
        large = await runtime.start(single(node), 2000, run_id="large")
        small = await runtime.start(single(node), 10, run_id="small")
        assert (await large.wait()).code == "Unencodable"
        assert await small.outputs() == ["x" * 10]


async def test_a_run_without_a_limit_may_take_hundreds_of_supersteps(url: str) -> None:
    ended = await crash.ran(url, counter(), 300)
    assert ended.count("superstep_committed") == 302


async def test_a_limit_on_supersteps_fails_the_run_with_a_way_out(url: str) -> None:
    node = Counter(id="counter")
    builder = WorkflowBuilder(name="counter", start_executor=node, max_iterations=5)
    ended = await crash.ran(url, builder.add_edge(node, node).build(), 300)
    assert (ended.status.state, ended.status.code) == ("failed", "IterationsExceeded")


async def test_a_runtime_without_a_store_takes_the_one_of_the_environment(
    url: str, single: Single, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def node(value: int, ctx: WorkflowContext[Never, int]) -> None:
        await ctx.yield_output(value)

    monkeypatch.setenv("NINELIVES_STORE", url)
    async with Runtime() as runtime:
        assert runtime.store.url == url
        assert await (await runtime.start(single(node), 1, run_id="r")).outputs() == [1]
