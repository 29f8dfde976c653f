"""Effects: acts on the outside world that happen once, whatever dies.

The intent is durable before the act, the outcome after it. An intent without an outcome is
*unknown*: the other side is asked (`reconcile`) before anything is sent again. A second send
is allowed only under the same key, and only where the receiver deduplicates or where no request
of a proven-dead owner can be in flight any more; else the run parks for a person.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ninelives import codec, errors, faults
from ninelives.durable import calls, deadlines, intents, retries
from ninelives.durable.delivery import Delivery
from ninelives.durable.replay import Found, Record
from ninelives.durable.retries import ONCE, Retry
from ninelives.log import events

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Applied:
    """The other side knows the key: the effect has happened, with `result`."""

    result: object = None


@dataclass(frozen=True, slots=True)
class Absent:
    """The other side does not know the key.

    `final`: it never will, unless somebody sends again (no request can still be under way).
    """

    final: bool = False


@dataclass(frozen=True, slots=True)
class CannotTell:
    """The other side gave no usable answer."""

    why: str = ""


Answer: TypeAlias = Applied | Absent | CannotTell


@dataclass(frozen=True, slots=True)
class Effect:
    """An effect as the handler asks for it; `key` is the full idempotency key."""

    function: Callable[..., object]
    args: tuple[object, ...]
    key: str
    reconcile: Callable[[str], object] | None = None
    idempotent_downstream: bool = False
    deadline_seconds: float | None = None
    retry: Retry = ONCE
    kwargs: Mapping[str, object] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return calls.name_of(self.function)


async def perform(delivery: Delivery, effect: Effect) -> object:
    """Carry out an effect, adopt what is known of it, or park the run.

    Raises:
        EffectRefused: the other side said no; recorded, never sent again.
        EffectFailed: it was sent, and its result cannot be used, or its outcome was not learned.
        KeyConflict: the key belongs to another effect; nothing was sent.
        Unencodable: the arguments cannot be recorded; nothing was sent.
        Parked: the outcome is unknown and nobody can be asked.
    """
    act = _act(effect)
    found = intents.recorded(delivery, act)
    if found is None:
        what = f"{_what(effect)}, nothing was sent"
        calls.refuse_misfit(what, effect.function, effect.args, _given(effect, {}))
        place, arguments = await intents.prepare(delivery, act)
        async with delivery.call() as call:
            found, is_new = await intents.offer(
                delivery, act, delivery.placed(place, call), arguments
            )
            if is_new:
                assert found.record is not None
                faults.reach(faults.Boundary.EFFECT_INTENDED)
                return await _dispatch(delivery, effect, found.record)
    return await _known(delivery, effect, found)


def _what(effect: Effect) -> str:
    return f"effect {effect.key!r}"


def _act(effect: Effect) -> intents.Act:
    return intents.Act(_what(effect), effect.key, effect.name, effect.args, effect.kwargs)


async def _known(delivery: Delivery, effect: Effect, found: Found) -> object:
    """Answer from the record, or settle what the record leaves open."""
    assert found.record is not None
    outcome = found.record.outcome
    match outcome:
        case events.EffectEnded(outcome="confirmed"):
            delivery.note(found, "effect")
            return delivery.journal.decode(outcome.result)
        case events.EffectEnded(outcome="refused"):
            delivery.note(found, "effect")
            raise errors.EffectRefused(outcome.message)
        case events.EffectEnded(outcome="failed"):
            delivery.note(found, "effect")
            raise _unusable(effect.key, outcome)
        case _:
            async with delivery.call():
                return await _settle(delivery, effect, found.record)


def _unusable(key: str, outcome: events.EffectEnded) -> errors.EffectFailed:
    return errors.EffectFailed(key, "done, result unusable", outcome.error, outcome.message)


async def _settle(delivery: Delivery, effect: Effect, record: Record) -> object:
    """Ask the other side what became of the key; send again only where that is safe.

    What a person has found out stands above what `reconcile` would say.
    """
    if record.resolved is not None:
        return await _obey(delivery, effect, record, record.resolved)
    answer = await _ask(effect)
    if isinstance(answer, Applied):
        return await _adopt(delivery, effect, record, answer)
    why = _may_send_again(delivery, effect, record, answer)
    if not why:
        raise delivery.park("OutcomeUnknown", _unknown(effect, answer))
    if record.retry is not None:
        await delivery.wait_until(record.retry.due_at)
    return await _resend(delivery, effect, record, why)


async def _resend(delivery: Delivery, effect: Effect, record: Record, why: str) -> object:
    # The append is the ownership check just before the dispatch.
    await delivery.append(
        events.EffectResent(place=record.place, key=effect.key, intent=record.seq, why=why)
    )
    return await _dispatch(delivery, effect, record)


async def _obey(
    delivery: Delivery, effect: Effect, record: Record, resolved: events.EffectResolved
) -> object:
    if resolved.answer == "applied":
        ended = events.EffectEnded(
            place=record.place,
            key=effect.key,
            intent=record.seq,
            outcome="confirmed",
            by="person",
            result=resolved.result,
        )
        await _end(delivery, record, ended)
        return delivery.journal.decode(resolved.result)
    record.resolved = None  # it holds for what was known then, not for this sending
    why = f"{resolved.by or 'a person'} says that it has not happened"
    return await _resend(delivery, effect, record, why)


async def _ask(effect: Effect) -> Answer:
    if effect.reconcile is None:
        return CannotTell("it has no reconcile")
    try:
        with calls.nested(f"reconcile of {effect.key!r}"):
            answer = await calls.invoke(effect.reconcile, (effect.key,), {})
    except Exception as error:  # noqa: BLE001 - whatever it is, nothing was learned
        return CannotTell(f"reconcile raised {type(error).__name__}: {error}")
    faults.reach(faults.Boundary.RECONCILE_ANSWERED)
    if isinstance(answer, Applied | Absent | CannotTell):
        return answer
    return CannotTell(f"reconcile returned {answer!r} instead of Applied, Absent or CannotTell")


async def _adopt(delivery: Delivery, effect: Effect, record: Record, answer: Applied) -> object:
    try:
        raw = delivery.journal.encode(answer.result, f"reconciled result of {effect.key!r}")
    except errors.Unencodable as error:
        raise delivery.park("OutcomeUnknown", f"{_what(effect)} happened, but {error}") from error
    ended = events.EffectEnded(
        place=record.place,
        key=effect.key,
        intent=record.seq,
        outcome="confirmed",
        by="reconcile",
        result=raw,
    )
    await _end(delivery, record, ended)
    return delivery.journal.decode(raw)


def _may_send_again(
    delivery: Delivery, effect: Effect, record: Record, answer: Absent | CannotTell
) -> str:
    """Why a second send under the same key does no harm; empty = it might."""
    if effect.idempotent_downstream:
        return "the receiver deduplicates by key"
    ours = record.incarnation == delivery.journal.owner.incarnation
    if isinstance(answer, Absent) and answer.final and (ours or delivery.journal.owner_dead):
        return "the receiver does not know the key, and no request can be in flight"
    return ""


def _unknown(effect: Effect, answer: Absent | CannotTell) -> str:
    asked = (
        answer.why or "the other side cannot tell"
        if isinstance(answer, CannotTell)
        else "the other side does not know the key yet, but a request may still be in flight"
    )
    return (
        f"effect {effect.name} with key {effect.key!r} was begun and its outcome is unknown: "
        f"{asked}. Find out whether it happened before anything is sent again"
    )


async def _dispatch(delivery: Delivery, effect: Effect, record: Record) -> object:
    """Call the function with the recorded arguments, and record what came of it."""
    assert record.intent is not None
    args, kwargs = codec.decode_arguments(record.intent.arguments, delivery.journal.registry)
    given = _given(effect, kwargs)
    delivery.journal.dispatched.add(effect.key)
    faults.act("effect", effect.key)
    with calls.nested(_what(effect)):
        work = asyncio.ensure_future(calls.invoke(effect.function, args, given))
    try:
        result = await deadlines.within(asyncio.shield(work), effect.deadline_seconds)
    except deadlines.Expired as expired:
        await _end(delivery, record, _ended(record, "unknown", expired))
        await _abandon(delivery, effect, record, work)
        return await _after_deadline(delivery, effect, record, expired)
    except errors.EffectRefused as refused:
        ended = _ended(record, "refused", refused)
        await _end(delivery, record, ended)
        raise
    except asyncio.CancelledError as cancelled:
        await _end(delivery, record, _ended(record, "unknown", cancelled))
        await _abandon(delivery, effect, record, work)
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, the act may have happened
        await _end(delivery, record, _ended(record, "unknown", error))
        return await _after_error(delivery, effect, record, error)
    finally:
        delivery.journal.dispatched.discard(effect.key)
    faults.reach(faults.Boundary.EFFECT_DONE)
    return await _confirm(delivery, effect, record, result)


async def _confirm(delivery: Delivery, effect: Effect, record: Record, result: object) -> object:
    ended = _confirmation(delivery, effect, record, result)
    await _end(delivery, record, ended)
    if ended.outcome == "failed":
        raise _unusable(effect.key, ended)
    faults.reach(faults.Boundary.EFFECT_RECORDED)
    return delivery.journal.decode(ended.result)


def _confirmation(
    delivery: Delivery, effect: Effect, record: Record, result: object
) -> events.EffectEnded:
    """It has happened: local trouble with its result is never a reason to send again."""
    try:
        raw = delivery.journal.encode(result, f"result of effect {effect.key!r}")
    except errors.Unencodable as error:
        return _ended(record, "failed", error)
    return events.EffectEnded(
        place=record.place, key=effect.key, intent=record.seq, outcome="confirmed", result=raw
    )


async def _after_error(
    delivery: Delivery, effect: Effect, record: Record, error: Exception
) -> object:
    """The function raised: the act may have happened all the same, so ask at once."""
    answer = await _ask(effect)
    if isinstance(answer, Applied):
        return await _adopt(delivery, effect, record, answer)
    failed = errors.EffectFailed(effect.key, "unknown", type(error).__name__, str(error))
    why = _may_send_again(delivery, effect, record, answer)
    if not why:
        raise delivery.park("OutcomeUnknown", f"{failed}. {_unknown(effect, answer)}") from error
    made = 1 if record.retry is None else record.retry.attempts + 1
    if not effect.retry.admits(error, made):
        raise failed from error  # the run fails; `resume` may send again under the same key
    record.retry = await retries.schedule(
        delivery, "effect", record.place, effect.retry, made, error
    )
    await delivery.wait_until(record.retry.due_at)
    return await _resend(delivery, effect, record, why)


async def _after_deadline(
    delivery: Delivery, effect: Effect, record: Record, expired: deadlines.Expired
) -> object:
    """A deadline is no failure: ask what became of it, and send nothing before that is known."""
    answer = await _ask(effect)
    known = record.outcome
    if isinstance(known, events.EffectEnded) and known.outcome != "unknown":
        return await _known(delivery, effect, Found(record.place, record))  # it came late
    if isinstance(answer, Applied):
        return await _adopt(delivery, effect, record, answer)
    raise delivery.park("DeadlineExceeded", f"{expired}. {_unknown(effect, answer)}")


async def _abandon(
    delivery: Delivery, effect: Effect, record: Record, work: asyncio.Future[object]
) -> None:
    """Stop waiting for an effect. A coroutine is cancelled; a thread goes on by itself, and its
    outcome is recorded when it comes: the run is not let go of before that.
    """
    if calls.is_async(effect.function):
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
    if not work.cancelled():
        late = asyncio.ensure_future(_late(delivery, effect, record, work))
        delivery.journal.late.add(late)
        late.add_done_callback(delivery.journal.late.discard)


async def _late(
    delivery: Delivery, effect: Effect, record: Record, work: asyncio.Future[object]
) -> None:
    """Record the outcome of an effect that nobody waits for any more, if it became known."""
    try:
        result = await work
    except errors.EffectRefused as refused:
        ended = _ended(record, "refused", refused)
    except BaseException as error:  # noqa: BLE001 - it stays unknown
        logger.warning("%s ended after its deadline with %r", _what(effect), error)
        return
    else:
        ended = _confirmation(delivery, effect, record, result)
    known = record.outcome
    if isinstance(known, events.EffectEnded) and known.outcome == "unknown":
        record.outcome = ended
        record.outcome_seq = await delivery.journal.append(
            [ended], superstep=delivery.superstep, executor=delivery.executor
        )


def _ended(record: Record, outcome: str, error: BaseException) -> events.EffectEnded:
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
    """Record an outcome. It holds from here on, so that a late one does not come beside it."""
    record.outcome = ended
    record.outcome_seq = await delivery.append(ended)


def _given(effect: Effect, kwargs: Mapping[str, object]) -> Mapping[str, object]:
    return {**kwargs, "key": effect.key} if _takes_key(effect.function) else kwargs


def _takes_key(function: Callable[..., object]) -> bool:
    try:
        parameter = inspect.signature(function).parameters.get("key")
    except (TypeError, ValueError):
        return False
    return parameter is not None and parameter.kind is not parameter.POSITIONAL_ONLY
