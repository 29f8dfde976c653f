"""`@effect`: what holds for every call of an effect's function, declared once beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from ninelives.durable.effects import Effect
from ninelives.durable.retries import ONCE, Retry

F = TypeVar("F", bound=Callable[..., Any])
_MARK = "__ninelives_effect__"


@dataclass(frozen=True, slots=True)
class Declaration:
    """Settings of an effect; a call may override each."""

    reconcile: Callable[[str], object] | None = None
    idempotent_downstream: bool = False
    deadline_seconds: float | None = None
    retry: Retry = ONCE

    def applied(
        self,
        *,
        function: Callable[..., object],
        args: tuple[object, ...],
        key: str,
        reconcile: Callable[[str], object] | None,
        idempotent_downstream: bool | None,
        deadline_seconds: float | None,
        retry: Retry | None,
    ) -> Effect:
        """One call, with what the declaration says where the call says nothing."""
        return Effect(
            function=function,
            args=args,
            key=key,
            reconcile=reconcile or self.reconcile,
            idempotent_downstream=self.idempotent_downstream
            if idempotent_downstream is None
            else idempotent_downstream,
            deadline_seconds=self.deadline_seconds
            if deadline_seconds is None
            else deadline_seconds,
            retry=retry or self.retry,
        )


def effect(
    *,
    reconcile: Callable[[str], object] | None = None,
    idempotent_downstream: bool = False,
    deadline_seconds: float | None = None,
    retry: Retry = ONCE,
) -> Callable[[F], F]:
    """Declare how `ctx.effect` treats a function; see there what each setting means."""
    declaration = Declaration(reconcile, idempotent_downstream, deadline_seconds, retry)

    def mark(function: F) -> F:
        setattr(function, _MARK, declaration)
        return function

    return mark


def of(function: Callable[..., object]) -> Declaration:
    """What was declared of a function."""
    found = getattr(function, _MARK, None)
    return found if isinstance(found, Declaration) else Declaration()
