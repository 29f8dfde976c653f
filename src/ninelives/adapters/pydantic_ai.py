"""Models by name, from any provider that Pydantic AI knows (the extra `agents`).

    ollama:llama3.2                          the Ollama at OLLAMA_URL or OLLAMA_BASE_URL
    openai:gpt-4o, anthropic:..., ...        Pydantic AI's own names and environment variables
    openai:MODEL@http://host:port/v1         any server with an OpenAI-compatible chat interface

One request is one attempt: retries inside a vendor's client are switched off, because each
attempt is the ledger's to count. Pydantic AI is imported when a model is first asked for.
"""

from __future__ import annotations

from ninelives import errors
from ninelives.durable.usage import Model

INSTALL = "pip install 'ninelives[agents]'"


def resolve(name: str) -> Model:
    """Find the model behind a string (an entry point of `ninelives.models`).

    Raises:
        ModelUnavailable: the extra is missing (says what to install), no provider has the name,
            or a setting that the provider needs is not there (an API key).
    """
    try:
        from ninelives.adapters import providers
    except ImportError as error:
        why = f"it needs Pydantic AI, which cannot be imported ({error}); {INSTALL}"
        raise errors.ModelUnavailable(name, why) from error
    return providers.model_named(name)
