"""Rows of the SQLite schema as the objects that they stand for.

The tables are STRICT: their columns have the types that the schema says, and nothing here
checks that again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import apsw
import msgspec

from ninelives import errors
from ninelives.ids import RunId, Seq
from ninelives.log import events
from ninelives.log.events import Event
from ninelives.store import queries
from ninelives.store.base import Hold, Incarnation, KeyTaken, OpenEffect, RunRow

Row: TypeAlias = tuple[Any, ...]
Values: TypeAlias = Sequence[object] | Mapping[str, object]

SHIFT = 32
UNITS = ("tokens", "microdollars")
_SEQ = (1 << SHIFT) - 1
_SQL = queries.load("sqlite")
_DECODERS = {kind: msgspec.json.Decoder(fact) for kind, fact in events.KINDS.items()}


def row_id(run: int, seq: int) -> int:
    """The key under which a run's event lies: all events of a run are neighbours."""
    return run << SHIFT | seq


def span(run: int, after: int) -> tuple[int, int]:
    """The keys between which a run's events behind `after` lie, both ends excluded."""
    return row_id(run, after), row_id(run + 1, 0)


def fetch(connection: apsw.Connection, name: str, values: Values = ()) -> list[Row]:
    """Carry out a named statement to its end and return its rows."""
    return connection.execute(_SQL[name], values).fetchall()


def one(connection: apsw.Connection, name: str, values: Values = ()) -> Row | None:
    """The first row of a named statement."""
    found = fetch(connection, name, values)
    return found[0] if found else None


def run(found: Row, *, alive: bool) -> RunRow:
    """A run; `alive` is asked of the operating system, not of the row."""
    number, ident, workflow, fingerprint, state, code, reason, epoch, incarnation = found[:9]
    attempt, _owner, deaths, seq, superstep, committed_seq, admitted_at, updated_at = found[9:]
    return RunRow(
        id=ident,
        number=number,
        workflow=workflow,
        input_fingerprint=fingerprint,
        state=state,
        code=code,
        reason=reason,
        epoch=epoch,
        incarnation=incarnation,
        attempt=attempt,
        alive=alive,
        deaths=deaths,
        seq=seq,
        superstep=superstep,
        committed_seq=committed_seq,
        admitted_at=admitted_at,
        updated_at=updated_at,
    )


def owner(found: Row) -> str:
    """The owner's token in a run's row; empty if nobody owns it."""
    return str(found[10])


def died(found: Row, *, alive: bool) -> bool:
    """Whether the last owner ended without a word."""
    return bool(owner(found)) and not alive


def key_taken(connection: apsw.Connection, key: str) -> KeyTaken | None:
    """Who uses an idempotency key: effects and outbox messages share one namespace."""
    found = one(connection, "key_of", {"key": key})
    if found is None:
        return None
    run, seq, ended, state, other = found
    return KeyTaken(RunId(run), Seq(seq), Seq(ended), state, other)


def open_effects(connection: apsw.Connection, run: RunId) -> list[OpenEffect]:
    """A run's effects of unknown outcome."""
    return [OpenEffect(*found) for found in fetch(connection, "effects_open", {"run": run})]


def incarnations(connection: apsw.Connection, number: int) -> dict[int, Incarnation]:
    """A run's owners by number."""
    found = fetch(connection, "incarnations_of", (number,))
    return {each[0]: Incarnation(*each) for each in found}


def held(connection: apsw.Connection, number: int) -> tuple[Hold, ...]:
    """A run's holds that have not ended."""
    return tuple(
        Hold(Seq(ident & _SEQ), tokens, executor, superstep)
        for ident, tokens, executor, superstep in fetch(connection, "holds_held", span(number, 0))
    )


def event(row: RunRow, found: Row, *, pid: int, url: str) -> Event:
    """A journal's row with its fact decoded.

    Raises:
        StoreFailed: the fact is damaged, or of a kind that this version does not know.
    """
    ident, kind, at, superstep, executor, incarnation, data = found
    try:
        fact = _DECODERS[kind].decode(data)
    except (KeyError, msgspec.MsgspecError) as error:
        why = f"event {ident & _SEQ} of run {row.id!r} cannot be read ({error}); restore a backup"
        raise errors.StoreFailed(url, why) from error
    return Event(
        run=row.id,
        seq=Seq(ident & _SEQ),
        kind=kind,
        at=at,
        superstep=superstep,
        executor=executor,
        incarnation=incarnation,
        pid=pid,
        fact=fact,
    )
