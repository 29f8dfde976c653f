"""Model calls through the ledger: reserve, call under the deadline, record reply and settle.

A reply is recorded together with its settlement, and never paid for again. A missing usage
report keeps the reply, leaves the hold unknown and counted, and halts the run's budget, unless
the provider can be asked for it, or the run's settings want the reservation counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import cast

import msgspec
from msgspec.structs import astuple, replace

from ninelives import errors, faults, ids
from ninelives.durable import calls, deadlines, evidence, ledger, prices, retries
from ninelives.durable.delivery import Call, Delivery
from ninelives.durable.prices import Cost, Price
from ninelives.durable.replay import Found
from ninelives.durable.retries import ONCE, Retry
from ninelives.durable.usage import Model, ModelReply, ModelRequest, Streams, Usage, folded
from ninelives.log import events
from ninelives.store.base import Appended, BudgetRefused

__all__ = ["Model", "ModelCall", "ModelReply", "ModelRequest", "Usage", "ask", "resolve"]


@dataclass(frozen=True, slots=True)
class Terms:
    """On what terms the models of one run are asked."""

    models: Mapping[str, Model] = field(default_factory=dict[str, Model])
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])
    count_reserved: bool = False


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A model call as the handler asks for it. `cost` None: nobody knows the price."""

    model: Model
    request: ModelRequest
    reserve_tokens: int
    deadline_seconds: float | None
    retry: Retry = ONCE
    cost: Cost | None = None
    count_reserved: bool = False

    @property
    def reserve_microdollars(self) -> int | None:
        """The most that the reserved tokens can cost."""
        if self.cost is None:
            return None
        return prices.worst_case(self.cost, self.reserve_tokens, self.request.max_output_tokens)


def prepare(
    terms: Terms,
    model: str | Model,
    request: ModelRequest,
    *,
    reserve_tokens: int,
    deadline_seconds: float | None,
    retry: Retry,
) -> ModelCall:
    """Find the model, and what its calls cost.

    Raises:
        ModelUnavailable: nobody offers it.
        ValueError: the reservation is no positive number of tokens.
    """
    reserved = cast("object", reserve_tokens)
    if not isinstance(reserved, int) or isinstance(reserved, bool) or reserved < 1:
        message = f"reserve_tokens={reserved!r}: reserve at least 1 token, the most it may take"
        raise ValueError(message)
    found = resolve(model, terms.models) if isinstance(model, str) else model
    return ModelCall(
        model=found,
        request=request,
        reserve_tokens=reserve_tokens,
        deadline_seconds=deadline_seconds,
        retry=retry,
        cost=prices.cost_of(found.name, found, terms.prices),
        count_reserved=terms.count_reserved,
    )


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
        place=place,
        model=call.model.name,
        reserved_tokens=call.reserve_tokens,
        reserved_microdollars=call.reserve_microdollars,
    )
    result = await delivery.offer(requested)
    if isinstance(result, BudgetRefused):
        raise delivery.park(result.code, result.reason)
    assert isinstance(result, Appended), result
    hold = result.first
    faults.reach(faults.Boundary.MODEL_REQUESTED)
    reply = await _answer(delivery, call, place, hold, under_way)
    tokens = ledger.settle(reply.usage, text=reply.text).tokens
    faults.act("answer", f"{delivery.journal.run}:{hold}:{tokens}")
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
            return _whole(await deadlines.within(_asked(call), call.deadline_seconds))
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


def _asked(call: ModelCall) -> Awaitable[ModelReply]:
    if isinstance(call.model, Streams):
        return folded(call.model, call.request)
    return call.model.request(call.request)


def _whole(reply: object) -> ModelReply:
    """Tell an answer from what cannot be one, while the hold can still be left unknown."""
    if isinstance(reply, ModelReply) and isinstance(cast("object", reply.text), str):
        return reply
    message = f"the model gave {reply!r:.200}, which is no ModelReply with a text"
    raise TypeError(message)


async def _record(
    delivery: Delivery,
    call: ModelCall,
    place: events.Place,
    hold: int,
    reply: ModelReply,
    under_way: Call,
) -> str:
    settlement = ledger.settle(reply.usage, text=reply.text)
    missing = settlement.missing
    reply = replace(reply, usage=ledger.counted(reply.usage))
    encoded = delivery.journal.sized(msgspec.json.encode(reply), "the model's reply")
    facts: list[events.Fact] = [
        events.ModelReplied(
            place=delivery.placed(place, under_way),
            hold=hold,
            reply=encoded,
            usage=msgspec.Raw(msgspec.json.encode(reply.usage)),
            hold_status=settlement.status,
            tokens=settlement.tokens,
            microdollars=_cost(call, settlement),
            counted=bool(missing) and call.count_reserved,
        )
    ]
    reason = f"model {call.model.name!r}: {missing}; its hold stays counted"
    halts = bool(missing) and not call.count_reserved
    if halts:
        budget = ids.run_budget(delivery.journal.run)
        facts.append(events.BudgetHalted(budget=budget, reason=reason))
    elif delivery.coarse:
        delivery.at_commit.extend(facts)
        return reply.text
    await delivery.append(*facts)
    faults.reach(faults.Boundary.MODEL_RECORDED)
    if halts and not await _settled_by_evidence(delivery, call, hold, reply):
        raise delivery.park("BudgetHalted", reason)
    return reply.text


def _cost(call: ModelCall, settlement: ledger.Settlement) -> int | None:
    """What a settled call cost; None leaves it at what was reserved."""
    if call.cost is None or settlement.billed is None:
        return None
    return call.cost(settlement.billed)


async def _settled_by_evidence(
    delivery: Delivery, call: ModelCall, hold: int, reply: ModelReply
) -> bool:
    """Ask the provider for the report that is missing; whether the halt is gone again."""
    journal = delivery.journal
    question = evidence.Question(
        run=journal.run,
        hold=hold,
        superstep=delivery.superstep,
        reply=reply,
        model=call.model,
        cost=call.cost,
    )
    return await evidence.clear(journal.store, [question], now=journal.now)
