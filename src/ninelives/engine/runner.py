"""Carries one owned run from superstep to superstep until it ends, parks, fails or is stopped."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from ninelives import errors, faults, ids
from ninelives.durable.context import Scalar
from ninelives.durable.delivery import StopSignal
from ninelives.durable.journal import Journal
from ninelives.durable.models import Terms
from ninelives.engine import superstep
from ninelives.engine.position import Due, Position
from ninelives.engine.superstep import Committed, Failure, OnOutput, Superstep
from ninelives.log import events
from ninelives.log.events import Fact

logger = logging.getLogger(__name__)

State = Literal["running", "interrupted", "waiting", "parked", "completed", "failed", "cancelled"]


Cause = Literal["parked", "failed", "cancelled", "stopped"]


@dataclass(frozen=True, slots=True)
class Status:
    """How a run stands; `code` names the condition behind `parked` and `failed`."""

    state: State
    code: str = ""
    reason: str = ""


@dataclass(slots=True)
class Runner:
    """The work of one owner on one run."""

    position: Position
    journal: Journal
    settings: Mapping[str, Scalar]
    terms: Terms
    coarse: bool
    stopping: StopSignal
    reload: Callable[[], Awaitable[Position]]
    cold: bool = False
    on_output: OnOutput | None = None
    status: Status = field(default_factory=lambda: Status("running"))

    async def drive(self) -> Status:
        """Run to the end; every way out but lost ownership and a lost store is recorded.

        Raises:
            StaleEpoch: another process took the run over; nothing more was written.
            StoreFailed: the store cannot be written; the run stays resumable.
        """
        try:
            await self._supersteps()
        except errors.OwnershipLost as lost:
            owner = self.journal.owner
            raise errors.StaleEpoch(owner.run, owner.epoch) from lost
        except errors.StoreLost as lost:
            raise lost.error from lost
        return self.status

    async def _supersteps(self) -> None:
        own = ids.run_budget(self.journal.run)
        budget = await self.journal.store.budgets.show(own, at=self.journal.now())
        if budget.halted:
            await self._park("BudgetHalted", budget.halted, [])
        while self.status.state == "running":
            if self.journal.cancelled:
                await self._cancel()
                return
            if self.stopping.requested:
                await self._let_go()
                return
            due = self.position.due()
            limit = self.position.workflow.max_iterations
            if limit is not None and self.position.superstep >= limit:
                error = errors.IterationsExceeded(self.journal.run, limit)
                await self._fail(error.code, str(error), [])
                return
            await self._superstep(due)

    async def _superstep(self, due: list[Due]) -> None:
        step = Superstep(
            position=self.position,
            journal=self.journal,
            settings=self.settings,
            terms=self.terms,
            stopping=self.stopping,
            coarse=self.coarse,
            end=lambda: [events.IncarnationEnded(cause="completed")],
            on_output=self.on_output,
        )
        outcome = await step.run(due)
        if isinstance(outcome, Committed):
            if outcome.completed:
                self.status = Status("completed")
                faults.reach(faults.Boundary.RUN_ENDED)
            elif self.cold:
                self.position = await self.reload()
            return
        await self._unfinished(outcome)

    async def _unfinished(self, failures: list[Failure]) -> None:
        """Decide what the run becomes, from the worst that happened to its handlers."""
        for failure in failures:
            if isinstance(failure.error, errors.OwnershipLost | errors.StoreLost):
                raise failure.error
        parked = [each.error for each in failures if isinstance(each.error, errors.Parked)]
        failed = [each for each in failures if not isinstance(each.error, errors.Interrupt)]
        for failure in failures:
            described = [superstep.describe(failure)] if failure in failed else []
            facts: list[Fact] = [*failure.delivery.notes, *described]
            if facts:
                await self._append(facts, failure.delivery.executor)
        if self.journal.cancelled:
            await self._cancel()
        elif parked:
            await self._park(parked[0].code, parked[0].reason, failures)
        elif failed and len(failed) == len(failures) and all(map(self._retries, failed)):
            await self._retry(failed)
        elif failed:
            error = failed[0].error
            where = failed[0].delivery.executor
            code = error.code if isinstance(error, errors.NineLivesError) else type(error).__name__
            line = superstep.line_of(error)
            await self._fail(code, f"executor {where!r}{line}: {error}", failures)
        else:
            await self._let_go()

    def _retries(self, failure: Failure) -> bool:
        """Whether a failed handler's policy admits another attempt."""
        made = self._made(failure) + 1
        retry = self.position.workflow.executors[failure.delivery.executor].retry
        cause = failure.error.__cause__ if isinstance(failure.error, errors.StepFailed) else None
        return retry.admits(cause or failure.error, made)

    def _made(self, failure: Failure) -> int:
        before = self.position.retried.get(failure.delivery.id)
        return before.attempts if before is not None else 0

    async def _retry(self, failed: list[Failure]) -> None:
        """Enter the failed handlers again, each at its recorded moment, as a new attempt.

        Handlers that finished are recorded, and what the failed ones recorded is replayed.
        """
        for failure in failed:
            made, place = self._made(failure) + 1, failure.delivery
            retry = self.position.workflow.executors[place.executor].retry
            fact = events.HandlerRetried(
                delivery=place.id,
                attempts=made,
                error=type(failure.error).__name__,
                message=str(failure.error),
                due_at=self.journal.now() + retry.wait_ms(made, f"{place.id} {made}"),
            )
            await self._append([fact], place.executor)
        owner = self.journal.owner
        self.journal.owner = replace(owner, attempt=owner.attempt + len(failed))
        self.position = await self.reload()

    async def _park(self, code: str, reason: str, failures: list[Failure]) -> None:
        fact = events.RunParked(code=code, reason=reason)
        await self._end([fact], "parked", failures)
        self.status = Status("parked", code, reason)

    async def _fail(self, code: str, reason: str, failures: list[Failure]) -> None:
        fact = events.RunFailed(error=code, reason=reason)
        await self._end([fact], "failed", failures)
        self.status = Status("failed", code, reason)

    async def _cancel(self) -> None:
        await self.journal.settle_late()  # nothing may follow the run's end
        await self._end([events.RunCancelled()], "cancelled", [])
        self.status = Status("cancelled")

    async def _let_go(self) -> None:
        """Stop in an orderly way: the run stays unfinished, and anybody may resume it."""
        await self._end([], "stopped", [])
        reason = f"stopped; go on with `ninelives resume {self.journal.run}`"
        self.status = Status("interrupted", "Stopped", reason)

    async def _end(self, facts: list[Fact], cause: Cause, failures: list[Failure]) -> None:
        """Record the verdict and let go of the run; not before late effects are settled."""
        where = failures[0].delivery.executor if failures else ""
        if self.journal.late and facts:
            await self._append(facts, where)
            facts = []
        await self.journal.settle_late()
        await self._append([*facts, events.IncarnationEnded(cause=cause)], where)

    async def _append(self, facts: list[Fact], executor: str) -> None:
        number = self.position.superstep + 1
        await self.journal.append(facts, superstep=number, executor=executor)
