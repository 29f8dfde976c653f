"""A model that follows a script: the same prompt gets the same reply, without any network.

It keeps the provider's own count of requests (`log`), to hold the ledger against, and can be
made slow, silent for long, or forgetful of its usage. It reports 20 tokens in and 10 out.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from ninelives import clock
from ninelives.durable.usage import ModelReply, ModelRequest, Usage
from ninelives.testing.world import append_line

INPUT_TOKENS = 20
OUTPUT_TOKENS = 10

_VERBS = (
    "Check",
    "Confirm",
    "Inspect",
    "Test",
    "Verify",
    "Review",
    "Measure",
    "Secure",
    "Calibrate",
    "Rehearse",
    "Log",
    "Sign off",
    "Prime",
    "Seal",
    "Charge",
    "Arm",
)
_THINGS = (
    "the fuel valves",
    "the weather window",
    "the range clearance",
    "the telemetry link",
    "the backup batteries",
    "the guidance computer",
    "the launch tower",
    "the coolant pressure",
    "the abort sequence",
    "the tracking stations",
    "the crew hatch",
    "the payload latches",
    "the engine gimbals",
    "the flight plan",
    "the ground crew",
    "the igniters",
)


def line_for(prompt: str) -> str:
    """The scripted reply: one line, chosen by the prompt alone, equal in every process."""
    digest = hashlib.blake2b(prompt.encode("utf-8", "surrogatepass"), digest_size=2).digest()
    return f"{_VERBS[digest[0] % len(_VERBS)]} {_THINGS[digest[1] % len(_THINGS)]}."


class ScriptedModel:
    """A deterministic model. The request is logged before the wait: a provider bills on arrival."""

    def __init__(
        self,
        name: str = "scripted",
        *,
        delay_seconds: float = 0.0,
        stall_seconds: float = 0.0,
        log: str | Path | None = None,
        missing_usage: bool = False,
        reply: Callable[[str], str] | None = None,
    ) -> None:
        self.name = name
        self.delay_seconds = delay_seconds
        self.stall_seconds = stall_seconds
        self.log = Path(log) if log else None
        self.missing_usage = missing_usage
        self.reply = reply or line_for

    async def request(self, request: ModelRequest) -> ModelReply:
        if self.log is not None:
            append_line(self.log, {"prompt": request.prompt, "pid": os.getpid()})
        await clock.sleep(self.delay_seconds + self.stall_seconds)
        return ModelReply(
            text=self.reply(request.prompt),
            usage=None if self.missing_usage else _USAGE,
        )


_USAGE = Usage(
    input_tokens=INPUT_TOKENS,
    output_tokens=OUTPUT_TOKENS,
    total_tokens=INPUT_TOKENS + OUTPUT_TOKENS,
)


def resolve(name: str) -> ScriptedModel:
    """The model behind `scripted` and `scripted:...` (an entry point of `ninelives.models`).

    Reads SCRIPTED_DELAY_SECONDS and SCRIPTED_LOG from the environment of this process.
    """
    return ScriptedModel(
        name,
        delay_seconds=float(os.environ.get("SCRIPTED_DELAY_SECONDS") or 0),
        log=os.environ.get("SCRIPTED_LOG") or None,
    )
