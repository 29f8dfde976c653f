"""Commands by which a person acts on a run: each is an event in its journal, with the name."""

from __future__ import annotations

import getpass
import json

import click

from ninelives.cli import terminal
from ninelives.durable.effects import Absent, Applied
from ninelives.engine.runtime import Runtime


@click.command("clear-halt")
@click.argument("run_id")
@click.option("--by", default=getpass.getuser, show_default="your login", help="Who decides.")
@click.option("--why", default="", help="For the journal.")
@terminal.store_option
@terminal.asynchronous
async def clear_halt(run_id: str, by: str, why: str, store: str) -> int:
    """Let the halted budget of RUN_ID admit model calls again; unknown holds stay counted."""
    async with Runtime(store, create=False) as runtime:
        cleared = await runtime.clear_halt(run_id, by=by, why=why)
    if cleared:
        terminal.say(f"cleared by {by}; go on with `ninelives resume {run_id}`")
    else:
        terminal.say(f"run {run_id!r} is not halted; nothing has changed")
    return 0


@click.command()
@click.argument("run_id")
@click.argument("key")
@click.option("--applied", "answer", flag_value="applied", help="It has happened.")
@click.option("--absent", "answer", flag_value="absent", help="It has not; it may be sent again.")
@click.option("--result", metavar="JSON", help="What the effect returned, with --applied.")
@click.option("--by", default=getpass.getuser, show_default="your login", help="Who decides.")
@terminal.store_option
@terminal.asynchronous
async def resolve(
    run_id: str, key: str, answer: str | None, result: str | None, by: str, store: str
) -> int:
    """Say what became of the effect KEY of RUN_ID, whose outcome is unknown.

    KEY is the full idempotency key, or the part behind the run's id. The next owner of the run
    acts on it: it adopts the result, or sends again under the same key.
    """
    if answer is None or (answer == "absent" and result is not None):
        message = "say --applied (with --result JSON if it had one) or --absent"
        raise click.UsageError(message)
    try:
        value = None if result is None else json.loads(result)
    except ValueError as error:
        message = f"--result is not valid JSON: {error}"
        raise click.UsageError(message) from None
    found: Applied | Absent = Applied(value) if answer == "applied" else Absent(final=True)
    async with Runtime(store, create=False) as runtime:
        await runtime.resolve(run_id, key, found, by=by)
    terminal.say(f"{key}: {answer}, says {by}; go on with `ninelives resume {run_id}`")
    return 0


@click.command()
@click.argument("run_id")
@click.option("--by", default=getpass.getuser, show_default="your login", help="Who decides.")
@terminal.store_option
@terminal.asynchronous
async def cancel(run_id: str, by: str, store: str) -> int:
    """End RUN_ID for good: at once if nobody works on it, else at its owner's next boundary.

    Effects under way are seen to their outcome. What was done stays done.
    """
    async with Runtime(store, create=False) as runtime:
        status = await runtime.cancel(run_id, by=by)
    if status.state == "cancelled":
        terminal.say(f"cancelled by {by}")
    else:
        terminal.say(f"asked by {by}; its process ends it at its next boundary")
    return 0
