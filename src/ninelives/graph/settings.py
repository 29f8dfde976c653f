"""What a run is admitted with: how finely it is recorded, its budget, values for handlers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast, get_args

from ninelives import errors, ids, money

Scalar = str | int | float | bool | None
Record = Literal["operation", "superstep"]
OnMissingUsage = Literal["halt", "count_reserved"]


@dataclass(frozen=True, slots=True)
class Budget:
    """A limit for all model calls of a run together. None: no limit; 0: nothing is allowed.

    `dollars` is exact to the millionth (write fractions as text or Decimal). A reply without a
    usable usage report halts the run's budget, or is counted at what was reserved for it
    (`on_missing_usage="count_reserved"`).
    """

    tokens: int | None = None
    dollars: money.Dollars | None = None
    on_missing_usage: OnMissingUsage = "halt"

    def __post_init__(self) -> None:
        check_tokens(self.tokens, "tokens of a budget")
        if self.dollars is not None:
            money.microdollars(self.dollars, "dollars of a budget")
        if self.on_missing_usage not in get_args(OnMissingUsage):
            allowed = ", ".join(map(repr, get_args(OnMissingUsage)))
            why = f"{self.on_missing_usage!r} is not one of {allowed}"
            raise errors.SettingsInvalid("on_missing_usage", why)

    @property
    def microdollars(self) -> int | None:
        """The limit in money as it is kept: whole millionths of a dollar."""
        if self.dollars is None:
            return None
        return money.microdollars(self.dollars, "dollars of a budget")


@dataclass(frozen=True, slots=True)
class RunSettings:
    """Recorded when a run is admitted, and the same in every process that works on it.

    `record="superstep"` records nothing inside a superstep, as other frameworks do. `values` are
    the workflow's own; handlers read them as `ctx.settings`.

    A run draws on its own `budget`, on the budgets `store` and `workflow:NAME`, on `tenant:NAME`
    if it has a `tenant`, and on those named in `budgets`, which must exist.
    """

    record: Record = "operation"
    budget: Budget | None = None
    tenant: str | None = None
    budgets: Sequence[str] = ()
    values: Mapping[str, Scalar] = field(default_factory=dict[str, Scalar])

    def __post_init__(self) -> None:
        if self.record not in get_args(Record):
            why = f"{self.record!r} is not one of {', '.join(map(repr, get_args(Record)))}"
            raise errors.SettingsInvalid("record", why)
        budget = cast("object", self.budget)
        if budget is not None and not isinstance(budget, Budget):
            raise errors.SettingsInvalid("budget", f"{budget!r} is no Budget")
        if self.tenant is not None:
            ids.budget_name(f"tenant:{self.tenant}")
        if isinstance(self.budgets, str):
            raise errors.SettingsInvalid("budgets", f"{self.budgets!r} is a text, not a list")
        for name in self.budgets:
            ids.shared_budget(name)
        for name, value in self.values.items():
            _check_value(name, value)
        object.__setattr__(self, "budgets", tuple(dict.fromkeys(self.budgets)))
        object.__setattr__(self, "values", dict(self.values))  # a later change must not reach it


def check_tokens(tokens: object, where: str) -> None:
    """Refuse what is no number of tokens.

    Raises:
        SettingsInvalid: neither None nor a whole number from 0 up.
    """
    if tokens is None:
        return
    if not isinstance(tokens, int) or isinstance(tokens, bool):
        why = f"{tokens!r} is no whole number; write a number of tokens, or None for no limit"
        raise errors.SettingsInvalid(where, why)
    if tokens < 0:
        why = f"{tokens} is negative; 0 allows nothing, None sets no limit"
        raise errors.SettingsInvalid(where, why)


def _check_value(name: object, value: object) -> None:
    """Only what JSON holds as it is: settings are recorded, and shown by every client."""
    if not isinstance(name, str):
        raise errors.SettingsInvalid("values", f"the name {name!r} is no text")
    if value is not None and not isinstance(value, str | int | float | bool):
        why = f"it is a {type(value).__name__}; allowed are text, numbers, bool and None"
        raise errors.SettingsInvalid(f"value {name!r}", why)
    if isinstance(value, float) and not math.isfinite(value):
        raise errors.SettingsInvalid(f"value {name!r}", f"{value} has no place in JSON")
