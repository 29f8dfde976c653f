"""Transactions: the user's own SQL, in the user's own database, exactly once.

The intent is durable in the journal before; the row of the key commits together with the user's
SQL. So an intent without an outcome needs no `reconcile` and no person: it is carried out again,
and finds the row if it had happened. Of two owners of a run, the row's key lets one commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from ninelives import codec, errors, faults
from ninelives.durable import calls, intents, retries
from ninelives.durable.databases import Database, Kept, Row, Work
from ninelives.durable.delivery import Delivery
from ninelives.durable.replay import Found, Record
from ninelives.durable.retries import ONCE, Retry
from ninelives.log import events


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transaction as the handler asks for it; `key` is the full key."""

    database: Database
    function: Callable[..., object]
    args: tuple[object, ...]
    key: str
    retry: Retry = ONCE

    @property
    def what(self) -> str:
        return f"transaction {self.key!r}"


async def perform(delivery: Delivery, transaction: Transaction) -> object:
    """Carry out a transaction, or adopt what its database or the journal knows of it.

    Raises:
        TransactionFailed: its function raised: rolled back, recorded.
        EffectRefused: its function said no: rolled back, recorded, final.
        KeyConflict: the key belongs to something else.
        Unencodable: the arguments cannot be recorded; nothing was done.
        Parked: it may have committed, and its database cannot be asked.
    """
    act = intents.Act(
        transaction.what,
        transaction.key,
        calls.name_of(transaction.function),
        transaction.args,
        database=transaction.database.name,
    )
    found = intents.recorded(delivery, act)
    if found is None:
        what = f"{transaction.what}, nothing was done"
        calls.refuse_misfit(what, transaction.function, (None, *transaction.args), {})
        place, arguments = await intents.prepare(delivery, act)
        async with delivery.call() as call:
            found, is_new = await intents.offer(
                delivery, act, delivery.placed(place, call), arguments
            )
            assert found.record is not None
            if is_new:
                faults.reach(faults.Boundary.TRANSACTION_INTENDED)
                return await _to_its_end(delivery, transaction, found.record)
    return await _known(delivery, transaction, found)


async def _known(delivery: Delivery, transaction: Transaction, found: Found) -> object:
    """Answer from the record, or let the database say what the record leaves open."""
    assert found.record is not None
    match found.record.outcome:
        case events.EffectEnded(outcome="confirmed", result=result):
            delivery.note(found, "effect")
            return delivery.journal.decode(result)
        case events.EffectEnded(outcome="refused", message=message):
            delivery.note(found, "effect")
            raise errors.EffectRefused(message)
        case events.TransactionRolledBack() as undone if not delivery.replay.retries(found.record):
            delivery.note(found, "effect")
            raise errors.TransactionFailed(transaction.key, undone.error, undone.message)
        case _:
            async with delivery.call():
                return await _to_its_end(delivery, transaction, found.record)


async def _to_its_end(delivery: Delivery, transaction: Transaction, record: Record) -> object:
    """What was begun is seen to its end: a thread that holds a transaction cannot be stopped."""
    delivery.journal.dispatched.add(transaction.key)
    work = asyncio.ensure_future(_carry_out(delivery, transaction, record))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.gather(work, return_exceptions=True)
        raise
    finally:
        delivery.journal.dispatched.discard(transaction.key)


async def _carry_out(delivery: Delivery, transaction: Transaction, record: Record) -> object:
    row, work = await _row(delivery, record), _work(delivery, transaction, record)

    async def attempt() -> Kept:
        with calls.nested(transaction.what):
            return await transaction.database.transact(row, work)

    try:
        kept = await retries.attempts(
            delivery, "effect", record.place, record, transaction.retry, attempt
        )
    except errors.TransactionUnknown as error:
        raise await _park(delivery, transaction, record, error) from error
    except errors.StaleEpoch as error:
        raise delivery.unwind(errors.OwnershipLost(str(error))) from error
    except Exception as error:
        barred = await _bar(delivery, transaction, record, row)
        if barred is None:
            raise await _failed(delivery, transaction, record, error) from error
        kept = barred
    return await _confirm(delivery, transaction, record, row, kept)


async def _row(delivery: Delivery, record: Record) -> Row:
    """The row is made of the record, so that a renamed function or a reworded argument at the
    same place finds what its predecessor has left.
    """
    assert record.intent is not None
    journal = delivery.journal
    return Row(
        store=await journal.store.identity(),
        key=record.intent.key,
        fingerprint=f"{record.place.name} {record.place.fingerprint}",
        epoch=journal.owner.epoch,
        at=journal.now(),
    )


def _work(delivery: Delivery, transaction: Transaction, record: Record) -> Work:
    assert record.intent is not None
    args, _ = codec.decode_arguments(record.intent.arguments, delivery.journal.registry)

    def encode(result: object) -> bytes:
        return bytes(delivery.journal.encode(result, f"result of {transaction.what}"))

    return Work(transaction.function, tuple(args), encode)


async def _bar(
    delivery: Delivery, transaction: Transaction, record: Record, row: Row
) -> Kept | None:
    """Before a rollback is recorded, no older owner may commit any more, or it has.

    An owner that was taken over while it lived may be at the same transaction, and would make the
    record of the rollback untrue.
    """
    if delivery.journal.owner.incarnation == 1:
        return None
    try:
        return await transaction.database.bar(row)
    except Exception as error:
        raise await _park(delivery, transaction, record, error) from error


async def _failed(
    delivery: Delivery, transaction: Transaction, record: Record, error: Exception
) -> Exception:
    """Record that it was rolled back; returns what the handler is told."""
    if isinstance(error, errors.KeyConflict):
        return error
    if isinstance(error, errors.EffectRefused):
        await _end(delivery, record, _ended(record, "refused", error))
        return error
    name, message = type(error).__name__, str(error)
    record.outcome = events.TransactionRolledBack(
        place=record.place,
        key=transaction.key,
        intent=record.seq,
        error=name,
        message=message,
        attempt=delivery.replay.attempt,
    )
    record.outcome_seq = await delivery.append(record.outcome)
    return errors.TransactionFailed(transaction.key, name, message)


async def _park(
    delivery: Delivery, transaction: Transaction, record: Record, error: Exception
) -> errors.Interrupt:
    await _end(delivery, record, _ended(record, "unknown", error))
    reason = (
        f"{transaction.what}: {error}. Nobody need find out: resume when "
        f"{transaction.database.name} can be asked, and it is adopted or carried out"
    )
    return delivery.park("OutcomeUnknown", reason)


async def _confirm(
    delivery: Delivery, transaction: Transaction, record: Record, row: Row, kept: Kept
) -> object:
    if kept.fingerprint != row.fingerprint:
        run = delivery.journal.run
        raise errors.KeyConflict(transaction.key, run, kept.fingerprint, row.fingerprint)
    faults.reach(faults.Boundary.TRANSACTION_COMMITTED)
    ended = events.EffectEnded(
        place=record.place,
        key=transaction.key,
        intent=record.seq,
        outcome="confirmed",
        by="answer" if kept.is_new else "reconcile",
        result=msgspec.Raw(kept.result),
    )
    await _end(delivery, record, ended)
    faults.reach(faults.Boundary.TRANSACTION_RECORDED)
    return delivery.journal.decode(ended.result)


def _ended(record: Record, outcome: str, error: Exception) -> events.EffectEnded:
    assert record.intent is not None
    return events.EffectEnded(
        place=record.place,
        key=record.intent.key,
        intent=record.seq,
        outcome=outcome,  # type: ignore[arg-type]
        error=type(error).__name__,
        message=str(error),
    )


async def _end(delivery: Delivery, record: Record, ended: events.EffectEnded) -> None:
    record.outcome = ended
    record.outcome_seq = await delivery.append(ended)
