"""One model request through Pydantic AI, and its usage report as the provider gave it.

Imports Pydantic AI (0.75 s), so only `adapters.pydantic_ai` may import this, when it must.
"""

from __future__ import annotations

import os
from contextvars import ContextVar
from typing import Any

import pydantic_ai
from openai.types import chat
from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import ModelHTTPError, UserError
from pydantic_ai.messages import ModelRequest as ProviderRequest
from pydantic_ai.models import infer_model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.ollama import OllamaProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from ninelives import errors
from ninelives.adapters import ollama
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
            usage=_reported.get() or _usage(response.usage),
            response_id=response.provider_response_id or "",
        )


def _usage(measured: RequestUsage) -> Usage | None:
    """Pydantic AI's count, where it says that there was one; a field it did not set is missing."""
    if measured.unmeasured_requests:
        return None
    fields = vars(measured)
    return Usage(input_tokens=fields.get("input_tokens"), output_tokens=fields.get("output_tokens"))


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
        report = response.usage
        if report is not None:
            usage = Usage(
                input_tokens=_count(report, "prompt_tokens"),
                output_tokens=_count(report, "completion_tokens"),
                total_tokens=_count(report, "total_tokens"),
            )
            _reported.set(usage)
            if None in {usage.input_tokens, usage.output_tokens, usage.total_tokens}:
                response = response.model_copy(update={"usage": None})
        return super()._validate_completion(response)


def _count(report: object, field: str) -> int | None:
    value: object = getattr(report, field, None)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
