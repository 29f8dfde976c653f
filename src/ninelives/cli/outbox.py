"""`relay` delivers the outbox; `outbox` shows what waits in it and what died, and requeues."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import os
import pathlib
import signal
from collections.abc import Generator

import click

from ninelives import clock, errors, ids
from ninelives.cli import terminal
from ninelives.crashlab import probe
from ninelives.engine import channels as declared
from ninelives.engine import target as targets
from ninelives.engine.channels import Channel
from ninelives.engine.relay import Relay
from ninelives.engine.runtime import Runtime
from ninelives.store.base import Store
from ninelives.store.outbox import Letter, LetterState

WIDTHS = "{:<20} {:<16} {:<28} {:>5} {:>5}  {}"


@click.command()
@click.option("--once", is_flag=True, help="Deliver what is due now, then end.")
@click.option(
    "--channels",
    metavar="TARGET",
    envvar="NINELIVES_CHANNELS",
    help="A Channel, a list of them, or a function that returns one; else $NINELIVES_CHANNELS.",
)
@terminal.store_option
@terminal.asynchronous
async def relay(once: bool, channels: str | None, store: str) -> int:  # noqa: FBT001
    """Deliver what handlers have left in the outbox, each message at least once.

    TARGET is module:attribute or path.py:attribute. Several relays may work side by side.
    Ctrl-C and SIGTERM let deliveries under way come to their end.
    """
    probe.arm(os.environ)
    served = _channels(channels)
    async with Runtime(store, create=False) as runtime:
        relaying = Relay(runtime.store, served)
        with _signals(relaying) as received:
            tally = await (relaying.once() if once else relaying.run())
        terminal.say(
            f"{tally.delivered} delivered, {tally.postponed} to be tried again, {tally.dead} dead"
        )
        await _unserved(runtime.store, served)
    return 128 + received[0] if received else 0


def _channels(text: str | None) -> tuple[Channel, ...]:
    if text is None:
        raise errors.ChannelsInvalid("name them with --channels, or in NINELIVES_CHANNELS")
    where = targets.parse(text, folder=pathlib.Path.cwd())
    return declared.checked(targets.load_value(where))


async def _unserved(store: Store, served: tuple[Channel, ...]) -> None:
    """Messages that no channel of this relay delivers are not lost, but somebody should know."""
    names = {channel.name for channel in served}
    for name, count in (await store.outbox.waiting()).items():
        if name not in names:
            terminal.complain(f"{count} messages wait in channel {name!r}, not served here")


@contextlib.contextmanager
def _signals(relaying: Relay) -> Generator[list[int]]:
    """The first SIGINT or SIGTERM stops in an orderly way, the second at once."""
    loop = asyncio.get_running_loop()
    received: list[int] = []

    def stop(number: int) -> None:
        if received:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        received.append(number)
        relaying.request_stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    try:
        yield received
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


@click.group()
def outbox() -> None:
    """What waits in the outbox, and what could not be delivered."""


@outbox.command("ls")
@click.argument("run_id", required=False)
@click.option("--limit", default=50, show_default=True, help="How many, newest first.")
@terminal.json_option
@terminal.store_option
@terminal.asynchronous
async def ls(run_id: str | None, limit: int, as_json: bool, store: str) -> int:  # noqa: FBT001
    """The messages that wait, of RUN_ID or of all runs."""
    await _list("queued", run_id, limit, as_json=as_json, store=store)
    return 0


@outbox.command("dead")
@click.argument("run_id", required=False)
@click.option("--limit", default=50, show_default=True, help="How many, newest first.")
@terminal.json_option
@terminal.store_option
@terminal.asynchronous
async def dead(run_id: str | None, limit: int, as_json: bool, store: str) -> int:  # noqa: FBT001
    """The dead letters, of RUN_ID or of all runs, and why they died."""
    await _list("dead", run_id, limit, as_json=as_json, store=store)
    return 0


@outbox.command("requeue")
@click.argument("run_id")
@click.argument("key")
@click.option("--by", default=getpass.getuser, show_default="your login", help="Who decides.")
@terminal.store_option
@terminal.asynchronous
async def requeue(run_id: str, key: str, by: str, store: str) -> int:
    """Let the dead letter KEY of RUN_ID (or `all`) be tried again, under the same key.

    KEY is the full key, or the part behind the run's id.
    """
    run = ids.run_id(run_id)
    full = key if key.startswith(f"{run}:") else f"{run}:{key}"
    async with Runtime(store, create=False) as runtime:
        found = await runtime.store.outbox.requeue(
            run, None if key == "all" else full, clock.now_ms(), by=by
        )
    if not found and key != "all":
        raise errors.LetterNotDead(run, full)
    for each in found:
        terminal.say(f"{each}: queued again, says {by}")
    if not found:
        terminal.say(f"run {run_id!r} has no dead letters; nothing has changed")
    return 0


async def _list(
    state: LetterState, run_id: str | None, limit: int, *, as_json: bool, store: str
) -> None:
    async with Runtime(store, create=False) as runtime:
        run = None if run_id is None else (await runtime.store.run(ids.run_id(run_id))).id
        letters = await runtime.store.outbox.letters(state, run=run, limit=limit)
    if as_json:
        for letter in letters:
            terminal.say_json(_document(letter))
    else:
        terminal.say(_table(state, letters))


def _document(letter: Letter) -> dict[str, object]:
    return {
        "run": letter.run,
        "channel": letter.channel,
        "key": letter.key,
        "state": letter.state,
        "claimed": letter.claimed,
        "attempts": letter.attempts,
        "queued_at": clock.iso(letter.queued_at),
        "next_at": clock.iso(letter.next_at),
        "error": letter.error,
        "message": letter.message,
    }


def _table(state: LetterState, letters: list[Letter]) -> str:
    if not letters:
        return "no dead letters" if state == "dead" else "nothing waits"
    lines = [WIDTHS.format("RUN", "CHANNEL", "KEY", "TRIED", "AGE", "WHY")]
    for letter in letters:
        why = f"{letter.error}: {letter.message}" if letter.error else ""
        if letter.claimed:
            why = "in a relay's hands"
        age = terminal.ago(letter.queued_at)
        key = letter.key.removeprefix(f"{letter.run}:")
        lines.append(WIDTHS.format(letter.run, letter.channel, key, letter.attempts, age, why))
    if state == "dead":
        again = terminal.command("outbox", "requeue", letters[0].run, "all")
        lines.append(f"next: mend the cause, then {again}")
    return "\n".join(line.rstrip() for line in lines)
