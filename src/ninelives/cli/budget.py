"""`budget`: what runs may spend, what they have spent, and holds that wait for a person."""

from __future__ import annotations

import decimal
import getpass
from typing import cast

import click

from ninelives import clock, errors, ids, money
from ninelives.cli import ledger_pages, terminal
from ninelives.engine.runtime import Runtime
from ninelives.store.budgets import Budget, Limit, OpenHold, Per, Spending

by_option = click.option(
    "--by", default=getpass.getuser, show_default="your login", help="Who decides."
)
why_option = click.option("--why", default="", help="For the journal.")


@click.group()
def budget() -> None:
    """Limits in tokens and money, by name: `run:ID`, `workflow:NAME`, `tenant:NAME`, `store`, or
    one of your own that RunSettings(budgets=[...]) names. Days and months are UTC.
    """


@budget.command()
@click.option("--after", default="", metavar="NAME", help="Only names behind this one.")
@click.option("--limit", default=100, show_default=True, help="How many, by name.")
@terminal.json_option
@terminal.store_option
@terminal.asynchronous
async def ls(after: str, limit: int, as_json: bool, store: str) -> int:  # noqa: FBT001
    """The budgets that several runs draw on, with what was spent."""
    async with Runtime(store, create=False) as runtime:
        found = await runtime.budgets.shared(after=after, limit=limit)
    if as_json:
        for each in found:
            terminal.say_json(_document(each))
    else:
        terminal.say(ledger_pages.budgets(found))
    return 0


@budget.command()
@click.argument("name")
@terminal.json_option
@terminal.store_option
@terminal.asynchronous
async def show(name: str, as_json: bool, store: str) -> int:  # noqa: FBT001
    """What the budget NAME admits, has spent, and what of it nobody has reported."""
    async with Runtime(store, create=False) as runtime:
        found = await runtime.budgets.show(name)
        holds = await runtime.budgets.open_holds(name)
        days = await runtime.budgets.days(name)
        acts = await runtime.budgets.acts(name)
    if as_json:
        extra = {
            "open_holds": [_hold(each) for each in holds],
            "days": [{"day": day, **_spending(spent)} for day, spent in days],
        }
        terminal.say_json(_document(found) | extra)
    else:
        terminal.say(ledger_pages.budget(found, holds, days, acts))
    return 0


NO_LIMIT = "none"


def _tokens(_context: click.Context, _parameter: click.Parameter, text: str | None) -> str | None:
    if text is None or text == NO_LIMIT:
        return text
    if not text.isascii() or not text.isdigit():
        message = f"{text!r} is no number of tokens; write digits"
        raise click.BadParameter(message)
    return text


def _dollars(_context: click.Context, _parameter: click.Parameter, text: str | None) -> str | None:
    if text is None or text == NO_LIMIT:
        return text
    try:
        money.microdollars(text, "the amount")
    except errors.SettingsInvalid as error:
        raise click.BadParameter(str(error)) from None
    return text


@budget.command("set")
@click.argument("name")
@click.option(
    "--per",
    type=click.Choice(["total", "day", "month"]),
    default="total",
    show_default=True,
    help="In which window.",
)
@click.option("--tokens", callback=_tokens, metavar="N", help="How many tokens, or none: no limit.")
@click.option(
    "--dollars", callback=_dollars, metavar="X", help="How much money, or none: no limit."
)
@by_option
@why_option
@terminal.store_option
@terminal.asynchronous
async def set_limit(  # noqa: PLR0917 - each is one option, by name
    name: str, per: str, tokens: str | None, dollars: str | None, by: str, why: str, store: str
) -> int:
    """Set what the budget NAME admits in one window; of the two, what is not given stays.

    0 admits nothing. It holds from now on, for runs under way too, and what was spent in the
    window before counts.
    """
    if tokens is None and dollars is None:
        message = "say --tokens N, or --dollars X, or both; none lifts a limit"
        raise click.UsageError(message)
    window = cast("Per", per)
    async with Runtime(store) as runtime:
        now = await _limit(runtime, name, window)
        await runtime.budgets.set(
            name,
            per=window,
            tokens=now.tokens_max if tokens is None else _number(tokens),
            dollars=_amount(now.microdollars_max) if dollars is None else _given(dollars),
            by=by,
            why=why,
        )
        found = await runtime.budgets.show(name)
    terminal.say(ledger_pages.budget(found, [], [], []))
    return 0


async def _limit(runtime: Runtime, name: str, per: Per) -> Limit:
    """The limit that is there now, if any."""
    try:
        found = await runtime.budgets.show(name)
    except errors.BudgetUnknown:
        return Limit(per)
    return next((each for each in found.limits if each.per == per), Limit(per))


def _given(text: str) -> str | None:
    return None if text == NO_LIMIT else text


def _number(text: str) -> int | None:
    return None if text == NO_LIMIT else int(text)


def _amount(microdollars: int | None) -> decimal.Decimal | None:
    return None if microdollars is None else decimal.Decimal(microdollars) / money.MICRO


@budget.command()
@click.argument("name")
@by_option
@why_option
@terminal.store_option
@terminal.asynchronous
async def halt(name: str, by: str, why: str, store: str) -> int:
    """Let the budget NAME admit no new model call until its halt is cleared."""
    async with Runtime(store, create=False) as runtime:
        await runtime.budgets.halt(name, by=by, why=why)
        unused = not (await runtime.budgets.show(name)).total.calls
    if unused:
        terminal.complain(f"no call has drawn on {name!r} yet: is that its name?")
    again = terminal.command("budget", "clear-halt", name)
    terminal.say(f"budget {name!r} is halted by {by}; calls under way go on. Later: {again}")
    return 0


@budget.command("clear-halt")
@click.argument("name")
@by_option
@why_option
@terminal.store_option
@terminal.asynchronous
async def clear_halt(name: str, by: str, why: str, store: str) -> int:
    """Let the halted budget NAME admit model calls again; unknown holds stay counted."""
    async with Runtime(store, create=False) as runtime:
        cleared = await runtime.budgets.clear_halt(name, by=by, why=why)
    if cleared:
        terminal.say(f"cleared by {by}; runs that have parked go on with `ninelives resume`")
    else:
        terminal.say(f"budget {name!r} is not halted; nothing has changed")
    return 0


@budget.command()
@click.argument("run_id")
@click.argument("hold", type=int, required=False)
@click.option("--tokens", callback=_tokens, metavar="N", help="What the call has taken.")
@click.option("--dollars", callback=_dollars, metavar="X", help="Its cost; else what was held.")
@click.option("--released", is_flag=True, help="The provider has billed nothing.")
@click.option("--ask", is_flag=True, help="Ask the provider, for all holds of the run.")
@by_option
@why_option
@terminal.store_option
@terminal.asynchronous
async def settle(  # noqa: PLR0913, PLR0917 - each is one option, by name
    run_id: str,
    hold: int | None,
    tokens: str | None,
    dollars: str | None,
    released: bool,  # noqa: FBT001
    ask: bool,  # noqa: FBT001
    by: str,
    why: str,
    store: str,
) -> int:
    """Say what the call behind HOLD of RUN_ID has cost; nobody has reported it.

    HOLD is the number that `budget show run:RUN_ID` lists. Say --why: it is your word against a
    bill. A halt stays until it is cleared, but for --ask: evidence for every missing report
    clears it.
    """
    ways = (tokens is not None) + released + ask
    vague = NO_LIMIT in {tokens, dollars}
    if ways != 1 or vague or (hold is None) != ask or (dollars is not None and tokens is None):
        message = "say HOLD and --tokens N [--dollars X], or HOLD and --released, or --ask alone"
        raise click.UsageError(message)
    if not ask and not why.strip():
        message = "say --why: how you know what the call has cost (an invoice, a log)"
        raise click.UsageError(message)
    async with Runtime(store, create=False) as runtime:
        if hold is None:
            return await _ask(runtime, run_id)
        if tokens is not None:
            await runtime.budgets.settle(
                run_id, hold, tokens=int(tokens), dollars=dollars, by=by, why=why
            )
        else:
            await runtime.budgets.release(run_id, hold, by=by, why=why)
        halted = (await runtime.budgets.show(ids.run_budget(ids.run_id(run_id)))).halted
    terminal.say(f"hold {hold}: {'released' if released else f'{tokens} tokens'}, says {by}")
    if halted:
        terminal.say(f"still halted; next: {terminal.command('clear-halt', run_id)}")
    return 0


async def _ask(runtime: Runtime, run_id: str) -> int:
    workflow = await runtime.load_workflow(run_id)
    before = await runtime.budgets.open_holds(f"run:{run_id}")
    cleared = await runtime.budgets.ask(run_id, workflow.prices if workflow else None)
    after = await runtime.budgets.open_holds(f"run:{run_id}")
    terminal.say(f"{len(before) - len(after)} of {len(before)} holds settled by evidence")
    if cleared:
        terminal.say(f"the halt is cleared; next: {terminal.command('resume', run_id)}")
    return 0


def _spending(spent: Spending) -> dict[str, object]:
    return {
        "calls": spent.calls,
        "unpriced_calls": spent.unpriced,
        "tokens": {"settled": spent.settled, "held": spent.held, "unknown": spent.unknown},
        "microdollars": {
            "settled": spent.settled_microdollars,
            "held": spent.held_microdollars,
            "unknown": spent.unknown_microdollars,
        },
    }


def _document(shown: Budget) -> dict[str, object]:
    return {
        "name": shown.name,
        "limits": [
            {
                "per": limit.per,
                "tokens_max": limit.tokens_max,
                "microdollars_max": limit.microdollars_max,
            }
            for limit in shown.limits
        ],
        "spent": {per: _spending(spent) for per, spent in shown.spent.items()},
        "halted": shown.halted or None,
        "halted_at": clock.iso(shown.halted_at) if shown.halted else None,
    }


def _hold(hold: OpenHold) -> dict[str, object]:
    return {
        "run": hold.run,
        "hold": hold.seq,
        "status": hold.status,
        "under_way": hold.under_way,
        "tokens": hold.tokens,
        "microdollars": hold.microdollars,
        "model": hold.model,
        "executor": hold.executor,
        "superstep": hold.superstep,
        "at": clock.iso(hold.at),
    }
