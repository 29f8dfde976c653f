"""Commands by which a person acts on a run: each is an event in its journal, with the name."""

from __future__ import annotations

import getpass

import click

from ninelives.cli import terminal
from ninelives.engine.runtime import Runtime


@click.command("clear-halt")
@click.argument("run_id")
@click.option("--by", default=getpass.getuser, show_default="your login", help="Who decides.")
@terminal.store_option
@terminal.asynchronous
async def clear_halt(run_id: str, by: str, store: str) -> int:
    """Let the halted budget of RUN_ID admit model calls again; unknown holds stay counted."""
    async with Runtime(store, create=False) as runtime:
        cleared = await runtime.clear_halt(run_id, by=by)
    if cleared:
        terminal.say(f"cleared by {by}; go on with `ninelives resume {run_id}`")
    else:
        terminal.say(f"run {run_id!r} is not halted; nothing has changed")
    return 0
