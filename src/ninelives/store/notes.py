"""The contract of a store's notes: what a door to the runs (a host) keeps beside the journals.

A note is bytes under a scope and a key. No view and no fact of any run depends on one; but a note
can be written in the very transaction that admits a run, so that neither exists without the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Note:
    """What is kept under a key of a scope."""

    scope: str
    key: str
    value: bytes = b""


class Notes(Protocol):
    """Notes by scope and key; every write is durable when it returns."""

    async def put(self, notes: Sequence[Note], *, only_new: bool = False) -> bool:
        """Write notes, all or none; what lay under a key is replaced.

        `only_new`: nothing is written, and the answer is False, if one of the keys is in use.
        """
        ...

    async def get(self, scope: str, key: str) -> bytes | None:
        """What lies under a key; None if nothing does."""
        ...

    async def drop(self, notes: Sequence[tuple[str, str]]) -> int:
        """Remove what lies under these scopes and keys, and say how many notes that were."""
        ...

    async def under(
        self, scope: str, *, prefix: str = "", after: str = "", limit: int = 100
    ) -> list[Note]:
        """The notes of a scope whose key begins with `prefix`, by key, from behind `after`."""
        ...
