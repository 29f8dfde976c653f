"""What a handler holds of its run: messages, outputs, state, and the durable operations.

All of it is private to the handler until its superstep commits, but for effects and recorded
operations, which are durable when their call returns.
"""

from __future__ import annotations

import asyncio
import contextvars
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from ninelives import errors, faults
from ninelives.durable import (
    calls,
    databases,
    declarations,
    effects,
    models,
    outbox,
    steps,
    transactions,
)
from ninelives.durable.delivery import Branch, Delivery
from ninelives.durable.retries import ONCE, Retry
from ninelives.durable.state import View
from ninelives.durable.usage import Model, ModelRequest
from ninelives.ids import RunId
from ninelives.log import events

if TYPE_CHECKING:
    from typing import Never

    from typing_extensions import TypeVar as DefaultTypeVar

    OutT = DefaultTypeVar("OutT", default=Never, contravariant=True)  # noqa: PLC0105
    WorkflowOutT = DefaultTypeVar("WorkflowOutT", default=Never, contravariant=True)  # noqa: PLC0105
else:
    OutT = TypeVar("OutT")
    WorkflowOutT = TypeVar("WorkflowOutT")
T = TypeVar("T")

RESERVE_TOKENS = 1000
Scalar = str | int | float | bool | None


class _Done:
    """What can be awaited and is done already: a forgotten `await` loses no message."""

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


_DONE = _Done()


class WorkflowContext(Generic[OutT, WorkflowOutT]):
    """The handler's side of one delivery.

    `WorkflowContext[Out]` sends messages of type Out, `WorkflowContext[Out, WorkflowOut]` also
    yields outputs of type WorkflowOut; `Never` stands for neither.
    """

    def __class_getitem__(cls, item: object) -> object:
        """Accept one or two arguments, as written: `typing.get_args` gives them back."""
        return types.GenericAlias(cls, item)

    def __init__(
        self,
        delivery: Delivery,
        *,
        settings: Mapping[str, Scalar],
        terms: models.Terms | None = None,
    ) -> None:
        self._delivery = delivery
        self._own = delivery.operations.own
        self._terms = terms or models.Terms()
        self.settings = settings

    # -- where the handler stands -----------------------------------------------------------

    @property
    def run_id(self) -> RunId:
        return self._delivery.journal.run

    @property
    def executor_id(self) -> str:
        return self._delivery.executor

    @property
    def superstep(self) -> int:
        """The number of the superstep under way, from 1."""
        return self._delivery.superstep

    @property
    def incarnation(self) -> int:
        """Which owner of the run this process is, from 1 (the one that admitted it).

        Not durable: after a crash the same handler sees another number.
        """
        return self._delivery.journal.owner.incarnation

    @property
    def source_executor_ids(self) -> list[str]:
        """Who sent what is being handled; several for a fan-in, none for the run's input."""
        return list(self._delivery.sources)

    def get_source_executor_id(self) -> str:
        """The single sender.

        Raises:
            RuntimeError: there are several, or none.
        """
        sources = self.source_executor_ids
        if len(sources) != 1:
            message = f"executor {self.executor_id!r} was reached by {len(sources)} senders"
            raise RuntimeError(message)
        return sources[0]

    # -- messages and outputs ---------------------------------------------------------------

    def send_message(self, message: OutT, target_id: str | None = None) -> Awaitable[None]:
        """Send a message along this executor's edges (or to one target of them).

        It is recorded as it is now, routed when the handler ends, and delivered in the next
        superstep. A crash before the superstep's commit leaves nothing of it.

        Raises:
            Unencodable: the message cannot be recorded.
        """
        self._delivery.check()
        raw = self._delivery.journal.encode(message, "message")
        self._delivery.sent.append((message, raw, target_id))
        return _DONE

    def yield_output(self, output: WorkflowOutT) -> Awaitable[None]:
        """Yield an output; clients see it when the superstep has committed, and only then.

        Raises:
            Unencodable: the output cannot be recorded.
        """
        self._delivery.check()
        raw = self._delivery.journal.encode(output, "output")
        self._delivery.outputs.append(events.Output(value=raw))
        faults.reach(faults.Boundary.OUTPUT_YIELDED)
        return _DONE

    def outbox(self, channel: str, payload: object, *, key: str) -> Awaitable[None]:
        """Leave a message for the outside; it commits with the superstep, or not at all.

        A relay (`ninelives relay`) delivers it afterwards to whatever stands behind `channel`,
        at least once, always under the same key `{run_id}:{key}`.

        Raises:
            KeyConflict: the key is in use; found at the latest when the handler ends.
            Unencodable: the payload cannot be recorded.
        """
        calls.refuse_nested("outbox")
        outbox.queue(self._delivery, channel, payload, key)
        return _DONE

    # -- state --------------------------------------------------------------------------------

    @property
    def local(self) -> View:
        """This executor's own state; later messages of the same superstep see it."""
        return self._delivery.local

    @property
    def shared(self) -> View:
        """The run's shared state as of the superstep's start, plus this handler's writes.

        Concurrent writes to one key merge in delivery order: the last one stands.
        """
        return self._delivery.shared

    def get_state(self, key: str, default: object = None) -> object:
        """Read shared state."""
        return self._delivery.shared.get(key, default)

    def set_state(self, key: str, value: object) -> None:
        """Write shared state; others see it in the next superstep."""
        self._delivery.shared.set(key, value)

    def append_state(self, key: str, item: object) -> None:
        """Add an item to a list in shared state: only the item is written."""
        self._delivery.shared.append(key, item)

    def delete_state(self, key: str) -> None:
        """Remove a key from shared state."""
        self._delivery.shared.delete(key)

    # -- durable operations -------------------------------------------------------------------

    def step(
        self,
        function: Callable[..., Awaitable[T]] | Callable[..., T],
        *args: object,
        key: str | None = None,
        name: str | None = None,
        retry: Retry = ONCE,
        **kwargs: object,
    ) -> Coroutine[object, object, T]:
        """Run a computation once: after a crash its recorded result is returned.

        A synchronous function runs in a thread. A crash before the return may run it again, so
        acts on the outside world belong into `effect`. `key` tells equal calls apart.

        Raises:
            StepFailed: it raised; the same again on replay.
            Unencodable: arguments or result cannot be recorded.
        """
        calls.refuse_nested("step")
        label = name or (calls.name_of(function) if key is None else "step")
        label = label if key is None else f"{label}:{key}"
        step = steps.Step(function, args, kwargs, label, retry)
        work = self._own(f"step {label!r}", lambda: steps.run(self._delivery, step))
        return cast("Coroutine[object, object, T]", work)

    def model(
        self,
        model: str | Model,
        prompt: str,
        *,
        system: str = "",
        deadline_seconds: float | None = None,
        reserve_tokens: int = RESERVE_TOKENS,
        max_output_tokens: int | None = None,
        retry: Retry = ONCE,
    ) -> Coroutine[object, object, str]:
        """Ask a model once, through the ledger; a recorded reply is never paid for again.

        The hold of `reserve_tokens` (input and output together) is durable before the request,
        if every budget that the run draws on admits it; reply and settlement are recorded in one
        transaction after it. A crash in between leaves the hold counted, and asks again.

        Raises:
            ModelRefused: the provider refused for certain.
            ModelUnavailable: no installed package knows the model's name.
        """
        calls.refuse_nested("model")
        request = ModelRequest(
            model=model if isinstance(model, str) else model.name,
            prompt=prompt,
            system=system,
            max_output_tokens=max_output_tokens,
        )
        call = models.prepare(
            self._terms,
            model,
            request,
            reserve_tokens=reserve_tokens,
            deadline_seconds=deadline_seconds,
            retry=retry,
        )
        return self._own(
            f"a call of model {call.model.name!r}", lambda: models.ask(self._delivery, call)
        )

    def effect(
        self,
        function: Callable[..., Awaitable[T]] | Callable[..., T],
        *args: object,
        key: str,
        reconcile: Callable[[str], object] | None = None,
        idempotent_downstream: bool | None = None,
        deadline_seconds: float | None = None,
        retry: Retry | None = None,
    ) -> Coroutine[object, object, T]:
        """Act on the outside world once, under the idempotency key `{run_id}:{key}`.

        The intent is durable before the call, the outcome when this returns. `function` gets
        the full key if it has a parameter named `key`. After a crash in between, `reconcile`
        (given the full key) is asked; without an answer the run parks, unless the receiver is
        declared to deduplicate (`idempotent_downstream`), and then it is sent again. What is
        not given here is taken from `@effect` on the function, if that declares it.

        A passed deadline is an unknown outcome: `reconcile` is asked, else the run parks. A
        synchronous function goes on in its thread; its late outcome is recorded, and nobody
        takes the run up before.

        Raises:
            EffectRefused: the other side said no.
            EffectFailed: it was sent, and its result is unusable or was not learned.
            KeyConflict: the key was used for another effect; nothing was sent.
            Unencodable: the arguments cannot be recorded; nothing was sent.
        """
        calls.refuse_nested("effect")
        effect = declarations.of(function).applied(
            function=function,
            args=args,
            key=f"{self.run_id}:{key}",
            reconcile=reconcile,
            idempotent_downstream=idempotent_downstream,
            deadline_seconds=deadline_seconds,
            retry=retry,
        )
        work = self._own(f"effect {effect.key!r}", lambda: effects.perform(self._delivery, effect))
        return cast("Coroutine[object, object, T]", work)

    def transaction(
        self,
        database: object,
        function: Callable[..., Awaitable[T]] | Callable[..., T],
        *args: object,
        key: str,
        retry: Retry = ONCE,
    ) -> Coroutine[object, object, T]:
        """Run your SQL in your own database exactly once, under the key `{run_id}:{key}`.

        `database` is a URL or path of SQLite or PostgreSQL, or an `Engine` of SQLAlchemy;
        `function` gets the open transaction, then `args`. The key's row, with the result, commits
        together with the SQL: what died after that is adopted, what died before is run again.
        So `function` may run more than once, and what it does outside of the database is not
        undone; it neither commits nor rolls back. A synchronous one runs in a thread.

        Raises:
            TransactionFailed: it raised, and was rolled back; the same again on replay.
            EffectRefused: it said no by this; rolled back, final.
            KeyConflict: the key was used for something else.
            Unencodable: the arguments cannot be recorded; nothing was done.
            DatabaseUnavailable: nothing installed knows the database.
        """
        calls.refuse_nested("transaction")
        transaction = transactions.Transaction(
            databases.resolve(database), function, args, f"{self.run_id}:{key}", retry
        )
        work = self._own(
            transaction.what, lambda: transactions.perform(self._delivery, transaction)
        )
        return cast("Coroutine[object, object, T]", work)

    async def gather(
        self, *branches: Awaitable[object] | Callable[[], Awaitable[object]]
    ) -> list[object]:
        """Await several lines of work side by side, each with a branch of its own.

        On replay each branch finds its own records, in whichever order they finish. All run to
        their end; then the first failure (in their order) is raised.
        """
        parent = self._delivery.branch()
        number, parent.gathers = parent.gathers, parent.gathers + 1
        prefix = f"{parent.path}/" if parent.path else ""
        tasks = [
            self._spawn(work, Branch(f"{prefix}{number}.{index}"))
            for index, work in enumerate(branches)
        ]
        results = await asyncio.gather(*tasks, return_exceptions=True)
        failures = [result for result in results if isinstance(result, BaseException)]
        for failure in failures:
            if isinstance(failure, errors.Interrupt):
                raise failure
        if failures:
            raise failures[0]
        return results

    def _spawn(
        self, work: Awaitable[object] | Callable[[], Awaitable[object]], branch: Branch
    ) -> asyncio.Task[object]:
        async def run() -> object:
            self._delivery.enter(branch)
            return await (work() if callable(work) else work)

        return asyncio.create_task(run(), context=contextvars.copy_context())
