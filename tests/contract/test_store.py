"""What every store promises, whatever it is built on."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from ninelives import errors
from ninelives.ids import Epoch, RunId
from ninelives.log import events
from ninelives.store.base import (
    Appended,
    BudgetRefused,
    Claimed,
    KeyTaken,
    OwnedElsewhere,
    Owner,
    RunRow,
    Store,
)
from support import facts

R = RunId("r")
OUTPUT = events.Output(value=facts.ONE)


async def test_an_admitted_run_has_its_input_as_its_first_event(store: Store) -> None:
    await facts.admit(store)
    kinds = [event.kind for event in await store.events(R, after=0, limit=10)]
    assert kinds == ["run_admitted", "incarnation_started"]


async def test_a_second_admission_returns_the_run_that_has_the_id(store: Store) -> None:
    await facts.admit(store)
    again = await store.admit(facts.admission())
    assert isinstance(again, RunRow)
    assert again.incarnation == 1


async def test_numbers_are_without_a_hole_over_several_appends(store: Store) -> None:
    owner = await facts.admit(store)
    for _ in range(5):
        await facts.append(store, owner, OUTPUT, OUTPUT)
    found = await store.events(R, after=0, limit=100)
    assert [event.seq for event in found] == list(range(1, 13))


async def test_reading_goes_on_behind_a_cursor(store: Store) -> None:
    owner = await facts.admit(store)
    await facts.append(store, owner, *[OUTPUT] * 7)
    found = await store.events(R, after=4, limit=3)
    assert [event.seq for event in found] == [5, 6, 7]


async def test_runs_do_not_see_each_others_events(store: Store) -> None:
    one, two = await facts.admit(store, "one"), await facts.admit(store, "two")
    await facts.append(store, one, OUTPUT)
    await facts.append(store, two, OUTPUT, OUTPUT)
    assert len(await store.outputs(RunId("one"), after=0, limit=9)) == 1
    assert len(await store.outputs(RunId("two"), after=0, limit=9)) == 2


async def test_an_older_epoch_cannot_append(store: Store) -> None:
    owner = await facts.admit(store)
    taken = await store.claim(
        R, facts.started("take_over"), take_over=True, retry=False, deaths_max=None
    )
    assert isinstance(taken, Claimed)
    with pytest.raises(errors.StaleEpoch):
        await facts.append(store, owner, OUTPUT)
    assert not await store.outputs(R, after=0, limit=9)
    await facts.append(store, taken.owner, OUTPUT)


async def test_a_living_owner_is_not_robbed(store: Store) -> None:
    await facts.admit(store)
    found = await store.claim(
        R, facts.started("resume"), take_over=False, retry=False, deaths_max=None
    )
    assert isinstance(found, OwnedElsewhere)


async def test_a_released_run_can_be_claimed_under_a_new_epoch(store: Store) -> None:
    owner = await facts.admit(store)
    await facts.append(store, owner, events.IncarnationEnded(cause="stopped"))
    taken = await store.claim(
        R, facts.started("resume"), take_over=False, retry=False, deaths_max=None
    )
    assert isinstance(taken, Claimed)
    assert (taken.owner.epoch, taken.owner.incarnation) == (Epoch(2), 2)


async def test_of_many_claims_at_once_one_wins(store: Store) -> None:
    owner = await facts.admit(store)
    await facts.append(store, owner, events.IncarnationEnded(cause="stopped"))
    found = await asyncio.gather(
        *[
            store.claim(R, facts.started("resume"), take_over=False, retry=False, deaths_max=None)
            for _ in range(20)
        ]
    )
    assert sum(isinstance(each, Claimed) for each in found) == 1


async def test_an_ended_run_cannot_be_claimed(store: Store) -> None:
    owner = await facts.admit(store)
    await facts.append(
        store, owner, events.RunCompleted(), events.IncarnationEnded(cause="completed")
    )
    with pytest.raises(errors.RunEnded):
        await store.claim(R, facts.started("resume"), take_over=True, retry=False, deaths_max=None)


async def test_a_run_that_nobody_admitted_is_not_found(store: Store) -> None:
    for asked in (
        store.run(R),
        store.load(R),
        store.events(R, after=0, limit=1),
        store.act(R, [facts.draft(OUTPUT)]),
        store.claim(R, facts.started(), take_over=True, retry=False, deaths_max=None),
    ):
        with pytest.raises(errors.RunNotFound):
            await asked


async def test_a_message_is_pending_until_a_handler_has_consumed_it(store: Store) -> None:
    owner = await facts.admit(store)
    message = events.Message(source="a", target="b", value=facts.ONE)
    seq = await facts.append(store, owner, message)
    assert [each.seq for each in (await store.load(R)).pending] == [1, seq]
    await facts.append(store, owner, events.HandlerFinished(delivery=1, messages=[1]))
    assert [each.seq for each in (await store.load(R)).pending] == [seq]


async def test_state_is_the_last_value_and_what_was_appended_to_it(store: Store) -> None:
    owner = await facts.admit(store)

    def change(kind: str, value: bytes) -> events.State:
        return events.State(
            scope="",
            key="k",
            change=kind,  # type: ignore[arg-type]
            value=msgspec.Raw(value),
        )

    await facts.append(store, owner, change("append", b"[0]"), change("set", b"[1]"))
    await facts.append(store, owner, change("append", b"[2]"), change("append", b"[3]"))
    values = [bytes(each.fact.value) for each in (await store.load(R)).state]  # type: ignore[attr-defined]
    assert values == [b"[1]", b"[2]", b"[3]"]
    await facts.append(store, owner, change("delete", b"null"))
    assert not (await store.load(R)).state


async def test_a_reservation_beyond_the_limit_is_refused_and_nothing_written(store: Store) -> None:
    owner = await facts.admit(store, tokens_max=100)
    await facts.append(store, owner, facts.requested(60))
    refused = await store.append(owner, [facts.draft(OUTPUT), facts.draft(facts.requested(60))])
    assert isinstance(refused, BudgetRefused)
    assert (await facts.spent(store)).committed == 60
    assert not await store.outputs(R, after=0, limit=9)


async def test_parallel_reservations_admit_exactly_what_fits(store: Store) -> None:
    owner = await facts.admit(store, tokens_max=1000)
    found = await asyncio.gather(
        *[store.append(owner, [facts.draft(facts.requested(30))]) for _ in range(100)]
    )
    assert sum(isinstance(each, Appended) for each in found) == 33


async def test_a_budget_of_zero_admits_nothing(store: Store) -> None:
    owner = await facts.admit(store, tokens_max=0)
    refused = await store.append(owner, [facts.draft(facts.requested(1))])
    assert isinstance(refused, BudgetRefused)


async def test_a_settled_hold_counts_at_its_actual_and_an_unknown_one_at_its_reservation(
    store: Store,
) -> None:
    owner = await facts.admit(store)
    one = await facts.append(store, owner, facts.requested(400))
    two = await facts.append(store, owner, facts.requested(400))
    await facts.append(store, owner, facts.replied(one, tokens=30))
    await facts.append(store, owner, facts.replied(two, status="unknown", tokens=0))
    budget = await facts.spent(store)
    assert (budget.settled, budget.held, budget.unknown) == (30, 0, 400)


async def test_a_halted_budget_admits_nothing_until_it_is_cleared(store: Store) -> None:
    owner = await facts.admit(store)
    await facts.append(store, owner, events.BudgetHalted(budget="run:r", reason="no usage"))
    refused = await store.append(owner, [facts.draft(facts.requested(1))])
    assert isinstance(refused, BudgetRefused)
    assert refused.code == "BudgetHalted"
    await store.act(R, [facts.draft(events.HaltCleared(budget="run:r", by="me"))])
    assert isinstance(await store.append(owner, [facts.draft(facts.requested(1))]), Appended)


async def test_the_next_owner_is_told_of_orphaned_holds(store: Store) -> None:
    owner = await facts.admit(store)
    hold = await facts.append(store, owner, facts.requested(400))
    taken = await store.claim(
        R, facts.started("take_over"), take_over=True, retry=False, deaths_max=None
    )
    assert isinstance(taken, Claimed)
    assert [(each.seq, each.tokens) for each in taken.orphaned] == [(hold, 400)]
    assert (await facts.spent(store)).held == 400


async def test_a_key_is_taken_once_in_the_whole_store(store: Store) -> None:
    one, two = await facts.admit(store, "one"), await facts.admit(store, "two")
    seq = await facts.append(store, one, facts.intended("k"))
    taken = await store.append(two, [facts.draft(facts.intended("k"))])
    assert taken == KeyTaken(RunId("one"), seq, 0, "intended")  # type: ignore[arg-type]


@pytest.mark.parametrize("effect_first", [True, False])
async def test_a_key_of_an_effect_is_none_of_a_message_and_the_other_way_round(
    store: Store, effect_first: bool
) -> None:
    one, two = await facts.admit(store, "one"), await facts.admit(store, "two")
    message = events.OutboxQueued(channel="c", key="k", payload=facts.ONE)
    pair: list[events.Fact] = [facts.intended("k"), message]
    first, second = pair if effect_first else reversed(pair)
    seq = await facts.append(store, one, first)
    taken = await store.append(two, [facts.draft(OUTPUT), facts.draft(second)])
    assert isinstance(taken, KeyTaken)
    assert (taken.run, taken.seq, bool(taken.other)) == ("one", seq, not effect_first)
    assert taken == await store.key("k")
    assert not await store.outputs(RunId("two"), after=0, limit=9)


async def test_open_effects_are_those_of_the_run_alone(store: Store) -> None:
    one, two = await facts.admit(store, "a"), await facts.admit(store, "a:b")
    await facts.append(store, one, facts.intended("a:k"))
    await facts.append(store, two, facts.intended("a:b:k"))
    assert [each.key for each in await store.open_effects(RunId("a"))] == ["a:k"]
    assert [each.key for each in await store.open_effects(RunId("a:b"))] == ["a:b:k"]


async def test_a_failing_part_of_a_group_fails_alone(store: Store) -> None:
    one = await facts.admit(store, "one")
    stale = Owner(RunId("one"), one.number, Epoch(0), 1, 1)
    broken = events.HandlerFinished(delivery=1, messages=["no number"])  # type: ignore[list-item]
    found = await asyncio.gather(
        store.append(one, [facts.draft(OUTPUT)]),
        store.append(stale, [facts.draft(OUTPUT)]),
        store.append(one, [facts.draft(broken)]),
        store.append(one, [facts.draft(OUTPUT)]),
        return_exceptions=True,
    )
    assert isinstance(found[0], Appended)
    assert isinstance(found[1], errors.StaleEpoch)
    assert isinstance(found[2], BaseException)
    assert isinstance(found[3], Appended)
    assert len(await store.outputs(RunId("one"), after=0, limit=9)) == 2


async def test_runs_are_listed_newest_first_in_pages(store: Store) -> None:
    for name in "abcde":
        await facts.admit(store, name)
    first = await store.runs(limit=2, before=None)
    second = await store.runs(limit=2, before=first[-1].number)
    assert [row.id for row in [*first, *second]] == ["e", "d", "c", "b"]


async def test_a_subscriber_is_woken_by_a_commit(store: Store) -> None:
    owner, wake = await facts.admit(store), asyncio.Event()
    store.subscribe(R, wake)
    await facts.append(store, owner, OUTPUT)
    assert wake.is_set()
    store.unsubscribe(R, wake)
