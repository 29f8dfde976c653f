"""One model request through Pydantic AI, and its usage report as the provider gave it.

Imports Pydantic AI (0.75 s), so only `adapters.pydantic_ai` may import this, when it must.
"""

from __future__ import annotations

import math
import os
from contextvars import ContextVar
from typing import Any

import pydantic_ai
from genai_prices import Usage as PricedUsage
from genai_prices import calc_price
from openai import NotFoundError
from openai.types import chat
from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import ModelHTTPError, UserError
from pydantic_ai.messages import ModelRequest as ProviderRequest
from pydantic_ai.models import infer_model
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.ollama import OllamaProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings

from ninelives import errors, money
from ninelives.adapters import ollama, reports
from ninelives.durable.usage import ModelReply, ModelRequest, Usage

# Statuses of class 4xx after which the provider may still have worked: it, or a proxy before it,
# gave up waiting. Their outcome is unknown.
_TOO_MANY_REQUESTS = 429
_TIMED_OUT = {408, 499}


def model_named(name: str) -> ProviderModel:
    """Build a model from its string; nothing is sent.

    Raises:
        ModelUnavailable: no such provider, or a setting of it is missing.
    """
    try:
        return ProviderModel(name, _build(name))
    except (UserError, ImportError, ValueError) as error:
        raise errors.ModelUnavailable(name, str(error)) from error


def _build(name: str) -> pydantic_ai.models.Model:
    provider, _, rest = name.partition(":")
    model, _, address = rest.partition("@")
    if provider == "ollama":
        url = address or ollama.url()
        return ChatModel(model, provider=OllamaProvider(base_url=ollama.openai_url(url)))
    if provider == "openai" and address:
        key = os.environ.get("OPENAI_API_KEY") or "not-needed"
        return ChatModel(
            model,
            provider=OpenAIProvider(base_url=address, api_key=key),
            # The older field is the one that every compatible server knows.
            profile=OpenAIModelProfile(openai_chat_supports_max_completion_tokens=False),
        )
    return infer_model(name)


class ProviderModel:
    """A model of `ninelives.durable.models` that asks through Pydantic AI."""

    def __init__(self, name: str, model: pydantic_ai.models.Model) -> None:
        self.name = name
        self._model = model

    async def request(self, request: ModelRequest) -> ModelReply:
        """Ask once.

        Raises:
            ModelRefused: the provider answered with a status of class 4xx.
            Exception: anything else; whether the request was worked on, and billed, is unknown.
        """
        settings = ModelSettings(max_retries=0)
        if request.max_output_tokens is not None:
            settings["max_tokens"] = request.max_output_tokens
        asked = ProviderRequest.user_text_prompt(
            request.prompt, instructions=request.system or None
        )
        _reported.set(None)
        try:
            # Entered for each request: the connections are closed with it, in its event loop.
            async with self._model:
                response = await model_request(self._model, [asked], model_settings=settings)
        except ModelHTTPError as error:
            if 400 <= error.status_code < 500 and error.status_code not in _TIMED_OUT:
                busy = error.status_code == _TOO_MANY_REQUESTS
                raise errors.ModelRefused(self.name, str(error), busy) from error
            raise
        return ModelReply(
            text=response.text or "",
            usage=_reported.get() or reports.measured(response.usage),
            response_id=response.provider_response_id or "",
        )

    def cost(self, usage: Usage) -> int | None:
        """By the published prices of the model at its own provider; None: there is none.

        A server at an address of its own has no published price, whatever its model is called.
        """
        counts = PricedUsage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
        )
        ref, address = self._model.model_name, self._model.base_url
        try:
            if address:
                found = calc_price(counts, ref, provider_api_url=address)
            else:
                found = calc_price(counts, ref, provider_id=self._model.system)
        except LookupError:
            return None
        published = found.model_price
        if getattr(published, "input_mtok", None) is None:
            return None  # a price that leaves out a part would count it as zero
        if getattr(published, "output_mtok", None) is None:
            return None
        return math.ceil(found.total_price * money.MICRO)

    async def usage_of(self, response_id: str) -> Usage | None:
        """Ask OpenAI for a stored response or chat completion; other providers keep none."""
        model = self._model
        if not isinstance(model, OpenAIChatModel | OpenAIResponsesModel):
            return None
        async with model:
            client = model.client.with_options(max_retries=0)
            try:
                if isinstance(model, OpenAIChatModel):
                    kept = await client.chat.completions.retrieve(response_id)
                    return reports.of_chat(kept.usage)
                return reports.of_response((await client.responses.retrieve(response_id)).usage)
            except NotFoundError:
                return None


# What the provider reported for the request under way in this task, before anyone mended it.
_reported: ContextVar[Usage | None] = ContextVar("_reported", default=None)


class ChatModel(OpenAIChatModel):
    """A chat model that keeps a reply whose usage report is incomplete.

    Pydantic AI refuses such a response whole; here the reply is kept (it is paid for) and the
    parts of the report come back as they were. `_validate_completion` is the hook that it
    offers to subclasses for this.
    """

    # The type that it returns has no public name.
    def _validate_completion(self, response: chat.ChatCompletion) -> Any:  # noqa: ANN401
        usage = reports.of_chat(response.usage)
        if usage is not None:
            _reported.set(usage)
            if None in {usage.input_tokens, usage.output_tokens, usage.total_tokens}:
                response = response.model_copy(update={"usage": None})
        return super()._validate_completion(response)
