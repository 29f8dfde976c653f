"""The rules of the token ledger: what a usage report settles, and what it leaves unknown.

A hold is *held* before the request, then *settled* at the reported usage, *released* when the
provider refused for certain, or *unknown*, and then it stays counted at its reservation. What
is missing never counts as zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ninelives.durable.usage import Usage


@dataclass(frozen=True, slots=True)
class Settlement:
    """How a reply ends its hold; `missing` says why it could not be settled."""

    status: Literal["settled", "unknown"]
    tokens: int
    missing: str = ""


def settle(usage: Usage | None, *, text: str) -> Settlement:
    """Judge a usage report.

    An explicit zero is a zero where it can be true; zero input beside real output is a
    placeholder (a cached prompt that was left out), and so is a total that contradicts its
    parts. Source: the reports behind ollama#3427 and auto_ai_router#142.
    """
    missing = _missing(usage, text)
    if missing or usage is None:
        return Settlement("unknown", 0, missing)
    return Settlement("settled", (usage.input_tokens or 0) + (usage.output_tokens or 0))


def _missing(usage: Usage | None, text: str) -> str:
    if usage is None:
        return "the provider reported no usage"
    taken, given, total = usage.input_tokens, usage.output_tokens, usage.total_tokens
    if taken is None or given is None:
        absent = "input" if taken is None else "output"
        return f"the provider reported no {absent} tokens"
    if taken < 0 or given < 0:
        return f"the provider reported negative usage ({taken} in, {given} out)"
    if taken == 0 and (given > 0 or text):
        return f"the provider reported 0 input tokens beside a reply ({given} out)"
    if given == 0 and text:
        return "the provider reported 0 output tokens beside a reply"
    if total is not None and total < taken + given:
        return f"the reported total of {total} contradicts its parts ({taken} in, {given} out)"
    return ""
