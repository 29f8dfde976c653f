"""One superstep: deliver everything that is due, concurrently, then commit once.

Messages to one executor are handled one at a time, in order. A handler that ends before its
siblings is recorded by itself, privately; the last one is recorded by the commit. If one fails
or parks, the others run to their end and are recorded, and nothing of the superstep commits.
"""

from __future__ import annotations

import asyncio
import pathlib
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from ninelives import errors, faults
from ninelives.durable import outbox
from ninelives.durable.context import Scalar, WorkflowContext
from ninelives.durable.delivery import Delivery, StopSignal, handling
from ninelives.durable.journal import Journal
from ninelives.durable.models import Terms
from ninelives.durable.replay import Replay
from ninelives.durable.state import Scope, View
from ninelives.engine.position import Due, Pending, Position, Work, saves
from ninelives.ids import RunId, Seq
from ninelives.log import events
from ninelives.log.events import Draft, Fact
from ninelives.store.base import Appended

TRACEBACK_CHARACTERS_MAX = 4000
PACKAGE = str(pathlib.Path(__file__).parents[1])


@dataclass(frozen=True, slots=True)
class Failure:
    """A handler that raised, or was unwound."""

    delivery: Delivery
    error: BaseException


@dataclass(frozen=True, slots=True)
class Committed:
    """The superstep is durable; `completed` if the run ended with it."""

    completed: bool


Outcome: TypeAlias = Committed | list[Failure]
OnOutput: TypeAlias = Callable[[RunId, Seq, msgspec.Raw], None]


@dataclass(slots=True)
class Superstep:
    """The next superstep of a run, about to be carried out."""

    position: Position
    journal: Journal
    settings: Mapping[str, Scalar]
    terms: Terms
    stopping: StopSignal
    coarse: bool
    end: Callable[[], list[Fact]]
    on_output: OnOutput | None = None
    number: int = 0
    works: dict[int, Work] = field(default_factory=dict)
    facts: dict[int, list[Fact]] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    unfinished: int = 0
    outbox_keys: set[str] = field(default_factory=set)
    last: Delivery | None = None

    async def run(self, due: list[Due]) -> Outcome:
        """Carry out and commit, or return the handlers that did not end."""
        self.number = self.position.superstep + 1
        self.works.update(self.position.finished)
        self.journal.promised = {
            each.key: work.delivery for work in self.works.values() for each in work.queued
        }
        self.outbox_keys.update(self.journal.promised)
        self.unfinished = len(due)
        lanes: dict[str, list[Due]] = {}
        for each in due:
            lanes.setdefault(each.target, []).append(each)
        if len(lanes) == 1:
            await self._lane(*lanes.popitem())
        else:
            async with asyncio.TaskGroup() as group:
                for target, ordered in lanes.items():
                    group.create_task(self._lane(target, ordered))
        if self.failures:
            return self.failures
        return await self._commit()

    async def _lane(self, target: str, ordered: list[Due]) -> None:
        local = Scope(self.journal.decode, dict(self.position.scope(target, self.journal).values))
        for work in self.position.finished.values():
            if work.executor == target:
                _apply(local, work, target)
        for due in ordered:
            delivery = self._delivery(due, local)
            try:
                work = await self._handle(delivery, due)
                await outbox.require_free(self.journal.store, work.queued, self.outbox_keys)
                await self._finish(delivery, work)
            except (Exception, errors.Interrupt, BaseExceptionGroup) as error:  # noqa: BLE001
                self.failures.append(Failure(delivery, _reason(delivery, error)))
                return
            except asyncio.CancelledError as cancelled:
                if _cancelled_from_outside():
                    raise
                self.failures.append(Failure(delivery, _reason(delivery, cancelled)))
                return
            _apply(local, work, target)

    def _delivery(self, due: Due, local: Scope) -> Delivery:
        journal = self.journal
        # What an earlier entry of this handler wanted to leave counts no more.
        journal.promised = {key: of for key, of in journal.promised.items() if of != due.id}
        records = self.position.records.get(due.id, [])
        return Delivery(
            id=due.id,
            messages=due.messages,
            sources=due.sources,
            executor=due.target,
            superstep=self.number,
            journal=journal,
            replay=Replay(
                due.id,
                journal.owner.attempt,
                journal.code_version,
                journal.code_versions,
                records,
            ),
            shared=View("", journal.encode, self.position.scope("", journal)),
            local=View(due.target, journal.encode, local),
            coarse=self.coarse,
            stopping=self.stopping,
        )

    async def _handle(self, delivery: Delivery, due: Due) -> Work:
        executor = await self.position.executor(due.target, self.journal)
        value = due.value(self.journal)
        handle = executor.find_handler(value)
        if handle is None:
            source = ", ".join(due.sources) or "the input"
            raise errors.MessageUnhandled(source, (due.target,), type(value).__name__)
        context: WorkflowContext[object, object] = WorkflowContext(
            delivery, settings=self.settings, terms=self.terms
        )
        if delivery.id in self.position.retried:
            await delivery.wait_until(self.position.retried[delivery.id].due_at)
        await self._entered(delivery, handle(value, context))
        if delivery.interrupt is not None:
            raise delivery.interrupt  # user code had swallowed it
        self._judge_leftovers(delivery)
        if saves(executor):
            _keep(delivery, await executor.on_checkpoint_save())
        return await self._work(delivery)

    async def _entered(self, delivery: Delivery, work: Awaitable[object]) -> None:
        """Run a handler's code, and what it began and did not await, to the end."""
        handling.set(delivery.executor)
        try:
            await work
        except errors.OwnershipLost:
            delivery.operations.close()  # nothing more can be recorded
            raise
        except BaseException:
            await delivery.operations.settle()
            raise
        finally:
            handling.set("")
        loose = await delivery.operations.settle()
        if loose and delivery.interrupt is None:
            raise errors.NotAwaited(delivery.executor, loose[0].what, loose[0].state)

    def _judge_leftovers(self, delivery: Delivery) -> None:
        for left in delivery.replay.leftovers():
            if left.kind == "effect":
                assert left.intent is not None
                reason = (
                    f"executor {delivery.executor!r} ended without asking for its recorded "
                    f"effect {left.intent.key!r} (event {left.seq}): the code took another path "
                    "than before. Restore the code that recorded it, then resume"
                )
                raise delivery.park("Divergence", reason)
            if not delivery.coarse:
                delivery.notes.append(events.Leftover(delivery=delivery.id, of=left.seq))

    async def _work(self, delivery: Delivery) -> Work:
        kind = self.position.workflow.output_kind(delivery.executor)
        outputs = [fact.value for fact in delivery.outputs if isinstance(fact, events.Output)]
        return Work(
            delivery=delivery.id,
            executor=delivery.executor,
            messages=list(delivery.messages),
            outputs=outputs if kind is not None else [],
            states=[*delivery.shared.changes, *delivery.local.changes],
            sent=[
                events.Message(
                    source=delivery.executor, target=route.target, value=raw, edge=route.edge
                )
                for message, raw, target_id in delivery.sent
                for route in await self.position.workflow.route(
                    delivery.executor, message, target_id
                )
            ],
            queued=list(delivery.queued),
        )

    async def _finish(self, delivery: Delivery, work: Work) -> None:
        """Record a handler by itself, unless the superstep's commit does it right away."""
        self.unfinished -= 1
        finished = events.HandlerFinished(delivery=delivery.id, messages=work.messages)
        if self.coarse or not (self.unfinished or self.failures):
            self.facts[work.delivery] = [*delivery.notes, *delivery.at_commit, finished]
        else:
            await self.journal.append(
                [*delivery.notes, finished],
                superstep=self.number,
                executor=delivery.executor,
                finished=(delivery.id, msgspec.json.encode(work)),
            )
            faults.reach(faults.Boundary.HANDLER_RECORDED)
        delivery.notes = []
        self.last = delivery
        self.works[work.delivery] = work

    async def _commit(self) -> Outcome:
        at = self.journal.now()
        drafts: list[Draft] = []

        def add(executor: str, facts: list[Fact]) -> None:
            drafts.extend(
                Draft(fact=fact, at=at, superstep=self.number, executor=executor) for fact in facts
            )

        works = [self.works[key] for key in sorted(self.works)]
        for work in works:
            add(work.executor, self.facts.get(work.delivery, [])[:-1])
            add(work.executor, [*self._outputs(work), *work.states, *work.queued, *work.sent])
            add(work.executor, self.facts.get(work.delivery, [])[-1:])
        add("", [events.SuperstepCommitted(handlers=len(works))])
        after = self._next(works, drafts)
        completed = not after.due()
        if completed:
            add("", [events.RunCompleted(undelivered=len(after.pending)), *self.end()])
        faults.reach(faults.Boundary.SUPERSTEP_DONE)
        result = await self.journal.write(drafts)
        if not isinstance(result, Appended):
            return await self._taken(works)
        faults.reach(faults.Boundary.SUPERSTEP_COMMITTED)
        self._move_on(works, after, result.first)
        self._tell(drafts, result.first)
        return Committed(completed)

    async def _taken(self, works: list[Work]) -> list[Failure]:
        """Another run has queued a message under one of these keys since they were checked."""
        queued = [each for work in works for each in work.queued]
        assert self.last is not None
        try:
            await outbox.require_free(self.journal.store, queued, set())
        except errors.KeyConflict as conflict:
            return [Failure(self.last, conflict)]
        raise AssertionError(queued)

    def _tell(self, drafts: list[Draft], first: int) -> None:
        if self.on_output is None:
            return
        for index, draft in enumerate(drafts):
            if isinstance(draft.fact, events.Output):
                self.on_output(self.journal.run, Seq(first + index), draft.fact.value)

    def _outputs(self, work: Work) -> list[Fact]:
        kind = self.position.workflow.output_kind(work.executor)
        fact = events.Output if kind == "output" else events.Intermediate
        return [fact(value=value) for value in work.outputs]

    def _next(self, works: list[Work], drafts: list[Draft]) -> Position:
        """The position after the commit; new messages are numbered from 1 << 32 for now."""
        consumed = {seq for work in works for seq in work.messages}
        pending = [each for each in self.position.pending if each.seq not in consumed]
        for index, draft in enumerate(drafts):
            if isinstance(draft.fact, events.Message):
                fact = draft.fact
                seq = Seq((1 << 32) + index)
                pending.append(Pending(seq, fact.source, fact.target, fact.value, fact.edge))
        return Position(self.position.workflow, self.number, pending, {})

    def _move_on(self, works: list[Work], after: Position, first: int) -> None:
        position = self.position
        position.superstep = self.number
        position.pending = [
            each
            if each.seq < 1 << 32
            else Pending(
                Seq(each.seq - (1 << 32) + first), each.source, each.target, each.value, each.edge
            )
            for each in after.pending
        ]
        for work in works:
            for change in work.states:
                position.scope(change.scope, self.journal).apply(change)
        position.records, position.finished, position.retried = {}, {}, {}


def _apply(local: Scope, work: Work, target: str) -> None:
    for change in work.states:
        if change.scope == target:
            local.apply(change)


def _keep(delivery: Delivery, saved: Mapping[str, object]) -> None:
    """Turn an executor's saved state into changes: only the keys that differ are written."""
    local = delivery.local
    for key, value in saved.items():
        raw = delivery.journal.encode(value, f"saved state[{key!r}]")
        present = local.get(key, ...)
        if present is ... or bytes(delivery.journal.encode(present, key)) != bytes(raw):
            local.set(key, value)
    for key in set(local.keys()) - saved.keys():
        local.delete(key)


def _reason(delivery: Delivery, error: BaseException) -> BaseException:
    """The interrupt behind an error, however user code wrapped or swallowed it."""
    if delivery.interrupt is not None and not isinstance(error, errors.OwnershipLost):
        return delivery.interrupt
    if isinstance(error, BaseExceptionGroup):
        found: BaseException | None = error.subgroup(errors.Interrupt)
        while isinstance(found, BaseExceptionGroup):
            found = found.exceptions[0]
        return error if found is None else found
    return error


def _cancelled_from_outside() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def describe(failure: Failure) -> events.HandlerFailed:
    """A failed handler as a fact."""
    error = failure.error
    text = "".join(traceback.format_exception(error))
    return events.HandlerFailed(
        delivery=failure.delivery.id,
        error=type(error).__name__,
        message=str(error),
        traceback=text[-TRACEBACK_CHARACTERS_MAX:],
    )


def line_of(error: BaseException) -> str:
    """Where in the user's code an error was raised, as a person would say it."""
    frames = traceback.extract_tb(error.__traceback__)
    users = [frame for frame in frames if not frame.filename.startswith(PACKAGE)]
    return f" at {users[-1].filename}:{users[-1].lineno}" if users else ""
