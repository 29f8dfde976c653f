"""What goes to a model provider and what comes back: the seam that adapters implement."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import msgspec


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request. `max_output_tokens` None leaves the limit to the provider."""

    model: str
    prompt: str
    system: str = ""
    max_output_tokens: int | None = None


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens as the provider reported them; None = not reported, which is not zero.

    Cached tokens are part of the input, reasoning tokens of the output. `tool_tokens` (what tools
    of the provider's own put into the prompt) are part of neither, but of the total.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    tool_tokens: int | None = None


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


@runtime_checkable
class Remembers(Protocol):
    """A model whose provider keeps answers: a call of unknown usage can be settled by asking."""

    async def usage_of(self, response_id: str) -> Usage | None:
        """The usage of an answer that was given before; None: the provider does not know it.

        Asks only, and costs nothing. What it raises counts as not known.
        """
        ...
