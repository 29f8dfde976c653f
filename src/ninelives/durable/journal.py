"""The pen with which the present owner writes one run's journal.

Every write is fenced by the owner's epoch. A refused or impossible write unwinds the handler
with an `Interrupt`, so that user code cannot go on as if it had been recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from ninelives import codec, errors
from ninelives.clock import Now
from ninelives.ids import RunId, Seq
from ninelives.log.events import Draft, Fact
from ninelives.store.base import Appended, BudgetRefused, KeyTaken, Owner, Store

VALUE_BYTES_MAX = 8 * 1024 * 1024


@dataclass(slots=True)
class Journal:
    """One run's journal, open for writing by one owner.

    `owner_dead` says that the former owner is proven dead, not only fenced: no request of its
    can still be on the way out of this machine. `dispatched` holds the keys of the effects that
    are out at this moment, `promised` those of outbox messages that wait for the superstep's
    commit, with their deliveries. `cancelled` is set when a write has shown that a person wants
    the end.
    """

    store: Store
    owner: Owner
    registry: codec.Registry
    now: Now
    code_version: str
    owner_dead: bool = True
    value_bytes_max: int = VALUE_BYTES_MAX
    code_versions: dict[int, str] = field(default_factory=dict)
    dispatched: set[str] = field(default_factory=set)
    promised: dict[str, int] = field(default_factory=dict)
    cancelled: bool = False
    late: set[asyncio.Future[None]] = field(default_factory=set)

    async def settle_late(self) -> None:
        """Wait for effects in threads that outlived their deadlines, and record their outcomes."""
        await asyncio.gather(*self.late, return_exceptions=True)

    @property
    def run(self) -> RunId:
        return self.owner.run

    async def append(
        self,
        facts: Sequence[Fact],
        *,
        superstep: int,
        executor: str,
        finished: tuple[int, bytes] | None = None,
    ) -> Seq:
        """Append facts that nothing but the epoch can refuse; returns the first one's seq."""
        result = await self.offer(facts, superstep=superstep, executor=executor, finished=finished)
        assert isinstance(result, Appended), result
        return result.first

    async def offer(
        self,
        facts: Sequence[Fact],
        *,
        superstep: int,
        executor: str,
        finished: tuple[int, bytes] | None = None,
    ) -> Appended | BudgetRefused | KeyTaken:
        """Append facts that a budget or a key's uniqueness may refuse."""
        at = self.now()
        drafts = [Draft(fact=fact, at=at, superstep=superstep, executor=executor) for fact in facts]
        return await self.write(drafts, finished=finished)

    async def write(
        self, drafts: Sequence[Draft], *, finished: tuple[int, bytes] | None = None
    ) -> Appended | BudgetRefused | KeyTaken:
        """Append drafts of several executors in one transaction.

        Raises:
            OwnershipLost: another process owns the run; nothing was written.
            StoreLost: the disk is full or failing; nothing was written.
        """
        try:
            result = await self.store.append(self.owner, drafts, finished=finished)
        except errors.StaleEpoch as error:
            raise errors.OwnershipLost(str(error)) from error
        except errors.StoreFailed as error:
            raise errors.StoreLost(error) from error
        if isinstance(result, Appended) and result.cancelled:
            self.cancelled = True
        return result

    def encode(self, value: object, what: str) -> msgspec.Raw:
        """Encode a user's value, or refuse it before anything is written.

        Raises:
            Unencodable: with the path from `what` to the offending part, or for its size.
        """
        try:
            data = codec.encode(value, self.registry)
        except errors.Unencodable as error:
            raise errors.Unencodable(what + error.path.removeprefix("$"), error.why) from None
        return self.sized(data, what)

    def sized(self, data: bytes, what: str) -> msgspec.Raw:
        """Refuse encoded values that are too large for a journal."""
        if len(data) > self.value_bytes_max:
            why = (
                f"it is {len(data)} bytes, the limit is {self.value_bytes_max}; keep large "
                "things in your own storage and record where they are"
            )
            raise errors.Unencodable(what, why)
        return msgspec.Raw(data)

    def decode(self, data: msgspec.Raw) -> object:
        """Bring a recorded value back."""
        return codec.decode(data, self.registry)
