"""Model calls through the ledger: reserve, call under the deadline, record reply and settle.

A reply is recorded together with its settlement, and never paid for again. A missing usage
report keeps the reply, leaves the hold unknown and counted, and halts the budget.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata

import msgspec
from msgspec.structs import astuple

from ninelives import errors, faults
from ninelives.durable import calls, deadlines, ledger, retries
from ninelives.durable.delivery import Call, Delivery
from ninelives.durable.replay import Found
from ninelives.durable.retries import ONCE, Retry
from ninelives.durable.usage import Model, ModelReply, ModelRequest, Usage
from ninelives.log import events
from ninelives.store.base import Appended, BudgetRefused

__all__ = ["Model", "ModelCall", "ModelReply", "ModelRequest", "Usage", "ask", "resolve"]

BUDGET = "run"


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A model call as the handler asks for it."""

    model: Model
    request: ModelRequest
    reserve_tokens: int
    deadline_seconds: float | None
    retry: Retry = ONCE


def resolve(name: str, models: Mapping[str, Model] | None = None) -> Model:
    """Find the model behind a string: given by name, or by an entry point of its prefix.

    Raises:
        ModelUnavailable: nobody offers it; says what to install.
    """
    if models and name in models:
        return models[name]
    offers = metadata.entry_points(group="ninelives.models")
    prefix = name.partition(":")[0]
    for wanted in (prefix, "default"):
        for offer in offers:
            if offer.name == wanted:
                model: Model = offer.load()(name)
                return model
    raise errors.ModelUnavailable(name, "no installed package offers it; install ninelives[agents]")


async def ask(delivery: Delivery, call: ModelCall) -> str:
    """Ask a model, or return the recorded reply.

    Raises:
        ModelRefused: the provider refused for certain; its hold is released.
        Parked: the budget admits no call, the deadline passed, the answer was lost, or the
            usage was not reported (then the reply is kept).
    """
    fingerprint = calls.fingerprint(delivery, "model call", astuple(call.request), {})
    found = delivery.find("model", f"model {call.model.name}", fingerprint)
    if found.record is not None:
        match found.record.outcome:
            case events.ModelReplied(reply=reply):
                delivery.note(found, "model")
                return msgspec.json.decode(reply, type=ModelReply).text
            case events.ModelUnsettled() as end if not delivery.replay.retries(found.record):
                delivery.note(found, "model")
                raise _unsettled(delivery, call, end)
            case _:
                pass  # a request of a dead process, or the failure that ended the last attempt
    else:
        await delivery.require_no_leftovers(f"model {call.model.name!r}", "model")
    return await _request(delivery, call, found)


def _unsettled(delivery: Delivery, call: ModelCall, end: events.ModelUnsettled) -> BaseException:
    if end.outcome == "failed":
        return errors.ModelRefused(call.model.name, end.message)
    return delivery.park(end.error, end.message)


async def _request(delivery: Delivery, call: ModelCall, found: Found) -> str:
    """Make attempts, each with a hold of its own, until one is answered."""
    async with delivery.call() as under_way:
        try:
            return await retries.attempts(
                delivery,
                "model",
                found.place,
                found.record,
                call.retry,
                lambda: _attempt(delivery, call, found.place, under_way),
            )
        except Unanswered as unanswered:
            raise delivery.park(unanswered.code, unanswered.reason) from unanswered.__cause__


class Unanswered(Exception):  # noqa: N818 - a condition that a policy may retry, never a user's
    """A request without an answer: whether it was billed is unknown."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(code, reason)
        self.code, self.reason = code, reason

    def __str__(self) -> str:
        return self.reason


async def _attempt(
    delivery: Delivery, call: ModelCall, place: events.Place, under_way: Call
) -> str:
    place = delivery.placed(place, under_way)
    requested = events.ModelRequested(
        place=place, model=call.model.name, reserved_tokens=call.reserve_tokens
    )
    result = await delivery.offer(requested)
    if isinstance(result, BudgetRefused):
        raise delivery.park(result.code, result.reason)
    assert isinstance(result, Appended), result
    hold = result.first
    faults.reach(faults.Boundary.MODEL_REQUESTED)
    reply = await _answer(delivery, call, place, hold, under_way)
    faults.reach(faults.Boundary.MODEL_ANSWERED)
    return await _record(delivery, call, place, hold, reply, under_way)


async def _answer(
    delivery: Delivery, call: ModelCall, place: events.Place, hold: int, under_way: Call
) -> ModelReply:
    """Await the provider; what ends the wait otherwise is recorded before it is raised."""

    async def unsettled(outcome: str, error: str, message: str) -> None:
        await delivery.append(
            events.ModelUnsettled(
                place=delivery.placed(place, under_way),
                hold=hold,
                outcome=outcome,  # type: ignore[arg-type]
                error=error,
                message=message,
                attempt=delivery.replay.attempt,
            )
        )

    faults.act("model", f"{delivery.journal.run}:{hold}")
    try:
        with calls.nested("a model call"):
            return await deadlines.within(call.model.request(call.request), call.deadline_seconds)
    except deadlines.Expired as expired:
        reason = (
            f"model {call.model.name!r}: {expired}; whether it was billed is unknown, its "
            f"{call.reserve_tokens} reserved tokens stay counted"
        )
        await unsettled("unknown", "DeadlineExceeded", reason)
        raise Unanswered("DeadlineExceeded", reason) from None
    except errors.ModelRefused as refused:
        await unsettled("failed", "ModelRefused", refused.message)
        raise
    except asyncio.CancelledError:
        await unsettled("unknown", "Cancelled", "the caller cancelled the request")
        raise
    except Exception as error:
        reason = (
            f"model {call.model.name!r}: the answer was lost ({type(error).__name__}: {error}); "
            f"its {call.reserve_tokens} reserved tokens stay counted"
        )
        await unsettled("unknown", "OutcomeUnknown", reason)
        raise Unanswered("OutcomeUnknown", reason) from error


async def _record(
    delivery: Delivery,
    call: ModelCall,
    place: events.Place,
    hold: int,
    reply: ModelReply,
    under_way: Call,
) -> str:
    settlement = ledger.settle(reply.usage, text=reply.text)
    encoded = delivery.journal.sized(msgspec.json.encode(reply), "the model's reply")
    facts: list[events.Fact] = [
        events.ModelReplied(
            place=delivery.placed(place, under_way),
            hold=hold,
            reply=encoded,
            usage=msgspec.Raw(msgspec.json.encode(reply.usage)),
            hold_status=settlement.status,
            tokens=settlement.tokens,
        )
    ]
    reason = f"model {call.model.name!r}: {settlement.missing}; its hold stays counted"
    if settlement.missing:
        facts.append(events.BudgetHalted(budget=BUDGET, reason=reason))
    elif delivery.coarse:
        delivery.at_commit.extend(facts)
        return reply.text
    await delivery.append(*facts)
    faults.reach(faults.Boundary.MODEL_RECORDED)
    if settlement.missing:
        raise delivery.park("BudgetHalted", reason)
    return reply.text
