"""The contract of a store's budgets: levels, windows, money, halts, holds that wait."""

from __future__ import annotations

import asyncio

import pytest

from ninelives import errors
from ninelives.ids import RunId
from ninelives.log import events
from ninelives.log.events import Draft, Fact
from ninelives.store.base import Appended, BudgetRefused, Owner, Store
from ninelives.store.budgets import RunBudget, Spending
from support import facts

DAY = 86_400_000
NOON = 1_764_590_400_000  # 2025-12-01T12:00Z
LEVELS = RunBudget(levels=("tenant:acme", "workflow:w", "store"))


def at(fact: Fact, moment: int) -> Draft:
    return Draft(fact=fact, at=moment, superstep=1, executor="node")


async def reserve(
    store: Store, owner: Owner, tokens: int, cost: int | None = None, moment: int = NOON
) -> int | BudgetRefused:
    found = await store.append(owner, [at(facts.requested(tokens, cost), moment)])
    assert isinstance(found, Appended | BudgetRefused)
    return found.first if isinstance(found, Appended) else found


async def limit(
    store: Store, name: str, per: str = "total", tokens: int | None = None, cost: int | None = None
) -> None:
    fact = events.BudgetSet(
        budget=name,
        per=per,  # type: ignore[arg-type]
        tokens_max=tokens,
        microdollars_max=cost,
        by="me",
        why="a test",
    )
    await store.budgets.act(name, at(fact, NOON))


async def spent(store: Store, name: str, per: str = "total", moment: int = NOON) -> Spending:
    return (await store.budgets.show(name, at=moment)).spent[per]  # type: ignore[index]


async def test_a_call_counts_on_every_level_that_its_run_draws_on(store: Store) -> None:
    owner = await facts.admit(store, budget=LEVELS)
    hold = await reserve(store, owner, 400)
    assert isinstance(hold, int)
    await facts.append(store, owner, facts.replied(hold, tokens=30))
    for name in ("run:r", "tenant:acme", "workflow:w", "store"):
        assert (await spent(store, name)).settled == 30, name
    assert [each.name for each in await store.budgets.of_run(RunId("r"), at=NOON)] == [
        "run:r",
        "tenant:acme",
        "workflow:w",
        "store",
    ]


@pytest.mark.parametrize("name", ["run:r", "tenant:acme", "workflow:w", "store"])
async def test_any_level_refuses_alone_and_then_nothing_is_counted_anywhere(
    store: Store, name: str
) -> None:
    owner = await facts.admit(store, budget=LEVELS)
    fact = events.BudgetSet(budget=name, per="total", tokens_max=100)
    if name == "run:r":
        await store.act(RunId("r"), [at(fact, NOON)])
    else:
        await store.budgets.act(name, at(fact, NOON))
    refused = await reserve(store, owner, 101)
    assert isinstance(refused, BudgetRefused)
    assert (refused.code, refused.budget) == ("BudgetExceeded", name)
    for each in await store.budgets.of_run(RunId("r"), at=NOON):
        assert each.total == Spending()
    assert isinstance(await reserve(store, owner, 100), int)


async def test_runs_of_one_tenant_share_its_budget_and_others_do_not(store: Store) -> None:
    await limit(store, "tenant:acme", tokens=100)
    one = await facts.admit(store, "one", budget=LEVELS)
    two = await facts.admit(store, "two", budget=LEVELS)
    other = await facts.admit(store, "other", budget=RunBudget(levels=("tenant:other",)))
    assert isinstance(await reserve(store, one, 60), int)
    assert isinstance(await reserve(store, two, 60), BudgetRefused)
    assert isinstance(await reserve(store, other, 60), int)


async def test_a_window_opens_again_and_the_total_does_not(store: Store) -> None:
    owner = await facts.admit(store, budget=LEVELS)
    await limit(store, "tenant:acme", "day", tokens=100)
    await limit(store, "tenant:acme", "month", tokens=250)
    assert isinstance(await reserve(store, owner, 100), int)
    assert isinstance(await reserve(store, owner, 1), BudgetRefused)
    assert isinstance(await reserve(store, owner, 100, moment=NOON + DAY), int)
    refused = await reserve(store, owner, 100, moment=NOON + 2 * DAY)
    assert isinstance(refused, BudgetRefused)
    assert "this month" in refused.reason
    assert isinstance(await reserve(store, owner, 100, moment=NOON + 31 * DAY), int)
    assert (await spent(store, "tenant:acme")).held == 300


async def test_a_call_counts_in_the_window_in_which_it_was_admitted(store: Store) -> None:
    owner = await facts.admit(store, budget=LEVELS)
    hold = await reserve(store, owner, 100)
    assert isinstance(hold, int)
    await store.append(owner, [at(facts.replied(hold, tokens=40), NOON + DAY)])
    assert (await spent(store, "store", "day", NOON)).settled == 40
    assert (await spent(store, "store", "day", NOON + DAY)) == Spending()
    assert (await store.budgets.days("store", limit=9)) == [
        ("2025-12-01", Spending(calls=1, unpriced=1, settled=40))
    ]


async def test_a_limit_that_is_set_later_counts_what_was_spent_before(store: Store) -> None:
    owner = await facts.admit(store, budget=LEVELS)
    await reserve(store, owner, 90)
    await limit(store, "workflow:w", "month", tokens=100)
    assert isinstance(await reserve(store, owner, 11), BudgetRefused)
    assert isinstance(await reserve(store, owner, 10), int)


async def test_money_is_reserved_and_settled_beside_tokens(store: Store) -> None:
    owner = await facts.admit(store, budget=RunBudget(microdollars_max=1000, levels=("store",)))
    hold = await reserve(store, owner, 400, 600)
    assert isinstance(hold, int)
    refused = await reserve(store, owner, 400, 600)
    assert isinstance(refused, BudgetRefused)
    assert "$0.0006 of $0.001 are committed" in refused.reason
    await facts.append(store, owner, facts.replied(hold, microdollars=45))
    assert (await facts.spent(store)).microdollars == 45
    assert isinstance(await reserve(store, owner, 400, 600), int)


@pytest.mark.parametrize(("reported", "counted"), [(45, 45), (0, 0), (None, 600)])
async def test_a_settled_call_costs_what_was_reported_and_without_a_report_what_was_held(
    store: Store, reported: int | None, counted: int
) -> None:
    owner = await facts.admit(store, budget=LEVELS)
    hold = await reserve(store, owner, 400, 600)
    assert isinstance(hold, int)
    await facts.append(store, owner, facts.replied(hold, microdollars=reported))
    for name in ("run:r", "store"):
        assert (await spent(store, name)).settled_microdollars == counted


async def test_a_month_has_all_its_days(store: Store) -> None:
    owner = await facts.admit(store, budget=LEVELS)
    for day in range(31):
        await reserve(store, owner, 1, moment=NOON + day * DAY)
    last = NOON + 30 * DAY
    assert (await spent(store, "store", "month", last)).held == 31
    await limit(store, "store", "month", tokens=31)
    assert isinstance(await reserve(store, owner, 1, moment=last), BudgetRefused)
    assert isinstance(await reserve(store, owner, 1, moment=last + DAY), int)


async def test_a_call_of_unknown_price_is_refused_under_money_and_a_free_one_is_not(
    store: Store,
) -> None:
    owner = await facts.admit(store, budget=RunBudget(microdollars_max=0))
    refused = await reserve(store, owner, 400, None)
    assert isinstance(refused, BudgetRefused)
    assert refused.code == "ModelUnpriced"
    assert isinstance(await reserve(store, owner, 400, 0), int)
    assert isinstance(await reserve(store, owner, 400, 1), BudgetRefused)


async def test_an_actual_above_its_reservation_is_recorded_and_closes_the_budget(
    store: Store,
) -> None:
    owner = await facts.admit(store, tokens_max=1000)
    hold = await reserve(store, owner, 400)
    assert isinstance(hold, int)
    await facts.append(store, owner, facts.replied(hold, tokens=1200))
    assert (await facts.spent(store)).settled == 1200
    assert isinstance(await reserve(store, owner, 1), BudgetRefused)


async def test_a_budget_that_a_run_names_must_exist(store: Store) -> None:
    with pytest.raises(errors.BudgetUnknown, match="budget set team:x"):
        await facts.admit(store, budget=RunBudget(named=("team:x",)))
    with pytest.raises(errors.RunNotFound):
        await store.run(RunId("r"))
    await limit(store, "team:x", tokens=10)
    owner = await facts.admit(store, budget=RunBudget(named=("team:x",)))
    assert isinstance(await reserve(store, owner, 11), BudgetRefused)


async def test_a_shared_halt_stops_every_run_until_it_is_cleared_and_is_in_its_journal(
    store: Store,
) -> None:
    owner = await facts.admit(store, budget=LEVELS)
    halted = events.BudgetHalted(budget="tenant:acme", reason="by me: the bill", by="me")
    await store.budgets.act("tenant:acme", at(halted, NOON))
    refused = await reserve(store, owner, 1)
    assert isinstance(refused, BudgetRefused)
    assert (refused.code, refused.budget) == ("BudgetHalted", "tenant:acme")
    cleared = events.HaltCleared(budget="tenant:acme", by="you", why="paid")
    await store.budgets.act("tenant:acme", at(cleared, NOON + 1))
    assert isinstance(await reserve(store, owner, 1), int)
    assert await store.budgets.acts("tenant:acme", limit=9) == [
        (NOON + 1, cleared),
        (NOON, halted),
    ]


async def test_a_halt_of_nothing_is_an_error_and_a_limit_of_nothing_makes_a_budget(
    store: Store,
) -> None:
    with pytest.raises(errors.BudgetUnknown):
        await store.budgets.act("team:x", at(events.HaltCleared(budget="team:x"), NOON))
    await limit(store, "team:x", "day", tokens=5)
    (found,) = await store.budgets.shared(at=NOON, after="", limit=9)
    assert (found.name, found.limits[0].tokens_max) == ("team:x", 5)
    await limit(store, "team:x", "day")
    assert not (await store.budgets.show("team:x", at=NOON)).limits


async def test_budgets_of_single_runs_are_not_among_the_shared_ones(store: Store) -> None:
    await facts.admit(store, budget=RunBudget(levels=("a", "run;x", "store", "z")))
    found = await store.budgets.shared(at=NOON, after="", limit=9)
    assert [each.name for each in found] == ["a", "run;x", "store", "z"]
    found = await store.budgets.shared(at=NOON, after="run;x", limit=1)
    assert [each.name for each in found] == ["store"]


def resolved(
    hold: int, status: str, tokens: int = 0, cost: int | None = None
) -> events.HoldResolved:
    return events.HoldResolved(
        hold=hold,
        status=status,  # type: ignore[arg-type]
        tokens=tokens,
        microdollars=cost,
        by="me",
        why="the bill",
    )


async def test_an_unknown_hold_is_settled_or_released_by_a_person_once(store: Store) -> None:
    owner = await facts.admit(store, budget=LEVELS)
    one, two = await reserve(store, owner, 400, 60), await reserve(store, owner, 400, 60)
    assert isinstance(one, int)
    assert isinstance(two, int)
    for hold in (one, two):
        await facts.append(store, owner, facts.replied(hold, status="unknown", tokens=0))
    assert [each.seq for each in await store.budgets.open_holds("tenant:acme", limit=9)] == [
        one,
        two,
    ]
    await store.budgets.resolve(RunId("r"), at(resolved(one, "settled", 55, 8), NOON))
    await store.budgets.resolve(RunId("r"), at(resolved(two, "released"), NOON))
    counted = Spending(calls=2, settled=55, settled_microdollars=8)
    for name in ("run:r", "tenant:acme", "store"):
        assert await spent(store, name) == counted
    for hold, status in ((one, "settled"), (two, "released"), (99, "not known"), (0, "not known")):
        with pytest.raises(errors.HoldNotOpen, match=f"is {status}"):
            await store.budgets.resolve(RunId("r"), at(resolved(hold, "released"), NOON))
    assert not await store.check()


async def test_a_hold_under_way_is_nobodys_to_settle_and_an_orphaned_one_is(store: Store) -> None:
    owner = await facts.admit(store, budget=LEVELS)
    hold = await reserve(store, owner, 400)
    assert isinstance(hold, int)
    (found,) = await store.budgets.open_holds("run:r", limit=9)
    assert (found.status, found.under_way, found.model) == ("held", True, "m")
    with pytest.raises(errors.HoldNotOpen, match="under way"):
        await store.budgets.resolve(RunId("r"), at(resolved(hold, "released"), NOON))
    await store.claim(
        RunId("r"), facts.started("take_over"), take_over=True, retry=False, deaths_max=None
    )
    (found,) = await store.budgets.open_holds("run:r", limit=9)
    assert not found.under_way
    await store.budgets.resolve(RunId("r"), at(resolved(hold, "settled", 30), NOON))
    assert (await facts.spent(store)).settled == 30
    assert not await store.check()


async def test_an_open_hold_of_an_ended_run_can_still_be_settled(store: Store) -> None:
    owner = await facts.admit(store, budget=LEVELS)
    hold = await reserve(store, owner, 400)
    assert isinstance(hold, int)
    await facts.append(store, owner, facts.replied(hold, status="unknown", tokens=0))
    await facts.append(
        store,
        owner,
        events.RunCancelled(by="me"),
        events.IncarnationEnded(cause="cancelled"),
    )
    await store.budgets.resolve(RunId("r"), at(resolved(hold, "released"), NOON))
    assert (await spent(store, "tenant:acme")).committed == 0


async def test_parallel_reservations_of_many_runs_admit_exactly_what_fits(store: Store) -> None:
    await limit(store, "tenant:acme", tokens=1000)
    owners = [await facts.admit(store, f"r{n}", budget=LEVELS) for n in range(20)]
    found = await asyncio.gather(*[reserve(store, each, 30) for each in owners * 5])
    assert sum(isinstance(each, int) for each in found) == 33
    assert (await spent(store, "tenant:acme")).held == 990


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE spending SET held_tokens = held_tokens + 1 WHERE day = ''",
        "UPDATE spending SET settled_microdollars = 7 WHERE day <> ''",
        "DELETE FROM spending WHERE day <> ''",
        "UPDATE holds SET reserved_tokens = 399",
        "DELETE FROM holds",
        "DELETE FROM draws WHERE rank = 0",
        "UPDATE budgets SET name = 'run:other' WHERE name = 'run:r'",
    ],
)
async def test_counters_that_contradict_the_holds_are_found(store: Store, damage: str) -> None:
    owner = await facts.admit(store, budget=LEVELS)
    await reserve(store, owner, 400, 60)
    assert not await store.check()
    await store._write(lambda connection: connection.execute(damage), None)  # type: ignore[attr-defined]
    assert await store.check()
