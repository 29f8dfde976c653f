"""Identifiers: which names a run, an event, an owner go by, and which run ids are allowed.

The only place in the project that draws anything random.
"""

from __future__ import annotations

import secrets
from typing import NewType

from ninelives import errors

RunId = NewType("RunId", str)
Seq = NewType("Seq", int)
Epoch = NewType("Epoch", int)

RUN_ID_LENGTH_MAX = 200
BUDGET_NAME_LENGTH_MAX = 300
RUN_BUDGET = "run:"
_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"


def run_id(text: str) -> RunId:
    """Check a caller's run id: 1 to 200 printable characters without white space.

    Ids are compared byte by byte and never become file names, so `a/b` and `a_b` differ.

    Raises:
        RunIdInvalid: empty, too long, or with a character that is not allowed.
    """
    if not text or len(text) > RUN_ID_LENGTH_MAX:
        raise errors.RunIdInvalid(text[:40], f"its length must be 1 to {RUN_ID_LENGTH_MAX}")
    if not text.isprintable() or any(character.isspace() for character in text):
        raise errors.RunIdInvalid(text[:40], "it holds white space or unprintable characters")
    return RunId(text)


def budget_name(text: str) -> str:
    """Check a budget's name: `run:ID`, `workflow:NAME`, `tenant:NAME`, `store`, or one of your own.

    Raises:
        BudgetNameInvalid: empty, too long, or with a character that is not allowed.
    """
    if not text or text.endswith(":") or len(text) > BUDGET_NAME_LENGTH_MAX:
        why = f"it must have 1 to {BUDGET_NAME_LENGTH_MAX} characters, some behind a colon"
        raise errors.BudgetNameInvalid(text[:40], why)
    if not text.isprintable():
        raise errors.BudgetNameInvalid(text[:40], "it holds unprintable characters")
    return text


def shared_budget(text: str) -> str:
    """Check the name of a budget that several runs draw on.

    Raises:
        BudgetNameInvalid: as `budget_name`, or it is a run's own.
    """
    if text.startswith(RUN_BUDGET):
        raise errors.BudgetNameInvalid(text[:40], "it is the budget of one run")
    return budget_name(text)


def run_budget(run: RunId) -> str:
    """The name of a run's own budget."""
    return RUN_BUDGET + run


def new_run_id() -> RunId:
    """Draw a run id that nobody can guess (79 bits)."""
    return RunId("run-" + "".join(secrets.choice(_ALPHABET) for _ in range(16)))


def new_token() -> str:
    """Draw a process-wide token: names an owner's lock, never used twice."""
    return secrets.token_hex(16)


def fraction() -> float:
    """Draw a number from 0 up to 1, so that waits of several processes do not fall together."""
    return secrets.randbelow(1 << 53) / (1 << 53)
