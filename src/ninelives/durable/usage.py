"""What goes to a model provider and what comes back: the seam that adapters implement."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from typing import Protocol, runtime_checkable

import msgspec
from msgspec.structs import asdict, replace


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


class ModelPiece(msgspec.Struct, frozen=True, kw_only=True):
    """A part of an answer as it arrives. `last` says that the provider closed it by itself."""

    text: str = ""
    usage: Usage | None = None
    response_id: str = ""
    last: bool = False


@runtime_checkable
class Streams(Protocol):
    """A model whose answer arrives in pieces; `ctx.model` then asks by `stream`."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece, None]:
        """Ask once, and give the answer piece by piece, the last one marked.

        Raises as `Model.request` does.
        """
        ...


class StreamBroken(Exception):  # noqa: N818 - a condition
    """A stream ended without its last piece: what it cost is unknown."""

    def __str__(self) -> str:
        return "the stream ended before its last piece"


async def folded(model: Streams, request: ModelRequest) -> ModelReply:
    """Read a stream to its end as one reply.

    Reports may come in parts (the input with the first piece, the output with the last): a later
    count replaces an earlier one of the same field, and what no piece reported stays missing.

    Raises:
        StreamBroken: the connection closed in the middle, however politely.
    """
    reply, texts = ModelReply(text=""), list[str]()
    async with contextlib.aclosing(model.stream(request)) as pieces:
        async for piece in pieces:
            texts.append(piece.text)
            reply = replace(
                reply,
                usage=_later(reply.usage, piece.usage),
                response_id=piece.response_id or reply.response_id,
            )
            if piece.last:
                return replace(reply, text="".join(texts))
    raise StreamBroken


def _later(before: Usage | None, now: Usage | None) -> Usage | None:
    if before is None or now is None:
        return now or before
    return replace(before, **{name: n for name, n in asdict(now).items() if n is not None})


@runtime_checkable
class Remembers(Protocol):
    """A model whose provider keeps answers: a call of unknown usage can be settled by asking."""

    async def usage_of(self, response_id: str) -> Usage | None:
        """The usage of an answer that was given before; None: the provider does not know it.

        Asks only, and costs nothing. What it raises counts as not known.
        """
        ...
