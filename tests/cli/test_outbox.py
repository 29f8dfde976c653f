"""The outbox from the command line: deliver, look, queue again."""

from __future__ import annotations

import pathlib
import signal

import pytest

from support.shell import Shell

FILE = """
import os
from ninelives import Channel, EffectRefused, Executor, WorkflowBuilder, WorkflowContext, handler

class Shop(Executor):
    @handler
    async def sell(self, number: int, ctx: WorkflowContext[None, str]) -> None:
        for item in range(number):
            await ctx.outbox("orders", item, key=f"item:{item}")
        await ctx.outbox("news", "sold out", key="news")

shop = WorkflowBuilder(name="shop", start_executor=Shop(id="shop")).build()

def take(item: int, *, key: str) -> None:
    if os.environ.get("REFUSE") == str(item):
        raise EffectRefused("out of stock")
    with open("taken.txt", "a") as file:
        file.write(f"{key} {item}\\n")

async def wait(item: int) -> None:
    import asyncio
    open("began.txt", "w").close()
    await asyncio.Event().wait()

orders = Channel("orders", take, concurrency=1)
waits = [Channel("orders", wait, concurrency=1, deadline_seconds=0.5)]
nothing = 3
"""
RELAY = ("relay", "--once", "--channels", "shop.py:orders")


@pytest.fixture
def sold(shell: Shell) -> Shell:
    """A shell in which a run has left two orders, and news that nobody delivers."""
    (shell.folder / "shop.py").write_text(FILE)
    assert shell("run", "shop.py:shop", "r", "--input", "2").code == 0
    return shell


def taken(folder: pathlib.Path) -> list[str]:
    return (folder / "taken.txt").read_text().splitlines()


def test_a_relay_delivers_what_is_due_and_names_what_it_does_not_serve(sold: Shell) -> None:
    ended = sold(*RELAY)
    assert (ended.code, ended.lines) == (0, ["2 delivered, 0 to be tried again, 0 dead"])
    assert ended.err == "1 messages wait in channel 'news', not served here\n"
    assert taken(sold.folder) == ["r:item:0 0", "r:item:1 1"]
    assert sold("verify").lines == ["1 runs checked, 0 violations"]


def test_what_waits_is_listed(sold: Shell) -> None:
    lines = sold("outbox", "ls").lines
    assert [line.split()[:4] for line in lines[1:]] == [
        ["r", "news", "news", "0"],
        ["r", "orders", "item:1", "0"],
        ["r", "orders", "item:0", "0"],
    ]
    assert [each["key"] for each in sold("outbox", "ls", "r", "--json").json()] == [
        "r:news",
        "r:item:1",
        "r:item:0",
    ]
    assert sold("outbox", "dead").lines == ["no dead letters"]


@pytest.mark.parametrize("key", ["item:1", "r:item:1", "all"])
def test_a_dead_letter_is_shown_with_its_reason_and_queued_again(sold: Shell, key: str) -> None:
    assert sold(*RELAY, REFUSE="1").lines == ["1 delivered, 0 to be tried again, 1 dead"]
    shown = sold("outbox", "dead").lines
    assert "EffectRefused: out of stock" in shown[1]
    assert shown[-1] == "next: mend the cause, then `ninelives outbox requeue r all`"
    again = sold("outbox", "requeue", "r", key, "--by", "me")
    assert again.lines == ["r:item:1: queued again, says me"]
    assert sold(*RELAY).lines[0].startswith("1 delivered")
    assert taken(sold.folder) == ["r:item:0 0", "r:item:1 1"]
    report = sold("report", "r").lines
    assert "outbox: 3 queued: 2 delivered, 1 waiting, 0 dead" in report


def test_what_is_not_dead_cannot_be_queued_again(sold: Shell) -> None:
    refused = sold("outbox", "requeue", "r", "item:0")
    assert refused.code == 2
    assert "LetterNotDead" in refused.err
    assert sold("outbox", "requeue", "r", "all").code == 0
    assert sold("outbox", "requeue", "other", "all").code == 2


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("relay",), "name them with --channels"),
        (("relay", "--channels", "shop.py:nothing"), "give a Channel"),
        (("relay", "--channels", "shop.py:absent"), "no attribute 'absent'"),
        (("relay", "--channels", "absent.py:orders"), "there is no file"),
    ],
)
def test_a_relay_without_channels_that_it_can_serve_is_refused(
    sold: Shell, words: tuple[str, ...], why: str
) -> None:
    refused = sold(*words)
    assert refused.code == 2
    assert why in refused.err


def test_channels_may_be_named_by_the_environment(sold: Shell) -> None:
    assert sold("relay", "--once", NINELIVES_CHANNELS="shop.py:orders").code == 0


def test_a_signal_ends_a_relay_after_the_delivery_under_way(sold: Shell) -> None:
    relay = sold.start("relay", "--channels", "shop.py:waits")
    began = sold.folder / "began.txt"
    while not began.exists():
        assert relay.poll() is None
    relay.send_signal(signal.SIGTERM)
    said, _ = relay.communicate(timeout=50)
    assert relay.returncode == 128 + signal.SIGTERM
    assert said == "0 delivered, 1 to be tried again, 0 dead\n"
