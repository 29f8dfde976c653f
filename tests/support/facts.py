"""Facts for tests of stores, with the parts that a test does not care about filled in."""

from __future__ import annotations

import os

import msgspec

from ninelives.ids import RunId
from ninelives.log import events
from ninelives.log.events import Draft, Fact, Place
from ninelives.store.base import Admission, Appended, Owner, Store
from ninelives.store.budgets import RunBudget, Spending

ONE = msgspec.Raw(b"1")


def draft(fact: Fact, *, superstep: int = 1, executor: str = "worker") -> Draft:
    return Draft(fact=fact, at=1, superstep=superstep, executor=executor)


def started(cause: str = "start") -> Draft:
    return draft(
        events.IncarnationStarted(
            cause=cause,  # type: ignore[arg-type]
            epoch=1,
            pid=os.getpid(),
            host="here",
            process_started_at=0,
            code_version="v",
            attempt=1,
        ),
        superstep=0,
        executor="",
    )


def admission(
    run: str = "r", *, tokens_max: int | None = None, budget: RunBudget | None = None
) -> Admission:
    admitted = events.RunAdmitted(
        workflow="w",
        input=ONE,
        input_fingerprint="f",
        graph=msgspec.Raw(b"{}"),
        settings=msgspec.Raw(b"{}"),
        target=msgspec.Raw(b"null"),
    )
    return Admission(
        RunId(run),
        "w",
        "f",
        budget or RunBudget(tokens_max=tokens_max),
        draft(admitted, superstep=0, executor=""),
        started(),
    )


async def admit(
    store: Store,
    run: str = "r",
    *,
    tokens_max: int | None = None,
    budget: RunBudget | None = None,
) -> Owner:
    owner = await store.admit(admission(run, tokens_max=tokens_max, budget=budget))
    assert isinstance(owner, Owner)
    return owner


async def spent(store: Store, run: str = "r") -> Spending:
    """What counts against a run's own budget."""
    return (await store.budgets.show(f"run:{run}", at=0)).total


async def append(store: Store, owner: Owner, *facts: Fact) -> int:
    result = await store.append(owner, [draft(fact) for fact in facts])
    assert isinstance(result, Appended), result
    return result.first


def place(name: str = "f", ordinal: int = 0) -> Place:
    return Place(delivery=1, name=name, ordinal=ordinal, fingerprint="x")


def requested(tokens: int, microdollars: int | None = None) -> events.ModelRequested:
    return events.ModelRequested(
        place=place("model m"),
        model="m",
        reserved_tokens=tokens,
        reserved_microdollars=microdollars,
    )


def replied(
    hold: int, *, status: str = "settled", tokens: int = 30, microdollars: int | None = None
) -> events.ModelReplied:
    return events.ModelReplied(
        place=place("model m"),
        hold=hold,
        reply=ONE,
        usage=ONE,
        hold_status=status,  # type: ignore[arg-type]
        tokens=tokens,
        microdollars=microdollars,
    )


def intended(key: str) -> events.EffectIntended:
    return events.EffectIntended(place=place("notify"), key=key, arguments=ONE)
