"""The intent of an act under a key: durable before the act, one for each key of a store.

Effects and transactions share it, and so they share one space of keys. What becomes of an act
after its intent is theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from ninelives import codec, errors
from ninelives.durable import calls
from ninelives.durable.delivery import Delivery
from ninelives.durable.replay import Found, Record
from ninelives.log import events
from ninelives.log.events import Place
from ninelives.store.base import Appended, KeyTaken


@dataclass(frozen=True, slots=True)
class Act:
    """What is to be done once. `what` names it in errors, `database` is a transaction's."""

    what: str
    key: str
    name: str
    args: tuple[object, ...]
    kwargs: Mapping[str, object] = field(default_factory=dict[str, object])
    database: str = ""


def recorded(delivery: Delivery, act: Act) -> Found | None:
    """Find the act among the records of the delivery.

    Raises:
        KeyConflict: this process has used the key for something else.
    """
    delivery.check()
    record = delivery.replay.effect(act.key)
    if record is None:
        return None
    assert record.intent is not None
    fingerprint = calls.fingerprint(delivery, act.what, act.args, act.kwargs)
    drift = fingerprint != record.place.fingerprint
    if (record.taken and drift) or not _same_sort(record.intent, act):
        recorded_as = _described(record.place, record.intent.database)
        raise _conflict(delivery, act, recorded_as, fingerprint)
    record.taken = True
    return Found(record.place, record, drift)


async def prepare(delivery: Delivery, act: Act) -> tuple[Place, msgspec.Raw]:
    """The place of a new act, and its arguments as they will be recorded.

    Raises:
        Unencodable: the arguments cannot be recorded; nothing was done.
        Parked: the branch holds records that nobody has asked for.
    """
    await delivery.require_no_leftovers(act.what, "effect")
    fingerprint = calls.fingerprint(delivery, act.what, act.args, act.kwargs)
    arguments = delivery.journal.sized(
        codec.encode_arguments(act.args, act.kwargs, delivery.journal.registry),
        f"{act.what}: arguments",
    )
    return delivery.find("effect", act.name, fingerprint).place, arguments


async def offer(
    delivery: Delivery, act: Act, place: Place, arguments: msgspec.Raw
) -> tuple[Found, bool]:
    """Record the intent, or find what is known under its key; says whether it is new.

    Raises:
        KeyConflict: the key belongs to something else.
        EffectFailed: another handler of this run is at it.
    """
    intent = events.EffectIntended(
        place=place, key=act.key, arguments=arguments, database=act.database
    )
    result = await delivery.offer(intent)
    if isinstance(result, KeyTaken):
        record = await _taken(delivery, act, place, result)
    else:
        assert isinstance(result, Appended), result
        incarnation = delivery.journal.owner.incarnation
        record = Record("effect", place, result.first, incarnation, intent, taken=True)
    delivery.replay.records.append(record)
    return Found(place, record), isinstance(result, Appended)


async def _taken(delivery: Delivery, act: Act, place: Place, taken: KeyTaken) -> Record:
    """The key was used elsewhere: by an earlier delivery of this run, or by another run."""
    if taken.other:
        raise _conflict(delivery, act, taken.other, place.fingerprint, taken.run)
    store = delivery.journal.store
    intent = (await store.events(taken.run, after=taken.seq - 1, limit=1))[0]
    assert isinstance(intent.fact, events.EffectIntended)
    known = intent.fact.place
    same = known.fingerprint == place.fingerprint and known.name == place.name
    if taken.run != delivery.journal.run or not same or not _same_sort(intent.fact, act):
        raise _conflict(
            delivery, act, _described(known, intent.fact.database), place.fingerprint, taken.run
        )
    record = Record("effect", known, taken.seq, intent.incarnation, intent.fact, taken=True)
    if taken.ended:
        ended = (await store.events(taken.run, after=taken.ended - 1, limit=1))[0]
        assert isinstance(ended.fact, events.EffectEnded)
        record.outcome, record.outcome_seq = ended.fact, ended.seq
    elif act.key in delivery.journal.dispatched:
        reason = f"{act.what} is under way in another handler of this run"
        raise errors.EffectFailed(act.key, "not sent", "KeyInUse", reason)
    return record


def _same_sort(intent: events.EffectIntended, act: Act) -> bool:
    return bool(intent.database) == bool(act.database)


def _described(place: Place, database: str) -> str:
    sort = "transaction " if database else ""
    return f"{sort}{place.name} {place.fingerprint}"


def _conflict(
    delivery: Delivery, act: Act, known: str, fingerprint: str, run: str = ""
) -> errors.KeyConflict:
    sort = "transaction " if act.database else ""
    return errors.KeyConflict(
        act.key, run or delivery.journal.run, known, f"{sort}{act.name} {fingerprint}"
    )
