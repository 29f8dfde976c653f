"""What each fact changes in a SQLite store's views, in the transaction that appends it.

The views (pending messages, state, holds, budgets, keys, a run's status) hold nothing that the
journal does not say; they exist so that recovery and admission need not read it all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import apsw
import msgspec

from ninelives.log import events
from ninelives.log.events import Draft
from ninelives.store import booking, queries, rows
from ninelives.store.base import BudgetRefused, KeyTaken
from ninelives.store.rows import row_id

_SQL = queries.load("sqlite")
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Prepared:
    """A draft that is ready to be written: encoded before the transaction begins."""

    draft: Draft
    kind: str
    data: bytes


def prepare(drafts: Sequence[Draft]) -> list[Prepared]:
    """Encode drafts outside the transaction."""
    kinds = events.KIND_OF
    return [Prepared(draft, kinds[type(draft.fact)], _encode(draft.fact)) for draft in drafts]


def refusal(
    connection: apsw.Connection, run: int, prepared: Sequence[Prepared]
) -> BudgetRefused | KeyTaken | None:
    """Whether a fact may not be written: asked before anything is."""
    for row in prepared:
        match row.draft.fact:
            case events.ModelRequested() as requested:
                refused = booking.refusal(connection, run, requested, row.draft.at)
                if refused is not None:
                    return refused
            case events.EffectIntended(key=key) | events.OutboxQueued(key=key):
                taken = rows.key_taken(connection, key)
                if taken is not None:
                    return taken
            case _:
                pass
    return None


def write(
    connection: apsw.Connection,
    run: int,
    incarnation: int,
    first: int,
    prepared: Sequence[Prepared],
) -> None:
    """Insert the events from seq `first` on and change the views accordingly."""
    connection.executemany(
        _SQL["event_insert"],
        [
            (
                row_id(run, first + index),
                row.kind,
                row.draft.at,
                row.draft.superstep,
                row.draft.executor,
                incarnation,
                row.data,
            )
            for index, row in enumerate(prepared)
        ],
    )
    for index, row in enumerate(prepared):
        _apply(connection, run, first + index, row.draft)


def _apply(connection: apsw.Connection, run: int, seq: int, draft: Draft) -> None:
    match draft.fact:
        case events.Message() | events.RunAdmitted():
            connection.execute(_SQL["pending_insert"], (row_id(run, seq),))
        case events.HandlerFinished(messages=messages):
            for message in messages:
                connection.execute(_SQL["pending_delete"], (row_id(run, message),))
        case events.State() as fact:
            _apply_state(connection, run, seq, fact)
        case events.SuperstepCommitted():
            connection.execute(
                _SQL["run_committed"], {"superstep": draft.superstep, "seq": seq, "id": run}
            )
            connection.execute(_SQL["finished_delete"], (run,))
        case events.EffectIntended(key=key):
            connection.execute(_SQL["effect_insert"], (key, run, seq))
        case events.EffectEnded(key=key, outcome=outcome):
            connection.execute(_SQL["effect_end"], (outcome, seq, key))
        case (
            events.ModelRequested()
            | events.ModelReplied()
            | events.ModelUnsettled()
            | events.BudgetSet()
            | events.BudgetHalted()
            | events.HaltCleared()
            | events.HoldResolved()
        ):
            booking.book(connection, run, seq, draft)
        case (
            events.OutboxQueued()
            | events.OutboxDelivered()
            | events.OutboxDead()
            | events.OutboxRequeued()
        ):
            _apply_outbox(connection, run, seq, draft)
        case _:
            _apply_status(connection, run, draft.fact)


def _apply_state(connection: apsw.Connection, run: int, seq: int, fact: events.State) -> None:
    place = (run, fact.scope, fact.key)
    if fact.change == "append":
        connection.execute(_SQL["appended_insert"], (*place, seq))
        return
    connection.execute(_SQL["appended_delete"], place)
    if fact.change == "set":
        connection.execute(_SQL["state_set"], (*place, seq))
    else:
        connection.execute(_SQL["state_delete"], place)


def _apply_outbox(connection: apsw.Connection, run: int, seq: int, draft: Draft) -> None:
    match draft.fact:
        case events.OutboxQueued(key=key, channel=channel):
            values = (row_id(run, seq), key, channel, draft.at)
            connection.execute(_SQL["outbox_insert"], values)
        case events.OutboxDelivered(queued=queued, attempts=attempts):
            ended = ("delivered", attempts, "", "", row_id(run, queued))
            connection.execute(_SQL["outbox_end"], ended)
        case events.OutboxDead(queued=queued, attempts=attempts, error=error, message=message):
            ended = ("dead", attempts, error, message, row_id(run, queued))
            connection.execute(_SQL["outbox_end"], ended)
        case events.OutboxRequeued(queued=queued):
            connection.execute(_SQL["outbox_requeue"], (draft.at, row_id(run, queued)))
        case _:
            raise AssertionError(draft.fact)


def _apply_status(connection: apsw.Connection, run: int, fact: events.Fact) -> None:
    match fact:
        case events.RunCompleted():
            _set_state(connection, run, "completed")
        case events.HandlerRetried():
            connection.execute(_SQL["run_attempt"], (run,))
        case events.CancelRequested():
            connection.execute(_SQL["run_cancel"], (run,))
        case events.RunCancelled():
            _set_state(connection, run, "cancelled")
        case events.RunFailed(error=error, reason=reason):
            _set_state(connection, run, "failed", error, reason)
        case events.RunParked(code=code, reason=reason):
            _set_state(connection, run, "parked", code, reason)
        case events.IncarnationEnded():
            connection.execute(_SQL["run_release"], (run,))
        case _:
            pass


def _set_state(
    connection: apsw.Connection, run: int, state: str, code: str = "", reason: str = ""
) -> None:
    connection.execute(
        _SQL["run_state"], {"state": state, "code": code, "reason": reason, "id": run}
    )
