"""The contract of a store's outbox: messages that were queued with a superstep, and who delivers.

A relay works under a token of its own, behind which stands a lock that the kernel frees at the
process's death: there is no lease, and what a dead relay had claimed may be claimed at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NewType, Protocol

import msgspec

from ninelives.ids import RunId, Seq

RelayToken = NewType("RelayToken", str)
LetterState = Literal["queued", "delivered", "dead"]


@dataclass(frozen=True, slots=True)
class Parcel:
    """A message that a relay has claimed and is about to deliver.

    `key` is the event's id for ever: the same at each attempt. `attempt` counts from 1, those
    included in which a relay died.
    """

    id: int
    run: RunId
    seq: Seq
    channel: str
    key: str
    payload: msgspec.Raw
    attempt: int
    queued_at: int


@dataclass(frozen=True, slots=True)
class Letter:
    """A message of the outbox as a person sees it; `claimed`: a relay has it in hand."""

    run: RunId
    seq: Seq
    channel: str
    key: str
    state: LetterState
    claimed: bool
    attempts: int
    next_at: int
    queued_at: int
    error: str
    message: str


class Outbox(Protocol):
    """Claims, and what became of them; every call is durable when it returns."""

    def enlist(self) -> RelayToken:
        """Begin to work as a relay: the token's claims stand as long as this process lives."""
        ...

    def dismiss(self, token: RelayToken) -> None:
        """End a relay: whatever it has claimed is free for others."""
        ...

    async def due(self, channel: str, *, ordered: bool, now: int) -> bool:
        """Whether `claim` would find anything; writes nothing."""
        ...

    async def claim(
        self, token: RelayToken, channel: str, *, ordered: bool, limit: int, now: int
    ) -> list[Parcel]:
        """Claim up to `limit` messages that are due, oldest first; no two relays get the same.

        Counts an attempt for each. With `ordered`, only the first undelivered one of each run.
        """
        ...

    async def delivered(self, token: RelayToken, parcel: Parcel, at: int) -> bool:
        """Record the receiver's acknowledgement in the run's journal.

        Returns False, and writes nothing, if the message is not this relay's any more.
        """
        ...

    async def postpone(
        self, token: RelayToken, parcel: Parcel, *, next_at: int, error: str, message: str
    ) -> bool:
        """Give a message back whose attempt failed; it is due again at `next_at`."""
        ...

    async def bury(
        self, token: RelayToken, parcel: Parcel, at: int, *, error: str, message: str
    ) -> bool:
        """Make a message a dead letter; in the run's journal too."""
        ...

    async def requeue(self, run: RunId, key: str | None, at: int, *, by: str) -> list[str]:
        """Let dead letters of a run be tried again, one or (None) all; returns their keys.

        Raises:
            RunNotFound: no such run.
        """
        ...

    async def letters(self, state: LetterState, *, run: RunId | None, limit: int) -> list[Letter]:
        """Messages in one state, newest first."""
        ...

    async def waiting(self) -> dict[str, int]:
        """How many messages wait in each channel."""
        ...
