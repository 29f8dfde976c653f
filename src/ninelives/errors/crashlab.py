"""What the crash lab cannot do as asked."""

from __future__ import annotations

from ninelives.errors.base import UsageError


class BoundaryUnknown(UsageError):
    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(name, known)
        self.name, self.known = name, known

    def __str__(self) -> str:
        return f"there is no boundary {self.name!r}; known are {', '.join(self.known)}"


class KillsInvalid(UsageError):
    """What names the kills of a crash test cannot be read."""

    def __init__(self, text: str, why: str) -> None:
        super().__init__(text, why)
        self.text, self.why = text, why

    def __str__(self) -> str:
        return (
            f"the kills {self.text!r} cannot be read: {self.why}. Write BOUNDARY:N (the N-th "
            "arrival) or @F (F, from 0 to 1, of the clean run's time), several joined by commas"
        )
