"""Budgets as a caller sees them: limits by name and window, halts, holds that wait for a person.

Every change is recorded with who made it and why: in the run's journal for `run:ID`, in the
budget's own for the others.
"""

from __future__ import annotations

from collections.abc import Mapping

from ninelives import clock, errors, ids, money
from ninelives.durable import evidence, models
from ninelives.durable.models import Model
from ninelives.durable.prices import Price
from ninelives.engine import acts
from ninelives.graph import settings
from ninelives.ids import RunId
from ninelives.log import events
from ninelives.log.events import Draft
from ninelives.store.base import Store
from ninelives.store.budgets import Budget, BudgetAct, OpenHold, Per, Spending

PAGE = 1000


class Budgets:
    """`runtime.budgets`: what runs may spend, and what they have spent."""

    def __init__(self, store: Store, known: Mapping[str, Model], now: clock.Now) -> None:
        self._store, self._models, self._now = store, known, now

    async def show(self, name: str) -> Budget:
        """One budget, by its name: `run:ID`, `workflow:NAME`, `tenant:NAME`, `store`, or your own.

        Raises:
            BudgetUnknown: there is none of that name.
        """
        return await self._store.budgets.show(ids.budget_name(name), at=self._now())

    async def of_run(self, run_id: str) -> list[Budget]:
        """What a run draws on, its own budget first.

        Raises:
            RunNotFound: no such run.
        """
        return await self._store.budgets.of_run(ids.run_id(run_id), at=self._now())

    async def shared(self, *, after: str = "", limit: int = PAGE) -> list[Budget]:
        """Budgets that several runs may draw on, by name."""
        return await self._store.budgets.shared(at=self._now(), after=after, limit=limit)

    async def days(self, name: str, *, limit: int = 31) -> list[tuple[str, Spending]]:
        """A shared budget's spending by day (UTC), the latest first."""
        return await self._store.budgets.days(ids.budget_name(name), limit=limit)

    async def open_holds(self, name: str, *, limit: int = PAGE) -> list[OpenHold]:
        """What counts against a budget although nobody has reported it, the oldest first."""
        return await self._store.budgets.open_holds(ids.budget_name(name), limit=limit)

    async def acts(self, name: str, *, limit: int = 20) -> list[tuple[int, BudgetAct]]:
        """What persons did to a shared budget, the latest first, with the label of time."""
        return await self._store.budgets.acts(ids.budget_name(name), limit=limit)

    async def set(
        self,
        name: str,
        *,
        per: Per = "total",
        tokens: int | None = None,
        dollars: money.Dollars | None = None,
        by: str = "",
        why: str = "",
    ) -> None:
        """Set what a budget admits in one window; with neither number it has no limit there.

        Holds for all calls from then on, those of runs under way too. What was spent in the
        window before is counted.

        Raises:
            SettingsInvalid: no number of tokens, or no amount of money.
            RunEnded: the budget is that of a run that has ended.
        """
        settings.check_tokens(tokens, "tokens of a budget")
        most = None if dollars is None else money.microdollars(dollars, "dollars of a budget")
        if name.startswith(ids.RUN_BUDGET) and per != "total":
            why_not = f"per {per!r}: a run's own budget counts in total only"
            raise errors.SettingsInvalid(f"budget {name!r}", why_not)
        fact = events.BudgetSet(
            budget=name, per=per, tokens_max=tokens, microdollars_max=most, by=by, why=why
        )
        await acts.change_budget(self._store, fact, self._now())

    async def halt(self, name: str, *, by: str = "", why: str = "") -> None:
        """Admit no new call until the halt is cleared; calls under way go on."""
        reason = f"by {by or 'a person'}" + (f": {why}" if why else "")
        fact = events.BudgetHalted(budget=name, reason=reason, by=by)
        await acts.change_budget(self._store, fact, self._now())

    async def clear_halt(self, name: str, *, by: str = "", why: str = "") -> bool:
        """Let a halted budget admit calls again; unknown holds stay counted.

        Returns whether it was halted.
        """
        if not (await self.show(name)).halted:
            return False
        fact = events.HaltCleared(budget=name, by=by, why=why)
        await acts.change_budget(self._store, fact, self._now())
        return True

    async def settle(
        self,
        run_id: str,
        hold: int,
        *,
        tokens: int,
        dollars: money.Dollars | None = None,
        by: str = "",
        why: str = "",
    ) -> None:
        """Say what a call of unknown usage has cost (without `dollars`: what was reserved).

        Raises:
            HoldNotOpen: no such hold, it has ended, or its call is under way.
            SettingsInvalid: no number of tokens, or no amount of money.
        """
        settings.check_tokens(tokens, "tokens of a call")
        cost = None if dollars is None else money.microdollars(dollars, "dollars of a call")
        fact = events.HoldResolved(
            hold=hold, status="settled", tokens=tokens, microdollars=cost, by=by, why=why
        )
        await self._resolve(run_id, fact)

    async def release(self, run_id: str, hold: int, *, by: str = "", why: str = "") -> None:
        """Say that a call of unknown outcome has cost nothing, as the provider's bill shows.

        Raises:
            HoldNotOpen: no such hold, it has ended, or its call is under way.
        """
        fact = events.HoldResolved(hold=hold, status="released", tokens=0, by=by, why=why)
        await self._resolve(run_id, fact)

    async def _resolve(self, run_id: str, fact: events.HoldResolved) -> None:
        row = await self._store.run(ids.run_id(run_id))
        draft = Draft(fact=fact, at=self._now(), superstep=row.superstep)
        await self._store.budgets.resolve(row.id, draft)

    async def ask(self, run_id: str, known: Mapping[str, Price] | None = None) -> bool:
        """Ask providers for the reports that a run's replies lack; whether its halt is gone.

        `known` are prices by model's name. Only answers that the provider keeps can be found.
        """
        run = ids.run_id(run_id)
        asked = await evidence.questions(self._store, run, self._find, known or {})
        return await evidence.clear(self._store, asked, now=self._now)

    def _find(self, name: str) -> Model | None:
        try:
            return models.resolve(name, self._models)
        except errors.ModelUnavailable:
            return None

    async def halted(self, run: RunId, known: Mapping[str, Price]) -> bool:
        """Whether a run's own budget is halted, after evidence was asked for."""
        if not (await self.show(ids.run_budget(run))).halted:
            return False
        return not await self.ask(run, known)
