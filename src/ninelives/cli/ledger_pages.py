"""What a person reads of budgets: limits, spending, open holds. Pure: facts in, lines out."""

from __future__ import annotations

from collections.abc import Sequence

from ninelives import clock, money
from ninelives.cli.terminal import ago, command
from ninelives.log import events
from ninelives.store.budgets import Budget, BudgetAct, Limit, OpenHold, Spending

_WINDOWS = {"total": "in total", "day": "today", "month": "this month"}


def budgets(found: Sequence[Budget]) -> str:
    """A table of budgets."""
    if not found:
        return "no budgets"
    layout = "{:<28} {:>22} {:>22} {:>22}  {}"
    lines = [layout.format("BUDGET", "TODAY", "THIS MONTH", "IN TOTAL", "STATE")]
    for each in found:
        spent = [_short(each.spent[per]) for per in ("day", "month", "total")]
        lines.append(layout.format(each.name, *spent, _state(each)))
    return "\n".join(line.rstrip() for line in lines)


def _short(spent: Spending) -> str:
    cost = f" {money.dollars(spent.microdollars)}" if spent.microdollars else ""
    return f"{spent.committed} tokens{cost}"


def _state(shown: Budget) -> str:
    if shown.halted:
        return f"halted: {shown.halted}"
    full = [limit.per for limit in shown.limits if _exhausted(limit, shown.spent[limit.per])]
    return ", ".join(f"exhausted {_WINDOWS[per]}" for per in full)


def _exhausted(limit: Limit, spent: Spending) -> bool:
    tokens, cost = limit.tokens_max, limit.microdollars_max
    return (tokens is not None and spent.committed >= tokens) or (
        cost is not None and spent.microdollars >= cost
    )


def budget(
    shown: Budget,
    holds: Sequence[OpenHold],
    days: Sequence[tuple[str, Spending]],
    acts: Sequence[tuple[int, BudgetAct]],
) -> str:
    """One budget, ending with what to do about holds that nobody has reported."""
    lines = [f"budget {shown.name}", *limits(shown)]
    if shown.halted:
        lines += [
            f"  halted since {clock.iso(shown.halted_at)}: {shown.halted}",
            f"  next: {command('budget', 'clear-halt', shown.name)}, when it may go on",
        ]
    lines += _holds(holds)
    lines += ["  by day:"] if days else []
    lines += [f"    {day}  {_short(spent)}, {_calls(spent)}" for day, spent in days]
    lines += ["  what persons did:"] if acts else []
    lines += [f"    {clock.iso(at)}  {_act(act)}" for at, act in acts]
    return "\n".join(lines)


def limits(shown: Budget) -> list[str]:
    """What a budget has spent, window by window, and what it admits."""
    lines = [f"  {_WINDOWS['total']}: {_spent(shown.total)}"] if not shown.limits else []
    for limit in shown.limits:
        spent = shown.spent[limit.per]
        most = []
        if limit.tokens_max is not None:
            most.append(f"{spent.committed} of {limit.tokens_max} tokens")
        else:
            most.append(f"{spent.committed} tokens")
        if limit.microdollars_max is not None:
            cost = money.dollars(spent.microdollars)
            most.append(f"{cost} of {money.dollars(limit.microdollars_max)}")
        elif spent.microdollars:
            most.append(money.dollars(spent.microdollars))
        lines.append(f"  {_WINDOWS[limit.per]}: {', '.join(most)}; {_calls(spent)}")
    return lines


def _spent(spent: Spending) -> str:
    return f"{_short(spent)}, no limit; {_calls(spent)}"


def _calls(spent: Spending) -> str:
    calls = "1 call" if spent.calls == 1 else f"{spent.calls} calls"
    return f"{calls}, {spent.unpriced} of unknown price" if spent.unpriced else calls


def _holds(holds: Sequence[OpenHold]) -> list[str]:
    waiting = [each for each in holds if not each.under_way]
    lines = [f"  {len(holds) - len(waiting)} calls under way"] if len(waiting) < len(holds) else []
    if not waiting:
        return lines
    lines.append("  holds that nobody has reported (look at the provider's bill):")
    for each in waiting:
        why = "no usable report" if each.status == "unknown" else "its process died"
        cost = "" if each.microdollars is None else f", {money.dollars(each.microdollars)}"
        lines.append(
            f"    run {each.run} hold {each.seq}: {each.tokens} tokens{cost} of {each.model} for "
            f"{each.executor}, {ago(each.at)} ago: {why}"
        )
    first = waiting[0]
    hold = ("budget", "settle", first.run, str(first.seq))
    told = command(*hold, "--tokens", "N", "--why", "TEXT")
    none = command(*hold, "--released", "--why", "TEXT")
    asked = command("budget", "settle", first.run, "--ask")
    return [*lines, f"  next: {told}, or {none}, or {asked}"]


def _act(act: BudgetAct) -> str:
    who = act.by or "somebody"
    match act:
        case events.BudgetSet(tokens_max=tokens, microdollars_max=cost):
            most = [f"{tokens} tokens"] if tokens is not None else []
            most += [money.dollars(cost)] if cost is not None else []
            what = f"{who} set {_PER[act.per]} to {' and '.join(most) or 'no limit'}"
        case events.BudgetHalted():
            return f"halted {act.reason}"
        case _:
            what = f"{who} cleared the halt"
    return f"{what}: {act.why}" if act.why else what


_PER = {"total": "the total", "day": "the day", "month": "the month"}
