"""What a handler leaves for the outside: queued with its superstep, delivered by a relay later.

Nothing here waits or writes. A message is private to its handler until the superstep commits,
and is not queued at all if the handler fails.
"""

from __future__ import annotations

from collections.abc import Sequence

from ninelives import codec, errors
from ninelives.durable.delivery import Delivery
from ninelives.log.events import OutboxQueued
from ninelives.store.base import Store


def queue(delivery: Delivery, channel: str, payload: object, key: str) -> None:
    """Add a message to what the handler leaves behind.

    Raises:
        KeyConflict: this handler has used the key, or one that ended in this superstep has.
        Unencodable: the payload cannot be recorded.
        ValueError: channel or key is empty.
    """
    delivery.check()
    if not channel or not key:
        message = "an outbox message needs a channel and a key, and neither may be empty"
        raise ValueError(message)
    raw = delivery.journal.encode(payload, f"outbox[{channel!r}]")
    fact = OutboxQueued(channel=channel, key=f"{delivery.journal.run}:{key}", payload=raw)
    run = delivery.journal.run
    for other in delivery.queued:
        if other.key == fact.key:
            raise _conflict(fact, run, _describe(other))
    if delivery.replay.effect(fact.key) is not None:
        raise _conflict(fact, run, "an effect of this handler")
    delivery.queued.append(fact)
    delivery.journal.promised[fact.key] = delivery.id


async def require_free(store: Store, queued: Sequence[OutboxQueued], siblings: set[str]) -> None:
    """Refuse keys that are in use; `siblings` are those of the superstep, and grows by these.

    Raises:
        KeyConflict: a key belongs to a message of a sibling, or of a committed superstep, or to
            an effect.
    """
    for fact in queued:
        if fact.key in siblings:
            raise _conflict(fact, fact.key, "a message of another handler in this superstep")
    siblings.update(fact.key for fact in queued)
    for fact in queued:
        taken = await store.key(fact.key)
        if taken is not None:
            raise _conflict(fact, taken.run, taken.other or f"the effect of event {taken.seq}")


def _conflict(fact: OutboxQueued, run: str, recorded: str) -> errors.KeyConflict:
    return errors.KeyConflict(fact.key, run, recorded, _describe(fact))


def _describe(fact: OutboxQueued) -> str:
    return f"channel {fact.channel!r} (payload {codec.fingerprint_bytes(fact.payload)})"
