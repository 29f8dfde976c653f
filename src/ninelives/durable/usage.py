"""What goes to a model provider and what comes back: the seam that adapters implement."""

from __future__ import annotations

from typing import Protocol

import msgspec


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request. `max_output_tokens` None leaves the limit to the provider."""

    model: str
    prompt: str
    system: str = ""
    max_output_tokens: int | None = None


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens as the provider reported them; None = not reported, which is not zero."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None


class ModelReply(msgspec.Struct, frozen=True, kw_only=True):
    """A complete answer. `usage` None: the provider reported none."""

    text: str
    usage: Usage | None = None
    response_id: str = ""


class Model(Protocol):
    """A provider's model. `name` is part of a recorded call's identity."""

    name: str

    async def request(self, request: ModelRequest) -> ModelReply:
        """Ask once: no retries inside, each attempt is the ledger's.

        Raises:
            ModelRefused: the provider refused for certain and will bill nothing.
            Exception: anything else means that the outcome is unknown.
        """
        ...
