"""Commands that only look: report, show, ls, watch, outputs, verify."""

from __future__ import annotations

from collections.abc import AsyncIterator

import click

from ninelives import clock
from ninelives.cli import pages, terminal
from ninelives.engine.run import Run, status_of
from ninelives.engine.runtime import Runtime
from ninelives.ids import RunId
from ninelives.log import invariants, projection
from ninelives.log import report as reports
from ninelives.log.events import Event, HandlerFailed, Output
from ninelives.store.base import RunRow

PAGE = 200


async def _journal(run: Run) -> list[Event]:
    return [event async for event in run.recorded()]


@click.command()
@click.argument("run_id")
@terminal.json_option
@terminal.store_option
@terminal.asynchronous
async def report(run_id: str, as_json: bool, store: str) -> int:  # noqa: FBT001
    """What happened to RUN_ID: what ran twice, what was replayed, what it cost."""
    async with Runtime(store, create=False) as runtime:
        run = await runtime.attach(run_id)
        status = await run.status()
        folded = projection.fold(await _journal(run))
    if as_json:
        terminal.say_json(reports.document(folded, state=status.state, reason=status.reason))
    else:
        terminal.say(pages.report(folded, status))
    return 0


@click.command()
@click.argument("run_id")
@click.option("--traceback", is_flag=True, help="Where its last failure was raised.")
@terminal.json_option
@terminal.store_option
@terminal.asynchronous
async def show(run_id: str, traceback: bool, as_json: bool, store: str) -> int:  # noqa: FBT001
    """How RUN_ID stands, and what to do next."""
    async with Runtime(store, create=False) as runtime:
        row = await runtime.store.run(RunId(run_id))
        budgets = await runtime.budgets.of_run(row.id)
        unknown = await runtime.store.open_effects(row.id)
        journal = await _journal(await runtime.attach(run_id)) if traceback else []
    if as_json:
        keys = [effect.key for effect in unknown]
        spent = budgets[0].total
        extra = {
            "committed_tokens": spent.committed,
            "committed_microdollars": spent.microdollars,
            "unknown_effects": keys,
        }
        terminal.say_json(_row(row) | extra)
    else:
        terminal.say(pages.show(row, status_of(row), budgets, unknown))
        failures = [each.fact for each in journal if isinstance(each.fact, HandlerFailed)]
        if failures:
            terminal.say(failures[-1].traceback)
    return 0


@click.command()
@click.option("--limit", default=50, show_default=True, help="How many, newest first.")
@terminal.json_option
@terminal.store_option
@terminal.asynchronous
async def ls(limit: int, as_json: bool, store: str) -> int:  # noqa: FBT001
    """The runs of a store, newest first."""
    async with Runtime(store, create=False) as runtime:
        rows = await runtime.runs(limit=limit)
    if as_json:
        for row in rows:
            terminal.say_json(_row(row))
    else:
        terminal.say(pages.runs([(row, status_of(row)) for row in rows]))
    return 0


def _row(row: RunRow) -> dict[str, object]:
    status = status_of(row)
    return {
        "id": row.id,
        "workflow": row.workflow,
        "status": status.state,
        "code": status.code,
        "reason": status.reason,
        "superstep": row.superstep,
        "seq": row.seq,
        "incarnation": row.incarnation,
        "admitted_at": clock.iso(row.admitted_at),
        "updated_at": clock.iso(row.updated_at),
    }


@click.command()
@click.argument("run_id")
@click.option("--after", default=0, metavar="SEQ", help="Only events behind this number.")
@click.option("--follow", is_flag=True, help="Stay when the run ends, parks or waits.")
@terminal.json_option
@terminal.store_option
@terminal.asynchronous
async def watch(run_id: str, after: int, follow: bool, as_json: bool, store: str) -> int:  # noqa: FBT001
    """The events of RUN_ID, from its journal and then live; ends when the run does."""
    async with Runtime(store, create=False) as runtime:
        run = await runtime.attach(run_id)
        async for event in run.watch(after=after, follow=follow):
            if as_json:
                terminal.say_json(pages.event_document(event))
            else:
                terminal.say(pages.event(event))
    return 0


@click.command()
@click.argument("run_id")
@terminal.json_option
@terminal.store_option
@terminal.asynchronous
async def outputs(run_id: str, as_json: bool, store: str) -> int:  # noqa: FBT001
    """The outputs of RUN_ID that are committed by now."""
    async with Runtime(store, create=False) as runtime:
        run = await runtime.attach(run_id)
        async for event in run.output_events():
            assert isinstance(event.fact, Output)
            terminal.say_output(event.seq, event.fact.value, as_json=as_json)
    return 0


@click.command()
@click.argument("run_id", required=False)
@terminal.json_option
@terminal.store_option
@terminal.asynchronous
async def verify(run_id: str | None, as_json: bool, store: str) -> int:  # noqa: FBT001
    """Check the invariants of RUN_ID, or of every run in the store."""
    checked, broken = 0, 0
    async with Runtime(store, create=False) as runtime:
        damage = await runtime.store.check()
        for each in damage:
            terminal.complain(f"damaged: {each}")
        async for name in _names(runtime, run_id):
            found = invariants.check(await _journal(await runtime.attach(name)))
            checked, broken = checked + 1, broken + len(found)
            for violation in found:
                _say_violation(violation, as_json=as_json)
    if as_json:
        terminal.say_json({"runs": checked, "violations": broken, "damaged": len(damage)})
    else:
        terminal.say(f"{checked} runs checked, {broken} violations")
    return 1 if broken or damage else 0


async def _names(runtime: Runtime, run_id: str | None) -> AsyncIterator[str]:
    if run_id is not None:
        yield run_id
        return
    before: int | None = None
    while rows := await runtime.runs(limit=PAGE, before=before):
        for row in rows:
            yield row.id
        before = rows[-1].number


def _say_violation(violation: invariants.Violation, *, as_json: bool) -> None:
    if as_json:
        terminal.say_json(
            {
                "run": violation.run,
                "invariant": violation.invariant.name,
                "seq": violation.seq,
                "what": violation.what,
            }
        )
    else:
        terminal.say(f"{violation}  ({violation.invariant.value})")
