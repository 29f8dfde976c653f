"""What a run is admitted with: how finely it is recorded, its budget, values for handlers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, cast, get_args

from ninelives import errors

Scalar = str | int | float | bool | None
Record = Literal["operation", "superstep"]


@dataclass(frozen=True, slots=True)
class Budget:
    """A limit for all model calls of a run together. None: no limit; 0: nothing is allowed."""

    tokens: int | None = None

    def __post_init__(self) -> None:
        tokens = cast("object", self.tokens)
        if tokens is None:
            return
        if not isinstance(tokens, int) or isinstance(tokens, bool):
            why = f"{tokens!r} is no whole number; write a number of tokens, or None for no limit"
            raise errors.SettingsInvalid("tokens of a budget", why)
        if tokens < 0:
            why = f"{tokens} is negative; 0 allows nothing, None sets no limit"
            raise errors.SettingsInvalid("tokens of a budget", why)


@dataclass(frozen=True, slots=True)
class RunSettings:
    """Recorded when a run is admitted, and the same in every process that works on it.

    `record="superstep"` records nothing inside a superstep, as other frameworks do. `values` are
    the workflow's own; handlers read them as `ctx.settings`.
    """

    record: Record = "operation"
    budget: Budget | None = None
    values: Mapping[str, Scalar] = field(default_factory=dict[str, Scalar])

    def __post_init__(self) -> None:
        if self.record not in get_args(Record):
            why = f"{self.record!r} is not one of {', '.join(map(repr, get_args(Record)))}"
            raise errors.SettingsInvalid("record", why)
        budget = cast("object", self.budget)
        if budget is not None and not isinstance(budget, Budget):
            raise errors.SettingsInvalid("budget", f"{budget!r} is no Budget")
        for name, value in self.values.items():
            _check_value(name, value)
        object.__setattr__(self, "values", dict(self.values))  # a later change must not reach it


def _check_value(name: object, value: object) -> None:
    """Only what JSON holds as it is: settings are recorded, and shown by every client."""
    if not isinstance(name, str):
        raise errors.SettingsInvalid("values", f"the name {name!r} is no text")
    if value is not None and not isinstance(value, str | int | float | bool):
        why = f"it is a {type(value).__name__}; allowed are text, numbers, bool and None"
        raise errors.SettingsInvalid(f"value {name!r}", why)
    if isinstance(value, float) and not math.isfinite(value):
        raise errors.SettingsInvalid(f"value {name!r}", f"{value} has no place in JSON")
