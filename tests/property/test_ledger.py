"""The ledger as a machine: any call, any end, any death, any person, any day, in any order.

The model is a list of holds and a table of limits, kept here by the words of the design: what is
settled counts at its actual, what is held or unknown at its reservation, in the window in which it
was admitted. Whatever happens, the store counts the same, and admits exactly what fits.
"""

from __future__ import annotations

import asyncio
import pathlib
import shutil
import tempfile
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ninelives import clock, errors
from ninelives.ids import RunId
from ninelives.log import events, invariants
from ninelives.log.events import Draft, Fact
from ninelives.store.base import Appended, BudgetRefused, Claimed, Owner
from ninelives.store.budgets import RunBudget, Spending
from ninelives.store.sqlite import SqliteStore
from support import facts

T = TypeVar("T")
DAY = 86_400_000
LEVELS = {
    "one": ("tenant:a", "store"),
    "two": ("tenant:a", "store"),
    "three": ("tenant:b", "store"),
}
SHARED = ("tenant:a", "tenant:b", "store")
OWN = {"one": 300, "two": None, "three": None}
runs = st.sampled_from(list(LEVELS))
# Coarse numbers, so that limits are met exactly.
tokens = st.sampled_from([50, 100])
costs = st.sampled_from([None, 0, 50, 100])
limits = st.sampled_from([None, 100, 200, 300, 0])


@dataclass
class Hold:
    """What the model knows of a call."""

    run: str
    seq: int
    day: str
    tokens: int
    cost: int | None
    status: str = "held"
    epoch: int = 1
    spent: int = 0
    spent_cost: int = 0

    @property
    def counted(self) -> int:
        return {"settled": self.spent, "released": 0}.get(self.status, self.tokens)

    @property
    def counted_cost(self) -> int:
        return {"settled": self.spent_cost, "released": 0}.get(self.status, self.cost or 0)


class Ledger(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.now = 1_764_590_400_000
        self.holds: list[Hold] = []
        self.halted: set[str] = set()
        self.limits: dict[tuple[str, str], tuple[int | None, int | None]] = {}
        self.owners: dict[str, Owner] = {}
        self.do(self.begin())

    def do(self, work: Coroutine[None, None, T]) -> T:
        return self.loop.run_until_complete(work)

    def teardown(self) -> None:
        self.do(self.store.close())
        self.loop.close()
        shutil.rmtree(self.folder)

    async def begin(self) -> None:
        self.store = SqliteStore(f"sqlite:///{self.folder}/a.db")
        await self.store.open()
        for run, levels in LEVELS.items():
            budget = RunBudget(tokens_max=OWN[run], levels=levels)
            self.owners[run] = await facts.admit(self.store, run, budget=budget)
            if OWN[run] is not None:
                self.limits[f"run:{run}", "total"] = (OWN[run], None)

    def at(self, fact: Fact) -> Draft:
        return Draft(fact=fact, at=self.now, superstep=1, executor="node")

    # -- what the model says --------------------------------------------------------------

    def counts(self, hold: Hold, name: str, per: str = "total") -> bool:
        today = clock.day(self.now)
        window = {"total": "", "day": today, "month": today[:7]}[per]
        return (f"run:{hold.run}" == name or name in LEVELS[hold.run]) and hold.day.startswith(
            window
        )

    def admits(self, run: str, tokens: int, cost: int | None) -> bool:
        for name in (f"run:{run}", *LEVELS[run]):
            if name in self.halted:
                return False
            for (limited, per), (tokens_max, cost_max) in self.limits.items():
                if limited != name:
                    continue
                holds = [each for each in self.holds if self.counts(each, name, per)]
                if tokens_max is not None and sum(h.counted for h in holds) + tokens > tokens_max:
                    return False
                if cost_max is not None and (
                    cost is None or sum(h.counted_cost for h in holds) + cost > cost_max
                ):
                    return False
        return True

    # -- what can happen ------------------------------------------------------------------

    @rule(calls=st.lists(st.tuples(runs, tokens, costs), min_size=1, max_size=5))
    def calls_are_admitted_exactly_if_they_fit(
        self, calls: list[tuple[str, int, int | None]]
    ) -> None:
        for run, wanted, cost in calls:
            expected = self.admits(run, wanted, cost)
            request = self.at(facts.requested(wanted, cost))
            found = self.do(self.store.append(self.owners[run], [request]))
            assert isinstance(found, Appended if expected else BudgetRefused), found
            if isinstance(found, Appended):
                day, epoch = clock.day(self.now), self.owners[run].epoch
                self.holds.append(Hold(run, found.first, day, wanted, cost, epoch=epoch))

    def held(self) -> list[Hold]:
        return [
            each
            for each in self.holds
            if each.status == "held" and each.epoch == self.owners[each.run].epoch
        ]

    @precondition(lambda self: self.held())
    @rule(
        data=st.data(),
        spent=st.sampled_from([0, 30, 50, 150]),
        cost=costs,
        end=st.sampled_from(["settled", "unknown", "lost", "refused"]),
    )
    def a_call_ends(self, data: st.DataObject, spent: int, cost: int | None, end: str) -> None:
        hold = data.draw(st.sampled_from(self.held()))
        facts_by_end: dict[str, Fact] = {
            "settled": facts.replied(hold.seq, tokens=spent, microdollars=cost),
            "unknown": facts.replied(hold.seq, status="unknown", tokens=0),
            "lost": unsettled(hold.seq, "unknown"),
            "refused": unsettled(hold.seq, "failed"),
        }
        ended: list[Fact] = [facts_by_end[end]]
        if end == "unknown":
            ended.append(events.BudgetHalted(budget=f"run:{hold.run}", reason="no usage"))
            self.halted.add(f"run:{hold.run}")
        self.do(self.store.append(self.owners[hold.run], [self.at(each) for each in ended]))
        if end == "settled":
            self.settle(hold, spent, cost)
        else:
            hold.status = "released" if end == "refused" else "unknown"

    def settle(self, hold: Hold, spent: int, cost: int | None) -> None:
        hold.status, hold.spent = "settled", spent
        hold.spent_cost = (hold.cost or 0) if cost is None else cost

    @precondition(lambda self: self.holds)
    @rule(
        data=st.data(), spent=st.sampled_from([0, 30, 50, 150]), cost=costs, settled=st.booleans()
    )
    def a_person_settles_what_is_open_and_nothing_else(
        self, data: st.DataObject, spent: int, cost: int | None, settled: bool
    ) -> None:
        hold = data.draw(st.sampled_from(self.holds))
        fact = events.HoldResolved(
            hold=hold.seq,
            status="settled" if settled else "released",
            tokens=spent if settled else 0,
            microdollars=cost if settled else None,
        )
        open_ = hold.status == "unknown" or (hold.status == "held" and hold not in self.held())
        resolving = self.store.budgets.resolve(RunId(hold.run), self.at(fact))
        if not open_:
            with pytest.raises(errors.HoldNotOpen):
                self.do(resolving)
        else:
            self.do(resolving)
            if settled:
                self.settle(hold, spent, cost)
            else:
                hold.status = "released"

    @rule(
        name=st.sampled_from(SHARED),
        per=st.sampled_from(["total", "day", "month"]),
        most=limits,
        cost=limits,
    )
    def a_person_sets_a_limit(
        self, name: str, per: str, most: int | None, cost: int | None
    ) -> None:
        fact = events.BudgetSet(
            budget=name,
            per=per,  # type: ignore[arg-type]
            tokens_max=most,
            microdollars_max=cost,
        )
        self.do(self.store.budgets.act(name, self.at(fact)))
        if most is None and cost is None:
            self.limits.pop((name, per), None)
        else:
            self.limits[name, per] = (most, cost)

    @rule(name=st.sampled_from(SHARED), halt=st.booleans())
    def a_person_halts_or_clears(self, name: str, halt: bool) -> None:
        fact: Fact = (
            events.BudgetHalted(budget=name, reason="a person")
            if halt
            else events.HaltCleared(budget=name)
        )
        self.do(self.store.budgets.act(name, self.at(fact)))
        (self.halted.add if halt else self.halted.discard)(name)

    @rule(run=runs)
    def a_run_is_cleared(self, run: str) -> None:
        fact = events.HaltCleared(budget=f"run:{run}")
        self.do(self.store.act(RunId(run), [self.at(fact)]))
        self.halted.discard(f"run:{run}")

    @rule(days=st.sampled_from([-1, 1, 15, 30]))
    def the_clock_goes_on_or_back(self, days: int) -> None:
        self.now += days * DAY

    @rule(run=runs)
    def another_process_takes_a_run_over(self, run: str) -> None:
        claimed = self.do(
            self.store.claim(
                RunId(run), facts.started("take_over"), take_over=True, retry=False, deaths_max=None
            )
        )
        assert isinstance(claimed, Claimed)
        held = [each.seq for each in self.holds if each.run == run and each.status == "held"]
        assert sorted(each.seq for each in claimed.orphaned) == held
        self.owners[run] = claimed.owner

    @rule()
    def the_process_dies(self) -> None:
        """Everything that is not durable is gone; the runs are taken up by the next one."""

        async def again() -> None:
            await self.store.close()
            self.store = SqliteStore(f"sqlite:///{self.folder}/a.db")
            await self.store.open()
            for run in LEVELS:
                claimed = await self.store.claim(
                    RunId(run),
                    facts.started("resume"),
                    take_over=False,
                    retry=False,
                    deaths_max=None,
                )
                assert isinstance(claimed, Claimed)
                self.owners[run] = claimed.owner

        self.do(again())

    # -- what must hold -------------------------------------------------------------------

    @invariant()
    def every_budget_counts_what_the_model_counts(self) -> None:
        for name in (*SHARED, *(f"run:{run}" for run in LEVELS)):
            found = self.do(self.store.budgets.show(name, at=self.now))
            for per, spent in found.spent.items():
                if name.startswith("run:") and per != "total":
                    continue
                holds = [each for each in self.holds if self.counts(each, name, per)]
                assert spent == summed(holds), (name, per)
            assert bool(found.halted) == (name in self.halted)

    @invariant()
    def the_store_is_whole(self) -> None:
        assert not self.do(self.store.check())
        for run in LEVELS:
            journal = self.do(self.store.events(RunId(run), after=0, limit=10_000))
            assert not invariants.check(journal)


def unsettled(hold: int, outcome: str) -> events.ModelUnsettled:
    return events.ModelUnsettled(
        place=facts.place("model m"),
        hold=hold,
        outcome=outcome,  # type: ignore[arg-type]
        error="E",
        message="m",
        attempt=1,
    )


def summed(holds: list[Hold]) -> Spending:
    def total(status: str, value: str) -> int:
        return sum(getattr(each, value) or 0 for each in holds if each.status == status)

    return Spending(
        calls=len(holds),
        unpriced=sum(each.cost is None for each in holds),
        settled=total("settled", "spent"),
        held=total("held", "tokens"),
        unknown=total("unknown", "tokens"),
        settled_microdollars=total("settled", "spent_cost"),
        held_microdollars=total("held", "cost"),
        unknown_microdollars=total("unknown", "cost"),
    )


TestLedger = Ledger.TestCase
TestLedger.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)
