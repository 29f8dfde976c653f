"""What holds for a whole run: fixed and recorded when the run is admitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Scalar: TypeAlias = str | int | float | bool | None
Record: TypeAlias = Literal["operation", "superstep"]


@dataclass(frozen=True, slots=True)
class Budget:
    """A limit in tokens over all model calls of a run: None = no limit, 0 = none allowed."""

    tokens: int | None = None

    def __post_init__(self) -> None:
        if self.tokens is not None and self.tokens < 0:
            message = f"a budget of {self.tokens} tokens is no limit; use None for no limit"
            raise ValueError(message)


@dataclass(frozen=True, slots=True)
class RunSettings:
    """Settings of a run, equal in every process that works on it.

    `record="superstep"` records nothing inside a superstep but holds and effects, as other
    frameworks do. `values` are the workflow's own: `ctx.settings` shows them to handlers.
    """

    record: Record = "operation"
    budget: Budget | None = None
    values: Mapping[str, Scalar] = field(default_factory=dict)
