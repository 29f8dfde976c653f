"""Where Ollama is, and whether it answers. Standard library only: asking costs no import."""

from __future__ import annotations

import http.client
import os
from collections.abc import Mapping
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

DEFAULT_URL = "http://127.0.0.1:11434"
PROBE_SECONDS = 0.3


def url(environment: Mapping[str, str] = os.environ) -> str:
    """Ollama's address: OLLAMA_URL, else OLLAMA_BASE_URL, else this machine's port 11434."""
    given = environment.get("OLLAMA_URL") or environment.get("OLLAMA_BASE_URL") or DEFAULT_URL
    return given if "://" in given else f"http://{given}"


def openai_url(address: str) -> str:
    """The address of Ollama's OpenAI-compatible interface, which lies under `/v1`."""
    address = address.rstrip("/")
    return address if address.endswith("/v1") else f"{address}/v1"


def ollama_answers(address: str, *, timeout_seconds: float = PROBE_SECONDS) -> bool:
    """Tell whether an Ollama (or what looks like one) answers at this address right now."""
    if urlsplit(address).scheme not in {"http", "https"}:
        return False
    # A local service is asked directly, whatever proxy the environment names.
    opener = build_opener(ProxyHandler({}))
    try:
        with opener.open(f"{openai_url(address)}/models", timeout=timeout_seconds) as answer:
            return bool(answer.status == 200)
    except (OSError, ValueError, http.client.HTTPException):
        return False
