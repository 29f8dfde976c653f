"""What a relay promises: at least once under one key, marked after the acknowledgement, in order
where asked, later after trouble, never again after a refusal, and by one relay at a time.
"""

from __future__ import annotations

import asyncio
import dataclasses
import threading

import msgspec
import pytest

from ninelives import codec, errors
from ninelives.engine.channels import Backoff, Channel, checked
from ninelives.engine.relay import Relay
from ninelives.ids import RunId
from ninelives.log import events
from ninelives.store.base import Store
from support import outboxes
from support.outboxes import Clock, Receiver


def relay(store: Store, *channels: Channel, now: Clock | None = None) -> Relay:
    return Relay(store, channels, now=now or Clock(), fraction=lambda: 1.0)


async def test_a_message_is_delivered_with_its_payload_and_marked_in_the_journal(url: str) -> None:
    receiver = Receiver()
    async with outboxes.opened(url) as store:
        await outboxes.fill(store, "r", ["a"], payload={"total": 3})
        tally = await relay(store, Channel("c", receiver.take)).once()
        assert receiver.got == [("r:a", {"total": 3})]
        assert (tally.delivered, tally.postponed, tally.dead) == (1, 0, 0)
        assert await outboxes.kinds(store) == ["outbox_delivered"]
        assert await store.outbox.waiting() == {}
        await relay(store, Channel("c", receiver.take)).once()
    assert len(receiver.got) == 1


async def test_a_synchronous_function_runs_in_a_thread_and_may_do_without_the_key(
    url: str,
) -> None:
    receiver = Receiver()
    async with outboxes.opened(url) as store:
        await outboxes.fill(store, "r", ["a", "b"])
        await relay(store, Channel("c", receiver.take_in_a_thread)).once()
    assert receiver.got == [("", 1), ("", 1)]


async def test_trouble_is_tried_again_when_its_time_has_come_with_the_same_key(url: str) -> None:
    receiver, now = Receiver(trouble=[OSError("down"), OSError("down")]), Clock()
    channel = Channel("c", receiver.take, backoff=Backoff(wait_seconds=10))
    async with outboxes.opened(url) as store:
        await outboxes.fill(store, "r", ["a"])
        await relay(store, channel, now=now).once()
        waiting = await outboxes.letter(store)
        assert (waiting.attempts, waiting.next_at, waiting.claimed) == (1, 11_000, False)
        assert (waiting.error, waiting.message) == ("OSError", "down")
        now.ms = 10_999
        await relay(store, channel, now=now).once()
        assert len(receiver.got) == 1
        now.ms = 11_000
        await relay(store, channel, now=now).once()
        assert (await outboxes.letter(store)).next_at == 31_000  # twice as long
        now.ms = 31_000
        await relay(store, channel, now=now).once()
        assert await outboxes.kinds(store) == ["outbox_delivered"]
    assert receiver.keys == ["r:a"] * 3


async def test_a_refusal_is_a_dead_letter_at_once_and_a_person_may_queue_it_again(
    url: str,
) -> None:
    receiver = Receiver(trouble=[errors.EffectRefused("no such customer")])
    channel = Channel("c", receiver.take)
    async with outboxes.opened(url) as store:
        await outboxes.fill(store, "r", ["a"])
        assert (await relay(store, channel).once()).dead == 1
        assert (await relay(store, channel).once()).dead == 0
        found = await outboxes.letter(store, "dead")
        assert (found.attempts, found.message) == (1, "no such customer")
        assert await store.outbox.requeue(RunId("r"), "r:b", 2, by="me") == []
        assert await store.outbox.requeue(RunId("r"), "r:a", 2, by="me") == ["r:a"]
        assert await store.outbox.requeue(RunId("r"), None, 2, by="me") == []
        assert (await relay(store, channel).once()).delivered == 1
        assert await outboxes.kinds(store) == ["outbox_dead", "outbox_requeued", "outbox_delivered"]
    assert receiver.keys == ["r:a", "r:a"]


async def test_after_so_many_attempts_it_is_a_dead_letter(url: str) -> None:
    receiver, now = Receiver(trouble=[OSError("down")] * 9), Clock()
    channel = Channel("c", receiver.take, attempts_max=3, backoff=Backoff(wait_seconds=0))
    async with outboxes.opened(url) as store:
        await outboxes.fill(store, "r", ["a"])
        for _ in range(5):
            await relay(store, channel, now=now).once()
        assert (await outboxes.letter(store, "dead")).attempts == 3
    assert len(receiver.got) == 3


async def test_each_run_of_an_ordered_channel_gets_its_messages_in_their_order(url: str) -> None:
    receiver, now = Receiver(), Clock()
    channel = Channel("c", receiver.take, ordered=True)
    async with outboxes.opened(url) as store:
        await outboxes.fill(store, "a", range(20))
        await outboxes.fill(store, "b", range(20))
        await relay(store, channel, now=now).once()
    assert [key for key in receiver.keys if key[0] == "a"] == [f"a:{n}" for n in range(20)]
    assert [key for key in receiver.keys if key[0] == "b"] == [f"b:{n}" for n in range(20)]
    assert receiver.keys != sorted(receiver.keys)  # the runs do not wait for each other


async def test_in_an_ordered_channel_trouble_holds_back_its_run_only(url: str) -> None:
    receiver, now = Receiver(trouble=[OSError("down")]), Clock()
    channel = Channel("c", receiver.take, ordered=True)
    async with outboxes.opened(url) as store:
        await outboxes.fill(store, "a", [1, 2])
        await outboxes.fill(store, "b", [1, 2])
        await relay(store, channel, now=now).once()
        assert receiver.keys == ["a:1", "b:1", "b:2"]
        now.ms += 1_000
        await relay(store, channel, now=now).once()
    assert receiver.keys == ["a:1", "b:1", "b:2", "a:1", "a:2"]


async def test_in_an_ordered_channel_a_dead_letter_lets_the_next_one_pass(url: str) -> None:
    receiver = Receiver(trouble=[errors.EffectRefused("no")])
    async with outboxes.opened(url) as store:
        await outboxes.fill(store, "r", [1, 2])
        await relay(store, Channel("c", receiver.take, ordered=True)).once()
    assert receiver.keys == ["r:1", "r:2"]


async def test_a_coroutine_that_passes_the_deadline_is_tried_again(url: str) -> None:
    async def hang(payload: object) -> None:
        await asyncio.Event().wait()

    async with outboxes.opened(url) as store:
        await outboxes.fill(store, "r", ["a"])
        await relay(store, Channel("c", hang, deadline_seconds=0.01)).once()
        assert (await outboxes.letter(store)).error == "Expired"


async def test_a_thread_that_passes_the_deadline_is_waited_for(url: str) -> None:
    """It cannot be stopped, and sending again beside it would be worse than waiting."""

    def slow(payload: object) -> None:
        threading.Event().wait(0.05)

    async with outboxes.opened(url) as store:
        await outboxes.fill(store, "r", ["a"])
        tally = await relay(store, Channel("c", slow, deadline_seconds=0.01)).once()
        assert tally.delivered == 1


@dataclasses.dataclass
class Order:
    total: int


async def test_a_payload_comes_back_as_what_it_was_where_its_type_is_known(url: str) -> None:
    receiver, known = Receiver(), codec.Registry()
    known.register(Order)
    raw = msgspec.Raw(codec.encode(Order(3), known))
    fact = events.OutboxQueued(channel="c", key="r:a", payload=raw)
    async with outboxes.opened(url) as store:
        await outboxes.put(store, "r", [fact])
        assert (await relay(store, Channel("c", receiver.take)).once()).postponed == 1
        assert (await outboxes.letter(store)).error == "Undecodable"
        now = Clock(100_000)
        await relay(store, Channel("c", receiver.take, registry=known), now=now).once()
    assert receiver.got == [("r:a", Order(3))]


async def test_a_cancellation_inside_the_receiver_is_its_own_trouble(url: str) -> None:
    receiver = Receiver(trouble=[asyncio.CancelledError()])
    async with outboxes.opened(url) as store:
        await outboxes.fill(store, "r", ["a"])
        assert (await relay(store, Channel("c", receiver.take)).once()).postponed == 1


async def test_a_slow_channel_holds_up_no_other(url: str) -> None:
    free = asyncio.Event()
    receiver = Receiver()

    async def slow(payload: object) -> None:
        await free.wait()

    async def fast(payload: object, *, key: str) -> None:
        await receiver.take(payload, key=key)
        free.set()

    async with outboxes.opened(url) as store:
        await outboxes.fill(store, "a", [1], channel="slow")
        await outboxes.fill(store, "b", [1], channel="fast")
        tally = await relay(store, Channel("slow", slow), Channel("fast", fast)).once()
        assert tally.delivered == 2


async def test_channels_that_a_relay_does_not_serve_wait(url: str) -> None:
    async with outboxes.opened(url) as store:
        await outboxes.fill(store, "r", ["a"], channel="other")
        assert (await relay(store, Channel("c", Receiver().take)).once()).delivered == 0
        assert await store.outbox.waiting() == {"other": 1}


async def test_a_relay_in_the_background_delivers_what_comes_and_ends_what_it_began(
    url: str,
) -> None:
    began, go_on = threading.Event(), threading.Event()

    def take(payload: object) -> None:
        began.set()
        go_on.wait(30)

    async with outboxes.opened(url) as store:
        async with Relay(store, Channel("c", take)) as relaying:
            await outboxes.fill(store, "r", ["a"])
            await asyncio.to_thread(began.wait, 30)
            relaying.request_stop()
            go_on.set()
        assert relaying.tally.delivered == 1


async def test_what_a_cancelled_relay_had_in_hand_is_free_for_the_next(url: str) -> None:
    began = asyncio.Event()
    receiver = Receiver()

    async def hang(payload: object) -> None:
        began.set()
        await asyncio.Event().wait()

    async with outboxes.opened(url) as store:
        await outboxes.fill(store, "r", ["a"])
        task = asyncio.create_task(relay(store, Channel("c", hang)).once())
        await began.wait()
        assert (await outboxes.letter(store)).claimed
        await relay(store, Channel("c", receiver.take)).once()
        assert receiver.got == []  # claimed by a living relay
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await relay(store, Channel("c", receiver.take)).once()
    assert receiver.keys == ["r:a"]


async def test_who_has_lost_its_claim_can_mark_nothing(url: str) -> None:
    async with outboxes.opened(url) as store:
        await outboxes.fill(store, "r", ["a"])
        old, new = store.outbox.enlist(), store.outbox.enlist()
        (first,) = await store.outbox.claim(old, "c", ordered=False, limit=9, now=9)
        assert await store.outbox.claim(new, "c", ordered=False, limit=9, now=9) == []
        store.outbox.dismiss(old)
        (again,) = await store.outbox.claim(new, "c", ordered=False, limit=9, now=9)
        assert (again.key, first.attempt, again.attempt) == (first.key, 1, 2)
        assert not await store.outbox.delivered(old, first, 9)
        assert not await store.outbox.postpone(old, first, next_at=9, error="", message="")
        assert await store.outbox.delivered(new, again, 9)
        assert not await store.outbox.bury(new, again, 9, error="", message="")
        store.outbox.dismiss(new)


async def test_a_message_that_kills_its_relays_becomes_a_dead_letter(url: str) -> None:
    receiver = Receiver()
    async with outboxes.opened(url) as store:
        await outboxes.fill(store, "r", ["a"])
        for _ in range(2):
            token = store.outbox.enlist()
            await store.outbox.claim(token, "c", ordered=False, limit=1, now=9)
            store.outbox.dismiss(token)  # as by a death
        await relay(store, Channel("c", receiver.take, attempts_max=2)).once()
        assert (await outboxes.letter(store, "dead")).error == "RelayDied"
    assert receiver.got == []


async def test_two_relays_in_one_process_deliver_a_thousand_messages_once_each(url: str) -> None:
    receiver = Receiver()
    channel = Channel("c", receiver.take, concurrency=16)
    async with outboxes.opened(url) as store:
        await outboxes.fill(store, "r", range(1000))
        tallies = await asyncio.gather(relay(store, channel).once(), relay(store, channel).once())
        assert sum(each.delivered for each in tallies) == 1000
    assert sorted(receiver.keys) == sorted(f"r:{n}" for n in range(1000))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ([], "a list"),
        (3, "a list"),
        ([Channel("a", print), "b"], "a list"),
        ([Channel("a", print), Channel("a", print)], "two are named"),
        (Channel("a", print, attempts_max=0), "no attempt"),
    ],
)
def test_what_is_no_list_of_channels_is_refused(given: object, why: str) -> None:
    with pytest.raises(errors.ChannelsInvalid, match=why):
        checked(given)


@pytest.mark.parametrize(
    ("attempts", "fraction", "asked", "wait_ms"),
    [
        (1, 1.0, None, 1_000),
        (1, 0.0, None, 500),
        (4, 1.0, None, 8_000),
        (5000, 1.0, None, 60_000),
        (1, 1.0, 30.0, 30_000),
        (1, 1.0, 1e9, 60_000),
    ],
)
def test_the_wait_doubles_up_to_a_limit_and_jitter_shortens_it(
    attempts: int, fraction: float, asked: float | None, wait_ms: int
) -> None:
    assert Backoff(wait_max_seconds=60).wait_ms(attempts, fraction, asked) == wait_ms
