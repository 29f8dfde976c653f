"""The contract of a store's budgets: limits by name and window, what was spent, open holds.

A run draws on several budgets at once, its own first. A reservation is admitted by all of them
or by none, in the transaction that records it. Money is in millionths of a dollar.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from ninelives.ids import RunId, Seq
from ninelives.log.events import BudgetHalted, BudgetSet, Draft, HaltCleared

Per: TypeAlias = Literal["total", "day", "month"]
BudgetAct: TypeAlias = BudgetSet | BudgetHalted | HaltCleared


@dataclass(frozen=True, slots=True)
class Limit:
    """What a budget admits in one window (days and months in UTC); None: no limit."""

    per: Per
    tokens_max: int | None = None
    microdollars_max: int | None = None


@dataclass(frozen=True, slots=True)
class Spending:
    """What counts against a limit: settled at actual, held and unknown at reserved.

    `unpriced` calls of unknown price are in the tokens, and not in the money.
    """

    calls: int = 0
    unpriced: int = 0
    settled: int = 0
    held: int = 0
    unknown: int = 0
    settled_microdollars: int = 0
    held_microdollars: int = 0
    unknown_microdollars: int = 0

    @property
    def committed(self) -> int:
        """Tokens that count against the limit."""
        return self.settled + self.held + self.unknown

    @property
    def microdollars(self) -> int:
        """Money that counts against the limit."""
        return self.settled_microdollars + self.held_microdollars + self.unknown_microdollars


@dataclass(frozen=True, slots=True)
class Budget:
    """A budget as of one moment; `halted` is the reason, or empty.

    `spent` has each window as of that moment: in total, this day, this month.
    """

    name: str
    limits: tuple[Limit, ...] = ()
    spent: Mapping[Per, Spending] = field(default_factory=dict[Per, Spending])
    halted: str = ""
    halted_at: int = 0

    @property
    def total(self) -> Spending:
        """All that was ever spent."""
        return self.spent["total"]


@dataclass(frozen=True, slots=True)
class RunBudget:
    """What a run that is to exist may spend, and what else it draws on, innermost first.

    `named` must exist; `levels` are made where they do not.
    """

    tokens_max: int | None = None
    microdollars_max: int | None = None
    named: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenHold:
    """A reservation that counts without a report.

    `under_way`: a living process waits for the answer. `ended` is the seq of the event that left
    it unknown (0: none did, its process died).
    """

    run: RunId
    seq: Seq
    status: Literal["held", "unknown"]
    under_way: bool
    tokens: int
    microdollars: int | None
    model: str
    executor: str
    superstep: int
    at: int
    ended: int


class Budgets(Protocol):
    """Limits, halts and holds; every call is durable when it returns."""

    async def show(self, name: str, *, at: int) -> Budget:
        """One budget, its windows as of the label `at`.

        Raises:
            BudgetUnknown: there is none of that name.
        """
        ...

    async def of_run(self, run: RunId, *, at: int) -> list[Budget]:
        """What a run draws on, its own budget first.

        Raises:
            RunNotFound: no such run.
        """
        ...

    async def shared(self, *, at: int, after: str, limit: int) -> list[Budget]:
        """Budgets that several runs may draw on, by name, from behind the name `after`."""
        ...

    async def days(self, name: str, *, limit: int) -> list[tuple[str, Spending]]:
        """A shared budget's spending by day (UTC), the latest first."""
        ...

    async def open_holds(self, name: str, *, limit: int) -> list[OpenHold]:
        """Holds that are unknown, orphaned or under way, the oldest first."""
        ...

    async def acts(self, name: str, *, limit: int) -> list[tuple[int, BudgetAct]]:
        """What persons did to a shared budget, the latest first, each with its label of time."""
        ...

    async def act(self, name: str, draft: Draft) -> None:
        """Record a person's act on a shared budget, with what follows from it.

        A limit or a halt makes a budget that does not exist; clearing a halt does not.

        Raises:
            BudgetUnknown: there is none of that name.
        """
        ...

    async def resolve(self, run: RunId, draft: Draft) -> None:
        """Record what became of an open hold (a HoldResolved), in its run's journal.

        Needs no ownership, and goes for ended runs too.

        Raises:
            RunNotFound: no such run.
            HoldNotOpen: no such hold, it has ended, or its call is under way.
        """
        ...
