"""What model calls cost: prices set by hand, prices that a model knows, the most a call can cost.

A dollar per million tokens is a microdollar per token, so prices and counts meet without a
conversion. Costs are rounded up: what is counted is never below what is billed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol, TypeAlias, runtime_checkable

from ninelives import money
from ninelives.durable.usage import Usage

Cost: TypeAlias = Callable[[Usage], int | None]


@dataclass(frozen=True, slots=True)
class Price:
    """What a model costs, in dollars per million tokens. `Price(0, 0)` says that it is free.

    Cached tokens are part of the input and cost what it does unless their own price is given.
    """

    input: money.Dollars
    output: money.Dollars
    cache_read: money.Dollars | None = None
    cache_write: money.Dollars | None = None

    def __post_init__(self) -> None:
        for name in ("input", "output", "cache_read", "cache_write"):
            value = getattr(self, name)
            if value is not None:
                money.amount(value, f"{name} of a price")

    def cost(self, usage: Usage) -> int | None:
        """The cost of one call in microdollars, rounded up; None if it is not known."""
        taken, given = usage.input_tokens, usage.output_tokens
        if taken is None or given is None:
            return None
        read, written = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0
        total = (
            (taken - read - written) * money.amount(self.input, "input")
            + read * self._or_input(self.cache_read)
            + written * self._or_input(self.cache_write)
            + given * money.amount(self.output, "output")
        )
        return math.ceil(total)

    def _or_input(self, price: money.Dollars | None) -> Decimal:
        return money.amount(self.input if price is None else price, "price")


@runtime_checkable
class Priced(Protocol):
    """A model that knows its own prices."""

    def cost(self, usage: Usage) -> int | None:
        """The cost of one call in microdollars; None: there is no price for it."""
        ...


def cost_of(name: str, model: object, prices: Mapping[str, Price]) -> Cost | None:
    """How a model's calls are priced: by hand first, then by the model itself; None = not at all.

    Unknown is never zero: a call without a price is refused under a budget in money.
    """
    if name in prices:
        return prices[name].cost
    return model.cost if isinstance(model, Priced) else None


def worst_case(cost: Cost, tokens: int, output_tokens_max: int | None) -> int | None:
    """The most that a call of `tokens` tokens can cost; None = not known."""
    given = tokens if output_tokens_max is None else min(output_tokens_max, tokens)
    cases = (
        Usage(input_tokens=tokens, output_tokens=0),
        Usage(input_tokens=tokens, output_tokens=0, cache_write_tokens=tokens),
        Usage(input_tokens=tokens - given, output_tokens=given),
    )
    found = [cost(case) for case in cases]
    known = [each for each in found if each is not None]
    return max(known) if len(known) == len(found) else None
