"""Usage reports in the shapes of providers, read field by field: what is absent stays absent."""

from __future__ import annotations

from pydantic_ai.usage import RequestUsage

from ninelives.durable.usage import Usage


def of_chat(report: object) -> Usage | None:
    """The report of an OpenAI chat completion."""
    if report is None:
        return None
    asked = getattr(report, "prompt_tokens_details", None)
    answered = getattr(report, "completion_tokens_details", None)
    return Usage(
        input_tokens=_count(report, "prompt_tokens"),
        output_tokens=_count(report, "completion_tokens"),
        total_tokens=_count(report, "total_tokens"),
        cache_read_tokens=_count(asked, "cached_tokens"),
        reasoning_tokens=_count(answered, "reasoning_tokens"),
    )


def of_response(report: object) -> Usage | None:
    """The report of an OpenAI response."""
    if report is None:
        return None
    asked = getattr(report, "input_tokens_details", None)
    answered = getattr(report, "output_tokens_details", None)
    return Usage(
        input_tokens=_count(report, "input_tokens"),
        output_tokens=_count(report, "output_tokens"),
        total_tokens=_count(report, "total_tokens"),
        cache_read_tokens=_count(asked, "cached_tokens"),
        reasoning_tokens=_count(answered, "reasoning_tokens"),
    )


def measured(report: RequestUsage) -> Usage | None:
    """Pydantic AI's count, where it says that there was one; a field it did not set is missing."""
    if report.unmeasured_requests:
        return None
    fields, details = vars(report), report.details
    return Usage(
        input_tokens=fields.get("input_tokens"),
        output_tokens=fields.get("output_tokens"),
        cache_read_tokens=fields.get("cache_read_tokens"),
        cache_write_tokens=fields.get("cache_write_tokens"),
        reasoning_tokens=details.get("reasoning_tokens", details.get("thoughts_tokens")),
        tool_tokens=details.get("tool_use_prompt_tokens"),
    )


def _count(report: object, field: str) -> int | None:
    value: object = getattr(report, field, None)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
