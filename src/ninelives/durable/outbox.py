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
        KeyConflict: this handler has queued another message under the key.
        Unencodable: the payload cannot be recorded.
        ValueError: channel or key is empty.
    """
    delivery.check()
    if not channel or not key:
        message = "an outbox message needs a channel and a key, and neither may be empty"
        raise ValueError(message)
    raw = delivery.journal.encode(payload, f"outbox[{channel!r}]")
    fact = OutboxQueued(channel=channel, key=f"{delivery.journal.run}:{key}", payload=raw)
    for other in delivery.queued:
        if other.key == fact.key:
            raise _conflict(fact, str(delivery.journal.run), _describe(other))
    delivery.queued.append(fact)


async def require_free(store: Store, queued: Sequence[OutboxQueued], siblings: set[str]) -> None:
    """Refuse keys that are in use; `siblings` are those of the superstep, and grows by these.

    Raises:
        KeyConflict: a key belongs to a message of a sibling, or of a committed superstep.
    """
    for fact in queued:
        if fact.key in siblings:
            raise _conflict(fact, fact.key, "a message of another handler in this superstep")
    siblings.update(fact.key for fact in queued)
    for fact in queued:
        found = await store.outbox.find(fact.key)
        if found is not None:
            run, seq = found
            raise _conflict(fact, run, f"the message that event {seq} queued")


def _conflict(fact: OutboxQueued, run: str, recorded: str) -> errors.KeyConflict:
    return errors.KeyConflict(fact.key, run, recorded, _describe(fact))


def _describe(fact: OutboxQueued) -> str:
    return f"channel {fact.channel!r} (payload {codec.fingerprint_bytes(fact.payload)})"
