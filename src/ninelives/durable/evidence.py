"""Settles calls of unknown usage by asking the provider for the answers that it keeps.

What is found is recorded as evidence, and a halt that nothing unknown stands behind any more
clears itself. Nothing here needs ownership: a person's command asks in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from ninelives import errors, ids
from ninelives.clock import Now
from ninelives.durable import deadlines, ledger, prices
from ninelives.durable.prices import Cost, Price
from ninelives.durable.usage import Model, ModelReply, Remembers, Usage
from ninelives.ids import RunId
from ninelives.log import events
from ninelives.log.events import Draft, Fact
from ninelives.store.base import Store
from ninelives.store.budgets import OpenHold

Find: TypeAlias = Callable[[str], Model | None]
ASK_SECONDS = 15.0
HOLDS_MAX = 1000
BY = "the provider's record"


@dataclass(frozen=True, slots=True)
class Question:
    """A reply whose usage is missing, and whom to ask for it."""

    run: RunId
    hold: int
    superstep: int
    reply: ModelReply
    model: Model
    cost: Cost | None


async def clear(store: Store, questions: Sequence[Question], *, now: Now) -> bool:
    """Ask for each missing report; whether the run's budget admits calls again.

    The questions are one run's. A crash in between leaves what was settled settled.
    """
    settled = [await _settle(store, each, now) for each in questions]
    if not questions or not any(settled):
        return False
    run, superstep = questions[0].run, questions[0].superstep
    budget = ids.run_budget(run)
    waiting = await _unreported(store, run)
    if any(each.ended for each in waiting):
        return False
    why = "every report that was missing has been found"
    cleared = events.HaltCleared(budget=budget, by=BY, why=why)
    try:
        await store.act(run, [_draft(cleared, superstep, now)])
    except errors.RunEnded:
        return False
    return True


async def questions(
    store: Store, run: RunId, find: Find, known: Mapping[str, Price]
) -> list[Question]:
    """What can be asked of a run's unknown calls: their replies are recorded, with an id.

    `find` gives the model behind a recorded name, if this process knows it.
    """
    found: list[Question] = []
    for hold in await _unreported(store, run):
        if not hold.ended:
            continue
        (event,) = await store.events(run, after=hold.ended - 1, limit=1)
        if not isinstance(event.fact, events.ModelReplied):
            continue
        reply = msgspec.json.decode(event.fact.reply, type=ModelReply)
        model = find(hold.model)
        if model is None or not reply.response_id:
            continue
        cost = prices.cost_of(model.name, model, known)
        found.append(Question(run, hold.seq, hold.superstep, reply, model, cost))
    return found


async def _unreported(store: Store, run: RunId) -> list[OpenHold]:
    holds = await store.budgets.open_holds(ids.run_budget(run), limit=HOLDS_MAX)
    return [each for each in holds if each.status == "unknown"]


async def _settle(store: Store, question: Question, now: Now) -> bool:
    usage = await _asked(question)
    settlement = ledger.settle(usage, text=question.reply.text)
    if settlement.billed is None:
        return False
    fact = events.HoldResolved(
        hold=question.hold,
        status="settled",
        tokens=settlement.tokens,
        microdollars=question.cost(settlement.billed) if question.cost else None,
        evidence="provider",
        usage=msgspec.Raw(msgspec.json.encode(usage)),
        by=BY,
        why=f"response {question.reply.response_id}",
    )
    try:
        await store.budgets.resolve(question.run, _draft(fact, question.superstep, now))
    except errors.HoldNotOpen:
        return False  # somebody was faster
    return True


async def _asked(question: Question) -> Usage | None:
    """The provider's answer; whatever goes wrong leaves the hold as it is: unknown and counted."""
    model, ident = question.model, question.reply.response_id
    if not ident or not isinstance(model, Remembers):
        return None
    try:
        return await deadlines.within(model.usage_of(ident), ASK_SECONDS)
    except Exception:  # noqa: BLE001 - a provider that cannot be asked knows nothing
        return None


def _draft(fact: Fact, superstep: int, now: Now) -> Draft:
    return Draft(fact=fact, at=now(), superstep=superstep)
