"""What budgets, holds and model providers refuse."""

from __future__ import annotations

from ninelives.errors.base import NineLivesError, UsageError


class BudgetNameInvalid(UsageError):
    def __init__(self, text: str, why: str) -> None:
        super().__init__(text, why)
        self.text, self.why = text, why

    def __str__(self) -> str:
        return f"{self.text!r} cannot be the name of this budget: {self.why}"


class BudgetUnknown(UsageError):
    """A run is to draw on a budget that nobody has set."""

    def __init__(self, name: str, store: str) -> None:
        super().__init__(name, store)
        self.name, self.store = name, store

    def __str__(self) -> str:
        return (
            f"no budget {self.name!r} in {self.store}; set it with "
            f"`ninelives budget set {self.name} --tokens N` (or --dollars), or see "
            "`ninelives budget ls`"
        )


class HoldNotOpen(UsageError):
    """A hold is not there, has ended, or its call is under way."""

    def __init__(self, run_id: str, hold: int, status: str) -> None:
        super().__init__(run_id, hold, status)
        self.run_id, self.hold, self.status = run_id, hold, status

    def __str__(self) -> str:
        return (
            f"hold {self.hold} of run {self.run_id!r} is {self.status}; nothing has changed. "
            f"`ninelives budget show run:{self.run_id}` lists the holds that can be settled"
        )


class ModelRefused(NineLivesError):
    """The provider refused the request for certain (its hold is released).

    `transient`: it may accept the same request later (busy, rate limit).
    """

    def __init__(self, model: str, message: str, transient: bool = False) -> None:  # noqa: FBT001, FBT002
        super().__init__(model, message, transient)
        self.model, self.message, self.transient = model, message, transient

    def __str__(self) -> str:
        return f"model {self.model!r} refused the request: {self.message}"


class ModelUnavailable(UsageError):
    def __init__(self, model: str, why: str) -> None:
        super().__init__(model, why)
        self.model, self.why = model, why

    def __str__(self) -> str:
        return f"model {self.model!r} cannot be used: {self.why}"
