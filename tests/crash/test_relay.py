"""Real relays are killed at each of their boundaries, against a real HTTP server that counts.

Nothing is lost, and the receiver sees a key twice only where that is promised: when the relay
died between the acknowledgement and the mark.
"""

from __future__ import annotations

import asyncio
import collections
import pathlib
import signal
import threading

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from ninelives.faults import Boundary
from support import outboxes
from support.shell import Shell

RELAY = [each for each in Boundary if each.value.startswith("relay_")]
CHANNELS = """
import os
from ninelives import Backoff, Channel, Webhook

channel = Channel(
    "c",
    Webhook(os.environ["NOTIFY_URL"]),
    concurrency=int(os.environ.get("AT_ONCE", "1")),
    ordered=bool(os.environ.get("ORDERED")),
    backoff=Backoff(wait_seconds=0),
)
"""
WORKFLOW = """
from ninelives import Executor, WorkflowBuilder, WorkflowContext, handler

class Shop(Executor):
    @handler
    async def sell(self, number: int, ctx: WorkflowContext[None, str]) -> None:
        ctx.set_state("sold", number)
        for item in range(number):
            await ctx.outbox("c", {"item": item}, key=f"item:{item}")
        await ctx.yield_output("sold")

shop = WorkflowBuilder(name="shop", start_executor=Shop(id="shop")).build()
"""
RELAYS = ("relay", "--once", "--channels", "channels.py:channel")


class World:
    """The receiver: answers at once, and knows which key it has seen how often, in order."""

    def __init__(self, server: HTTPServer) -> None:
        self.keys: list[str] = []
        self.arrived, self.open = threading.Event(), threading.Event()
        self.open.set()
        self.url = server.url_for("/hook")
        server.expect_request("/hook").respond_with_handler(self._take)

    def _take(self, request: Request) -> Response:
        self.keys.append(request.headers["Idempotency-Key"])
        self.arrived.set()
        self.open.wait(30)
        return Response(status=204)

    def counts(self) -> collections.Counter[str]:
        return collections.Counter(self.keys)


@pytest.fixture
def world(httpserver: HTTPServer) -> World:
    return World(httpserver)


@pytest.fixture
def shell(tmp_path: pathlib.Path, world: World) -> Shell:
    (tmp_path / "channels.py").write_text(CHANNELS)
    (tmp_path / "shop.py").write_text(WORKFLOW)
    return Shell(tmp_path, {"NOTIFY_URL": world.url})


def sell(shell: Shell, number: int) -> set[str]:
    """A run that leaves so many messages; returns their keys."""
    sold = shell("run", "shop.py:shop", "r", "--input", str(number))
    assert sold.lines == ["sold"], sold.err
    return {f"r:item:{item}" for item in range(number)}


def all_is_well(shell: Shell, number: int) -> None:
    async def look() -> None:
        async with outboxes.opened(f"sqlite:///{shell.folder}/ninelives.db") as store:
            assert await store.outbox.waiting() == {}
            kinds = await outboxes.kinds(store)
            assert kinds == ["outbox_delivered"] * number

    asyncio.run(look())


@pytest.mark.parametrize("arrival", [1, 2, 3])
@pytest.mark.parametrize("boundary", RELAY, ids=lambda each: each.value)
def test_a_relay_that_dies_loses_nothing_and_repeats_only_what_it_had_not_marked(
    shell: Shell, world: World, boundary: Boundary, arrival: int
) -> None:
    keys = sell(shell, 3)
    killed = shell(*RELAYS, NINELIVES_KILL_AT=f"{boundary.value}:{arrival}")
    assert killed.code == -signal.SIGKILL, killed.err
    ended = shell(*RELAYS)
    assert ended.code == 0, ended.err
    twice = {f"r:item:{arrival - 1}"} if boundary is Boundary.RELAY_DELIVERED else set()
    counts = world.counts()
    assert set(counts) == keys
    assert {key for key, count in counts.items() if count == 2} == twice
    assert max(counts.values()) <= 2
    all_is_well(shell, 3)


def test_an_ordered_channel_keeps_its_order_over_a_death(shell: Shell, world: World) -> None:
    sell(shell, 4)
    shell(*RELAYS, NINELIVES_KILL_AT="relay_delivered:2", ORDERED="1", AT_ONCE="8")
    shell(*RELAYS, ORDERED="1", AT_ONCE="8")
    assert world.keys == [f"r:item:{item}" for item in (0, 1, 1, 2, 3)]
    all_is_well(shell, 4)


def test_a_relay_that_dies_with_many_in_hand_repeats_no_more_than_those(
    shell: Shell, world: World
) -> None:
    keys = sell(shell, 100)
    shell(*RELAYS, NINELIVES_KILL_AT="relay_delivered:50", AT_ONCE="8")
    assert shell(*RELAYS, AT_ONCE="8").code == 0
    counts = world.counts()
    assert set(counts) == keys
    assert max(counts.values()) <= 2
    assert 1 <= sum(count == 2 for count in counts.values()) <= 8
    all_is_well(shell, 100)


@pytest.mark.parametrize("boundary", ["superstep_committed", "run_ended"])
def test_a_run_that_dies_after_its_commit_has_its_messages_delivered(
    shell: Shell, world: World, boundary: str
) -> None:
    killed = shell("run", "shop.py:shop", "r", "--input", "3", NINELIVES_KILL_AT=boundary)
    assert killed.code == -signal.SIGKILL
    assert shell(*RELAYS).code == 0
    assert world.counts() == {f"r:item:{item}": 1 for item in range(3)}


def test_a_run_that_dies_before_its_commit_has_left_nothing(shell: Shell, world: World) -> None:
    arguments = ("run", "shop.py:shop", "r", "--input", "3")
    assert shell(*arguments, NINELIVES_KILL_AT="superstep_done").code == -signal.SIGKILL
    assert shell(*RELAYS).code == 0
    assert world.keys == []
    assert shell(*arguments).code == 0
    assert shell(*RELAYS).code == 0
    assert world.counts() == {f"r:item:{item}": 1 for item in range(3)}
    all_is_well(shell, 3)


def test_two_relays_deliver_a_thousand_messages_once_each(shell: Shell, world: World) -> None:
    keys = sell(shell, 1000)
    relays = [shell.start(*RELAYS, AT_ONCE="8") for _ in range(2)]
    said = [child.communicate(timeout=50)[0] for child in relays]
    assert [child.returncode for child in relays] == [0, 0]
    assert world.counts() == dict.fromkeys(keys, 1)
    delivered = [int(words.split()[0]) for words in said]
    assert sum(delivered) == 1000
    assert min(delivered) > 0, "one of them had nothing to do: the test has shown nothing"
    all_is_well(shell, 1000)


def test_what_a_living_relay_has_in_hand_is_not_taken_and_a_dead_ones_is_at_once(
    shell: Shell, world: World
) -> None:
    sell(shell, 1)
    world.open.clear()
    first = shell.start(*RELAYS)
    assert world.arrived.wait(30)
    first.send_signal(signal.SIGSTOP)  # it hangs, and is alive
    assert shell(*RELAYS).lines == ["0 delivered, 0 to be tried again, 0 dead"]
    first.kill()
    first.communicate(timeout=50)
    world.open.set()
    assert shell(*RELAYS).lines == ["1 delivered, 0 to be tried again, 0 dead"]
    assert world.counts() == {"r:item:0": 2}
    all_is_well(shell, 1)
