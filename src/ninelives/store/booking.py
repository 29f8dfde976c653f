"""The ledger's part of a SQLite store: whether budgets admit a call, and what facts book.

Everything here runs inside the transaction that appends the facts, so that check and hold are
one over all processes.
"""

from __future__ import annotations

from dataclasses import dataclass

import apsw

from ninelives import clock, money
from ninelives.ids import RUN_BUDGET
from ninelives.log import events
from ninelives.log.events import Draft
from ninelives.store import queries, rows
from ninelives.store.base import BudgetRefused
from ninelives.store.budgets import RunBudget
from ninelives.store.rows import row_id

_SQL = queries.load("sqlite")


def open_budgets(
    connection: apsw.Connection, run: int, ident: str, budget: RunBudget
) -> str | None:
    """Write what a new run draws on; or the name of a budget that must exist and does not."""
    for name in budget.named:
        if rows.one(connection, "budget_id", (name,)) is None:
            return name
    own = RUN_BUDGET + ident
    names = dict.fromkeys((own, *budget.named, *budget.levels))
    for rank, name in enumerate(names):
        rows.fetch(connection, "budget_ensure", (name,))
        rows.fetch(connection, "draw_insert", {"run": run, "rank": rank, "name": name})
    _set(connection, own, "total", budget.tokens_max, budget.microdollars_max)
    return None


# -- admission ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Bound:
    """One limit that binds a run, and what counts against it."""

    name: str
    halted: str
    per: str | None
    tokens_max: int | None
    microdollars_max: int | None
    tokens: int
    microdollars: int


def refusal(
    connection: apsw.Connection, run: int, requested: events.ModelRequested, at: int
) -> BudgetRefused | None:
    """Ask every budget that the run draws on, innermost first."""
    day = clock.day(at)
    values = {"run": run, "day": day, "month": day[:7]}
    for found in rows.fetch(connection, "budgets_drawn", values):
        refused = _refuses(_Bound(*found), requested)
        if refused is not None:
            return refused
    return None


def _refuses(bound: _Bound, requested: events.ModelRequested) -> BudgetRefused | None:
    where = f"budget {bound.name!r}"
    if bound.halted:
        return BudgetRefused("BudgetHalted", f"{where} is halted: {bound.halted}", bound.name)
    when = {"day": " today", "month": " this month"}.get(bound.per or "", "")
    tokens, most = requested.reserved_tokens, bound.tokens_max
    if most is not None and bound.tokens + tokens > most:
        why = (
            f"{where}: {bound.tokens} of {most} tokens are committed{when}, "
            f"the call would reserve {tokens} more"
        )
        return BudgetRefused("BudgetExceeded", why, bound.name)
    cost, most = requested.reserved_microdollars, bound.microdollars_max
    if most is None:
        return None
    if cost is None:
        why = (
            f"{where} is in money, and nobody knows what model {requested.model!r} costs: give "
            "WorkflowBuilder(prices={...}) its price, or install ninelives[prices]"
        )
        return BudgetRefused("ModelUnpriced", why, bound.name)
    if bound.microdollars + cost > most:
        why = (
            f"{where}: {money.dollars(bound.microdollars)} of {money.dollars(most)} are committed"
            f"{when}, the call would reserve {money.dollars(cost)} more"
        )
        return BudgetRefused("BudgetExceeded", why, bound.name)
    return None


# -- booking ------------------------------------------------------------------------------


def book(connection: apsw.Connection, run: int, seq: int, draft: Draft) -> None:
    """Change holds, spending, limits and halts by what a fact says."""
    match draft.fact:
        case events.ModelRequested() as requested:
            _reserve(connection, run, seq, requested, clock.day(draft.at))
        case events.ModelReplied(hold=hold, hold_status="settled") as replied:
            _end(connection, row_id(run, hold), seq, _settled(replied))
        case events.ModelReplied(hold=hold) | events.ModelUnsettled(hold=hold, outcome="unknown"):
            _end(connection, row_id(run, hold), seq, _End("unknown"))
        case events.ModelUnsettled(hold=hold):
            _end(connection, row_id(run, hold), seq, _End("released"))
        case events.HoldResolved(hold=hold, status="settled") as found:
            _end(connection, row_id(run, hold), seq, _settled(found))
        case events.HoldResolved(hold=hold):
            _end(connection, row_id(run, hold), seq, _End("released"))
        case events.BudgetSet() as fact:
            _set(connection, fact.budget, fact.per, fact.tokens_max, fact.microdollars_max)
        case events.BudgetHalted(budget=name, reason=reason):
            halted = {"reason": reason, "at": draft.at, "name": name}
            connection.execute(_SQL["budget_halt"], halted)
        case events.HaltCleared(budget=name):
            connection.execute(_SQL["budget_halt"], {"reason": "", "at": 0, "name": name})
        case _:
            raise AssertionError(draft.fact)


def _set(
    connection: apsw.Connection, name: str, per: str, tokens: int | None, microdollars: int | None
) -> None:
    found = rows.one(connection, "budget_id", (name,))
    assert found is not None, name
    values = {"budget": found[0], "per": per}
    if tokens is None and microdollars is None:
        rows.fetch(connection, "limit_delete", values)
    else:
        most = {"tokens_max": tokens, "microdollars_max": microdollars}
        rows.fetch(connection, "limit_set", values | most)


def _reserve(
    connection: apsw.Connection, run: int, seq: int, requested: events.ModelRequested, day: str
) -> None:
    tokens, cost = requested.reserved_tokens, requested.reserved_microdollars
    connection.execute(
        _SQL["hold_insert"],
        {"id": row_id(run, seq), "day": day, "tokens": tokens, "microdollars": cost},
    )
    connection.execute(
        _SQL["spending_reserve"],
        {
            "run": run,
            "day": day,
            "unpriced": int(cost is None),
            "tokens": tokens,
            "microdollars": cost or 0,
        },
    )


@dataclass(frozen=True, slots=True)
class _End:
    """How a hold ends; a settlement without a cost costs what was held."""

    status: str
    tokens: int = 0
    microdollars: int | None = 0


def _settled(fact: events.ModelReplied | events.HoldResolved) -> _End:
    return _End("settled", fact.tokens, fact.microdollars)


_NOTHING = dict.fromkeys(
    (f"{status}_{unit}" for status in ("settled", "held", "unknown") for unit in rows.UNITS), 0
)


def _end(connection: apsw.Connection, hold: int, seq: int, end: _End) -> None:
    """End a hold, or settle one that was left unknown, in all budgets that it counts in."""
    before, day, reserved, cost = rows.fetch(connection, "hold_of", (hold,))[0]
    assert before == "held" or (before == "unknown" and end.status != "unknown"), (hold, before)
    held = cost or 0
    spent = held if end.microdollars is None else end.microdollars
    values = {"status": end.status, "tokens": end.tokens, "microdollars": spent, "ended": seq}
    connection.execute(_SQL["hold_end"], values | {"id": hold})
    moved = _NOTHING | {f"{before}_tokens": -reserved, f"{before}_microdollars": -held}
    if end.status == "unknown":
        moved |= {"unknown_tokens": reserved, "unknown_microdollars": held}
    elif end.status == "settled":
        moved |= {"settled_tokens": end.tokens, "settled_microdollars": spent}
    moved |= {"run": hold >> rows.SHIFT, "day": day}
    connection.execute(_SQL["spending_move"], moved)
