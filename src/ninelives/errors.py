"""Every error that ninelives raises, named by the condition; imports nothing of the project.

Fields go in, the message comes out of `__str__`, so that errors pickle with no extra code. A
message says what happened, to which run, and what to do next. `Interrupt` and its children are
control flow: they derive from BaseException, so that `except Exception` cannot swallow them.
"""

from __future__ import annotations


class NineLivesError(Exception):
    """Base of all errors that a caller may want to catch. `code` names the condition."""

    @property
    def code(self) -> str:
        return type(self).__name__


class UsageError(NineLivesError):
    """The call was refused and nothing has changed (the command line exits with 2)."""


class RunIdInvalid(UsageError):
    def __init__(self, text: str, why: str) -> None:
        super().__init__(text, why)
        self.text, self.why = text, why

    def __str__(self) -> str:
        return f"{self.text!r} cannot be a run id: {self.why}; choose another id"


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


class RunNotFound(UsageError):
    def __init__(self, run_id: str, store: str) -> None:
        super().__init__(run_id, store)
        self.run_id, self.store = run_id, store

    def __str__(self) -> str:
        return (
            f"no run {self.run_id!r} in {self.store}; nothing was started. "
            "See `ninelives ls`, or check --store"
        )


class RunConflict(UsageError):
    """A run id is in use for other work."""

    def __init__(self, run_id: str, what: str, recorded: str, given: str) -> None:
        super().__init__(run_id, what, recorded, given)
        self.run_id, self.what, self.recorded, self.given = run_id, what, recorded, given

    def __str__(self) -> str:
        return (
            f"run {self.run_id!r} exists with another {self.what}: recorded {self.recorded}, "
            f"given {self.given}; choose another run id, or resume the recorded run"
        )


class RunOwned(UsageError):
    """A living process owns the run."""

    def __init__(self, run_id: str, pid: int, host: str, since: str) -> None:
        super().__init__(run_id, pid, host, since)
        self.run_id, self.pid, self.host, self.since = run_id, pid, host, since

    def __str__(self) -> str:
        return (
            f"run {self.run_id!r} is owned by process {self.pid} on {self.host} since "
            f"{self.since}, which is alive; wait for it, stop it, or use "
            "`ninelives resume --take-over` if it hangs"
        )


class RunEnded(UsageError):
    def __init__(self, run_id: str, status: str) -> None:
        super().__init__(run_id, status)
        self.run_id, self.status = run_id, status

    def __str__(self) -> str:
        return (
            f"run {self.run_id!r} is {self.status} and is never run again; "
            f"see `ninelives outputs {self.run_id}`"
        )


class GraphChanged(UsageError):
    """The workflow's graph is not the one that the run was admitted with."""

    def __init__(self, run_id: str, differences: tuple[str, ...]) -> None:
        super().__init__(run_id, differences)
        self.run_id, self.differences = run_id, differences

    def __str__(self) -> str:
        listed = "; ".join(self.differences)
        return (
            f"run {self.run_id!r} was recorded with another graph: {listed}. "
            "Restore the recorded graph, or start a new run"
        )


class TargetInvalid(UsageError):
    def __init__(self, target: str, why: str) -> None:
        super().__init__(target, why)
        self.target, self.why = target, why

    def __str__(self) -> str:
        return f"target {self.target!r}: {self.why}"


class TargetUnrecorded(UsageError):
    """A run that was started from Python does not say where its workflow lives."""

    def __init__(self, run_id: str) -> None:
        super().__init__(run_id)
        self.run_id = run_id

    def __str__(self) -> str:
        return (
            f"run {self.run_id!r} was started from Python and records no target; pass "
            "--target module:attribute or --target path.py:attribute"
        )


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


class InputInvalid(UsageError):
    def __init__(self, executor: str, why: str) -> None:
        super().__init__(executor, why)
        self.executor, self.why = executor, why

    def __str__(self) -> str:
        return f"the input does not fit executor {self.executor!r}: {self.why}; nothing was started"


class WorkflowInvalid(UsageError):
    """A workflow cannot be built; `problems` name executors, edges and types."""

    def __init__(self, workflow: str, problems: tuple[str, ...]) -> None:
        super().__init__(workflow, problems)
        self.workflow, self.problems = workflow, problems

    def __str__(self) -> str:
        return f"workflow {self.workflow!r} cannot be built: " + "; ".join(self.problems)


class StoreRefused(UsageError):
    """The store cannot be opened as it is: not a database, a newer version, a network disk."""

    def __init__(self, store: str, why: str) -> None:
        super().__init__(store, why)
        self.store, self.why = store, why

    def __str__(self) -> str:
        return f"store {self.store}: {self.why}"


class StoreFailed(NineLivesError):
    """The store could not write or read (disk full, corrupt file); durable facts stay."""

    def __init__(self, store: str, why: str) -> None:
        super().__init__(store, why)
        self.store, self.why = store, why

    def __str__(self) -> str:
        return f"store {self.store}: {self.why}"


class StaleEpoch(UsageError):
    """Another process owns the run now: nothing was written; stop at once."""

    def __init__(self, run_id: str, epoch: int) -> None:
        super().__init__(run_id, epoch)
        self.run_id, self.epoch = run_id, epoch

    def __str__(self) -> str:
        return (
            f"run {self.run_id!r} was taken over by another process; this one (epoch "
            f"{self.epoch}) wrote nothing more. See `ninelives report {self.run_id}`"
        )


class Unencodable(NineLivesError):
    """A value cannot be recorded; nothing was written. `path` leads to the offending part."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path, why)
        self.path, self.why = path, why

    def __str__(self) -> str:
        return f"cannot encode {self.path}: {self.why}"


class Undecodable(NineLivesError):
    """A recorded value cannot come back as what it was."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path, why)
        self.path, self.why = path, why

    def __str__(self) -> str:
        return f"cannot decode {self.path}: {self.why}"


class MessageUnhandled(NineLivesError):
    """A message was sent that no executor at the end of an open edge can handle."""

    def __init__(self, source: str, targets: tuple[str, ...], message_type: str) -> None:
        super().__init__(source, targets, message_type)
        self.source, self.targets, self.message_type = source, targets, message_type

    def __str__(self) -> str:
        if not self.targets:
            return (
                f"executor {self.source!r} sent a {self.message_type}, but no edge leaves it; "
                "add an edge to an executor that handles it"
            )
        where = ", ".join(repr(target) for target in self.targets)
        return (
            f"executor {self.source!r} sent a {self.message_type}, which {where} cannot handle; "
            "add a handler for it or an edge to an executor that has one"
        )


class StepFailed(NineLivesError):
    """A step raised; the failure is recorded. `error` is the type's name."""

    def __init__(self, step: str, error: str, message: str) -> None:
        super().__init__(step, error, message)
        self.step, self.error, self.message = step, error, message

    def __str__(self) -> str:
        return f"step {self.step!r} raised {self.error}: {self.message}"


class EffectFailed(NineLivesError):
    """An effect ended without being applied in a usable way; `outcome` says which."""

    def __init__(self, key: str, outcome: str, error: str, message: str) -> None:
        super().__init__(key, outcome, error, message)
        self.key, self.outcome, self.error, self.message = key, outcome, error, message

    def __str__(self) -> str:
        return f"effect {self.key!r} ended {self.outcome}: {self.error}: {self.message}"


class EffectRefused(Exception):
    """Raise this in an effect's function: the other side said no, and nothing was done."""


class KeyConflict(NineLivesError):
    """An idempotency key is already in use for another effect or message."""

    def __init__(self, key: str, run_id: str, recorded: str, given: str) -> None:
        super().__init__(key, run_id, recorded, given)
        self.key, self.run_id, self.recorded, self.given = key, run_id, recorded, given

    def __str__(self) -> str:
        return (
            f"idempotency key {self.key!r} was used by run {self.run_id!r} for {self.recorded}; "
            f"now asked for {self.given}. Nothing was sent; give each act a key of its own"
        )


class TransactionFailed(NineLivesError):
    """A transaction was rolled back: nothing of it has happened. `error` is the type's name."""

    def __init__(self, key: str, error: str, message: str) -> None:
        super().__init__(key, error, message)
        self.key, self.error, self.message = key, error, message

    def __str__(self) -> str:
        return f"transaction {self.key!r} was rolled back: {self.error}: {self.message}"


class TransactionMisused(NineLivesError):
    """A transaction's function has ended the transaction that it was given, or tried to."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(key, why)
        self.key, self.why = key, why

    def __str__(self) -> str:
        return f"the function of transaction {self.key!r} {self.why}; leave that to ninelives"


class TransactionUnknown(NineLivesError):
    """Whether a transaction has committed could not be asked. Asking again is always safe."""

    def __init__(self, database: str, why: str) -> None:
        super().__init__(database, why)
        self.database, self.why = database, why

    def __str__(self) -> str:
        return f"whether it has committed in {self.database} is not known: {self.why}"


class DatabaseUnavailable(UsageError):
    def __init__(self, database: str, why: str) -> None:
        super().__init__(database, why)
        self.database, self.why = database, why

    def __str__(self) -> str:
        return f"database {self.database!r} cannot be used: {self.why}"


class EffectNotOpen(UsageError):
    """Only an effect whose outcome is unknown can be resolved by a person."""

    def __init__(self, run_id: str, key: str, state: str) -> None:
        super().__init__(run_id, key, state)
        self.run_id, self.key, self.state = run_id, key, state

    def __str__(self) -> str:
        return (
            f"effect {self.key!r} of run {self.run_id!r} is {self.state}, there is nothing to "
            f"resolve; see `ninelives report {self.run_id}`"
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


class IterationsExceeded(NineLivesError):
    def __init__(self, run_id: str, max_iterations: int) -> None:
        super().__init__(run_id, max_iterations)
        self.run_id, self.max_iterations = run_id, max_iterations

    def __str__(self) -> str:
        return (
            f"run {self.run_id!r} reached its limit of {self.max_iterations} supersteps; "
            "raise max_iterations= and resume"
        )


class NotAwaited(NineLivesError):
    def __init__(self, executor: str, what: str, state: str) -> None:
        super().__init__(executor, what, state)
        self.executor, self.what, self.state = executor, what, state

    def __str__(self) -> str:
        fate = (
            "and never awaited it, so it has not happened"
            if self.state == "asked"
            else "and ended while it was under way (it was seen to its end)"
        )
        return (
            f"executor {self.executor!r} began {self.what} {fate}; write `await` before it (or "
            "`ctx.gather` around several), then resume"
        )


class HandlerEnded(NineLivesError):
    def __init__(self, executor: str, superstep: int) -> None:
        super().__init__(executor, superstep)
        self.executor, self.superstep = executor, superstep

    def __str__(self) -> str:
        return (
            f"the handler of executor {self.executor!r} in superstep {self.superstep} has ended, "
            "and its context with it; await everything that it starts"
        )


class Interrupt(BaseException):
    """Control flow of the engine: a handler is unwound; never caught by `except Exception`."""


class Parked(Interrupt):
    """The run needs a person. `code` is the condition's name."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(code, reason)
        self.code, self.reason = code, reason

    def __str__(self) -> str:
        return f"{self.code}: {self.reason}"


class Cancelled(Interrupt):
    """A person has cancelled the run: it ends at this boundary."""


class Stopped(Interrupt):
    """This process is shutting down in an orderly way; the run stays resumable."""


class OwnershipLost(Interrupt):
    """Another process owns the run now; nothing more may be written by this one."""


class StoreLost(Interrupt):
    """The store could not write while a handler ran; `error` says why. The run is resumable."""

    def __init__(self, error: StoreFailed) -> None:
        super().__init__(error)
        self.error = error

    def __str__(self) -> str:
        return str(self.error)


class SettingsInvalid(UsageError):
    """A run's settings cannot be used; `what` names the setting."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(what, why)
        self.what, self.why = what, why

    def __str__(self) -> str:
        return f"the run settings cannot be used: {self.what}: {self.why}"


class DeliveryFailed(NineLivesError):
    """A receiver did not take an outbox message now; it may later.

    `retry_after_seconds` is what the receiver asked for, if it did.
    """

    def __init__(self, why: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(why, retry_after_seconds)
        self.why, self.retry_after_seconds = why, retry_after_seconds

    def __str__(self) -> str:
        return self.why


class ChannelsInvalid(UsageError):
    """What was given to a relay is no list of channels that it can serve."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return f"the relay's channels cannot be used: {self.why}"


class LetterNotDead(UsageError):
    """Only dead letters can be queued again."""

    def __init__(self, run_id: str, key: str) -> None:
        super().__init__(run_id, key)
        self.run_id, self.key = run_id, key

    def __str__(self) -> str:
        return (
            f"run {self.run_id!r} has no dead letter {self.key!r}; nothing has changed. "
            f"See `ninelives outbox dead {self.run_id}`"
        )
