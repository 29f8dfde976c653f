"""Amounts of money: millionths of a dollar at rest, dollars where a person reads or writes."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TypeAlias

from ninelives import errors

Dollars: TypeAlias = Decimal | int | float | str
MICRO = 1_000_000
DOLLARS_MAX = 1_000_000_000


def microdollars(value: object, where: str) -> int:
    """Read an amount of dollars, exactly.

    Raises:
        SettingsInvalid: no number, negative, too large, or finer than a millionth.
    """
    found = amount(value, where) * MICRO
    if found != found.to_integral_value():
        raise errors.SettingsInvalid(where, f"{value!r} is finer than a millionth of a dollar")
    return int(found)


def amount(value: object, where: str) -> Decimal:
    """Read dollars of any fineness.

    Raises:
        SettingsInvalid: no number, negative, infinite, or above a billion.
    """
    if isinstance(value, bool) or not isinstance(value, Decimal | int | float | str):
        raise errors.SettingsInvalid(where, f"{value!r} is no amount of dollars")
    try:
        found = Decimal(str(value))  # through text: 0.1 means a tenth, not its nearest binary
    except InvalidOperation:
        raise errors.SettingsInvalid(where, f"{value!r} is no amount of dollars") from None
    if not found.is_finite() or found < 0:
        raise errors.SettingsInvalid(where, f"{value!r} is no amount of dollars from 0 up")
    if found > DOLLARS_MAX:
        raise errors.SettingsInvalid(where, f"{value!r} is more than the {DOLLARS_MAX} allowed")
    return found


def dollars(microdollars: int) -> str:
    """Microdollars as a person reads them: at least cents, no digit that says nothing."""
    whole, rest = divmod(abs(microdollars), MICRO)
    digits = f"{rest:06d}".rstrip("0").ljust(2, "0")
    return f"{'-' if microdollars < 0 else ''}${whole}.{digits}"
