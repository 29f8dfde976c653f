"""The rules of the ledger: what a usage report settles, and what it leaves unknown.

A hold is *held* before the request, then *settled* at the reported usage, *released* when the
provider refused for certain, or *unknown*, and then it stays counted at its reservation. What
is missing never counts as zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from msgspec.structs import asdict, replace

from ninelives.durable.usage import Usage


@dataclass(frozen=True, slots=True)
class Settlement:
    """How a reply ends its hold; `missing` says why it could not be settled.

    `billed` is the report with every token in one of its two parts, for pricing.
    """

    status: Literal["settled", "unknown"]
    tokens: int
    missing: str = ""
    billed: Usage | None = None


def settle(usage: Usage | None, *, text: str) -> Settlement:
    """Judge a usage report.

    An explicit zero is a zero where it can be true; zero input beside real output is a
    placeholder (a cached prompt that was left out), and so is a total that contradicts its
    parts. A total above its parts counts: nobody reports tokens that are not billed.
    Source: the reports behind ollama#3427 and auto_ai_router#142.
    """
    missing = _missing(usage, text)
    if missing or usage is None:
        return Settlement("unknown", 0, missing)
    billed = _billed(usage)
    tokens = (billed.input_tokens or 0) + (billed.output_tokens or 0)
    return Settlement("settled", tokens, billed=billed)


def counted(usage: Usage | None) -> Usage | None:
    """A report with what is no count left out, so that it can be recorded."""
    if usage is None:
        return None
    bad = [name for name, count in asdict(usage).items() if _no_count(name, count)]
    return replace(usage, **dict.fromkeys(bad)) if bad else usage


def _billed(usage: Usage) -> Usage:
    """Put what only the total holds where it belongs: tools' tokens are read, others written."""
    taken, given = usage.input_tokens or 0, usage.output_tokens or 0
    beyond = max(0, (usage.total_tokens or 0) - taken - given)
    tools = min(beyond, usage.tool_tokens or 0)
    return replace(usage, input_tokens=taken + tools, output_tokens=given + beyond - tools)


def _missing(usage: Usage | None, text: str) -> str:
    if usage is None:
        return "the provider reported no usage"
    for name, count in asdict(usage).items():
        wrong = _no_count(name, count)
        if wrong:
            return wrong
    taken, given, total = usage.input_tokens, usage.output_tokens, usage.total_tokens
    if taken is None or given is None:
        absent = "input" if taken is None else "output"
        return f"the provider reported no {absent} tokens"
    if taken == 0 and (given > 0 or text):
        return f"the provider reported 0 input tokens beside a reply ({given} out)"
    if given == 0 and text:
        return "the provider reported 0 output tokens beside a reply"
    if total is not None and total < taken + given:
        return f"the reported total of {total} contradicts its parts ({taken} in, {given} out)"
    return _parts_missing(usage, taken, given)


def _no_count(name: str, count: object) -> str:
    """A provider's numbers are taken as they come, so they may be no numbers at all."""
    what = name.removesuffix("_tokens").replace("_", " ")
    if count is None:
        return ""
    if not isinstance(count, int) or isinstance(count, bool):
        return f"the provider reported {count!r} as its count of {what} tokens"
    return f"the provider reported negative usage ({count} {what} tokens)" if count < 0 else ""


def _parts_missing(usage: Usage, taken: int, given: int) -> str:
    cached = (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)
    if cached > taken:
        return f"the reported {cached} cached tokens are more than the {taken} of the input"
    reasoning = usage.reasoning_tokens or 0
    if reasoning > given:
        return f"the reported {reasoning} reasoning tokens are more than the {given} of the output"
    return ""
