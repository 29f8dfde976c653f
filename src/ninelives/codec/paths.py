"""Paths to the offending part of a value, such as `$.items[3].owner`."""

from __future__ import annotations

LENGTH_MAX = 200
_KEY_MAX = 40


class Refused(Exception):  # noqa: N818 - named by the condition, as in errors
    """A part cannot be encoded or decoded; the way to it is collected on the way up."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why
        self._steps: list[str] = []

    def within(self, step: str) -> Refused:
        """Add the step that leads to here from the container around it."""
        self._steps.append(step)
        return self

    def path(self, start: str) -> str:
        whole = start + "".join(reversed(self._steps))
        if len(whole) <= LENGTH_MAX:
            return whole
        return f"{whole[: LENGTH_MAX - 50]}...{whole[-40:]}"


def field(name: str) -> str:
    return f".{name}" if name.isidentifier() else item(name)


def item(key: object) -> str:
    """A key is shown where that cannot show more than a plain key."""
    plain = isinstance(key, str | int | float | bool | bytes) or key is None
    shown = repr(key) if plain else type(key).__qualname__
    return f"[{shown if len(shown) <= _KEY_MAX else shown[:_KEY_MAX] + '...'}]"
