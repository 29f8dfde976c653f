"""The closed set of facts that a run's journal can hold.

A journal row is an `Event`: the envelope (run, seq, kind, at, superstep, executor, incarnation)
and one fact from the union `Fact`. A user's values are inside facts as JSON that the codec
wrote (`msgspec.Raw`); listing a journal never needs the user's types.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from ninelives.ids import RunId, Seq

Raw: TypeAlias = msgspec.Raw


class Fact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of all facts; the class decides the event's `kind` (see `KINDS`)."""


class Place(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a recorded operation stands inside a run.

    `delivery` is the seq of the delivered message's event (of `run_admitted` for the input, the
    least of them for a fan-in). `branch` is the path of `ctx.gather` branches ("" = the handler
    itself, "0.2" = third branch of the first gather). `ordinal` counts calls of the same kind
    and name in the branch, `nth` those of them that have the same fingerprint too.
    """

    delivery: int
    branch: str = ""
    name: str
    ordinal: int = 0
    nth: int = 0
    fingerprint: str = ""
    concurrent: bool = False


# -- the run ------------------------------------------------------------------------------


class RunAdmitted(Fact, frozen=True, kw_only=True):
    """The run exists: durable before its id is returned. Its seq is 1."""

    workflow: str
    input: Raw
    input_fingerprint: str
    graph: Raw
    settings: Raw
    target: Raw


class IncarnationStarted(Fact, frozen=True, kw_only=True):
    """A process took ownership; `epoch` fences all earlier ones."""

    cause: Literal["start", "resume", "take_over"]
    epoch: int
    pid: int
    host: str
    process_started_at: int
    code_version: str
    attempt: int
    orphaned_holds: list[int] = []


class IncarnationEnded(Fact, frozen=True, kw_only=True):
    """The owner let go in an orderly way (`stopped` leaves the run resumable)."""

    cause: Literal["completed", "failed", "parked", "waiting", "cancelled", "stopped"]


class RunCompleted(Fact, frozen=True, kw_only=True):
    """Terminal: nothing could be delivered any more. `undelivered` messages lie in the buffers
    of fan-in edges whose other sources never sent.
    """

    undelivered: int = 0


class RunFailed(Fact, frozen=True, kw_only=True):
    """A handler raised; `resume` tries again."""

    reason: str
    error: str


class RunParked(Fact, frozen=True, kw_only=True):
    """The run needs a person; `code` is an error code such as OutcomeUnknown or BudgetHalted."""

    code: str
    reason: str


class CancelRequested(Fact, frozen=True, kw_only=True):
    """A person wants the run to end; its owner stops it at its next boundary."""

    by: str = ""


class RunCancelled(Fact, frozen=True, kw_only=True):
    """Terminal: the run was cancelled. Effects under way were seen to their outcome."""

    by: str = ""


# -- supersteps ---------------------------------------------------------------------------


class Message(Fact, frozen=True, kw_only=True):
    """A message on its way: routed once, when its sender finished. `edge` names a fan-in group
    in whose buffer it lies ("" = delivered by itself).
    """

    source: str
    target: str
    value: Raw
    edge: str = ""


class State(Fact, frozen=True, kw_only=True):
    """A change of state: `scope` is "" for shared state, else the executor's id.

    `append` adds `value` (a JSON list of items) to the list under `key`.
    """

    scope: str
    key: str
    change: Literal["set", "append", "delete"]
    value: Raw = Raw(b"null")


class Output(Fact, frozen=True, kw_only=True):
    """An output of the workflow, visible because its superstep has committed."""

    value: Raw


class Intermediate(Fact, frozen=True, kw_only=True):
    """An output that the workflow's output selection marks as intermediate."""

    value: Raw


class HandlerFinished(Fact, frozen=True, kw_only=True):
    """A delivery was handled to its end; `messages` are the seqs it consumed."""

    delivery: int
    messages: list[int]


class HandlerFailed(Fact, frozen=True, kw_only=True):
    """A handler raised."""

    delivery: int
    error: str
    message: str
    traceback: str = ""


class SuperstepCommitted(Fact, frozen=True, kw_only=True):
    """The superstep's messages, state, outputs became visible together with this event."""

    handlers: int


# -- recorded operations ------------------------------------------------------------------


class StepRecorded(Fact, frozen=True, kw_only=True):
    """A step's result; after a crash it is returned and the code is not run again."""

    place: Place
    result: Raw


class StepFailed(Fact, frozen=True, kw_only=True):
    """A step raised; replay of the same attempt raises the same."""

    place: Place
    error: str
    message: str
    attempt: int


class ModelRequested(Fact, frozen=True, kw_only=True):
    """Durable before the request is sent; the hold `hold` (= this event's seq) is `held`.

    `reserved_microdollars` None: nobody knows what this model costs.
    """

    place: Place
    model: str
    reserved_tokens: int
    reserved_microdollars: int | None = None


class ModelReplied(Fact, frozen=True, kw_only=True):
    """The reply and its settlement, in one transaction. `hold` is ModelRequested's seq.

    `counted`: the usage is unknown, and the run's settings want the reservation counted instead
    of a halt.
    """

    place: Place
    hold: int
    reply: Raw
    usage: Raw
    hold_status: Literal["settled", "unknown"]
    tokens: int
    microdollars: int | None = None
    counted: bool = False


class ModelUnsettled(Fact, frozen=True, kw_only=True):
    """No reply: `failed` (the provider refused: hold released) or `unknown` (deadline,
    cancellation, lost answer: the hold stays counted at its reservation).
    """

    place: Place
    hold: int
    outcome: Literal["failed", "unknown"]
    error: str
    message: str
    attempt: int


class EffectIntended(Fact, frozen=True, kw_only=True):
    """Durable before the effect is dispatched.

    `database`: it is a transaction there, whose key commits with it.
    """

    place: Place
    key: str
    arguments: Raw
    database: str = ""


class EffectEnded(Fact, frozen=True, kw_only=True):
    """What became of an effect. `intent` is EffectIntended's seq; `by` says how it is known."""

    place: Place
    key: str
    intent: int
    outcome: Literal["confirmed", "refused", "unknown", "failed"]
    by: Literal["answer", "reconcile", "person"] = "answer"
    result: Raw = Raw(b"null")
    error: str = ""
    message: str = ""


class TransactionRolledBack(Fact, frozen=True, kw_only=True):
    """A transaction's function raised: nothing of it has happened, and nobody older can commit it.

    Replay of the same attempt raises the same; `intent` stays open for the next attempt.
    """

    place: Place
    key: str
    intent: int
    error: str
    message: str
    attempt: int


class EffectResent(Fact, frozen=True, kw_only=True):
    """An effect with an intent but no outcome is sent again under the same key; `why` it may be."""

    place: Place
    key: str
    intent: int
    why: str


class RetryScheduled(Fact, frozen=True, kw_only=True):
    """An attempt of an operation failed, and the next one is made at `due_at` (milliseconds)."""

    operation: Literal["step", "model", "effect"]
    place: Place
    attempts: int
    error: str
    message: str
    due_at: int


class HandlerRetried(Fact, frozen=True, kw_only=True):
    """A handler raised, and is entered again at `due_at`; what it recorded is not repeated."""

    delivery: int
    attempts: int
    error: str
    message: str
    due_at: int


class EffectResolved(Fact, frozen=True, kw_only=True):
    """A person has found out what became of an effect; the next owner acts on it."""

    key: str
    intent: int
    answer: Literal["applied", "absent"]
    result: Raw = Raw(b"null")
    by: str = ""


class Replayed(Fact, frozen=True, kw_only=True):
    """A recorded operation was asked for again and answered from the journal.

    `of` is the seq of the record. `drift`: the arguments differ from the recorded ones.
    """

    operation: Literal["step", "model", "effect"]
    place: Place
    of: int
    key: str = ""
    drift: bool = False


class Leftover(Fact, frozen=True, kw_only=True):
    """A recorded step or reply that the replay never asked for."""

    delivery: int
    of: int


# -- the ledger ---------------------------------------------------------------------------


class BudgetSet(Fact, frozen=True, kw_only=True):
    """A person has set a budget's limit for one window; both None: it has none any more."""

    budget: str
    per: Literal["total", "day", "month"]
    tokens_max: int | None = None
    microdollars_max: int | None = None
    by: str = ""
    why: str = ""


class BudgetHalted(Fact, frozen=True, kw_only=True):
    """The budget admits no new call until a person, or evidence, clears it."""

    budget: str
    reason: str
    by: str = ""


class HaltCleared(Fact, frozen=True, kw_only=True):
    """The budget admits again; unknown holds stay counted."""

    budget: str
    by: str = ""
    why: str = ""


class HoldResolved(Fact, frozen=True, kw_only=True):
    """What became of a hold that was left unknown, or held by a process that died.

    `evidence` is the provider's own record of the answer, or a person's word.
    """

    hold: int
    status: Literal["settled", "released"]
    tokens: int
    microdollars: int | None = None
    evidence: Literal["provider", "person"] = "person"
    usage: Raw = Raw(b"null")
    by: str = ""
    why: str = ""


# -- the outbox ---------------------------------------------------------------------------


class OutboxQueued(Fact, frozen=True, kw_only=True):
    """A message to the outside, durable with its superstep; a relay delivers it afterwards."""

    channel: str
    key: str
    payload: Raw


class OutboxDelivered(Fact, frozen=True, kw_only=True):
    """The receiver has acknowledged. `queued` is OutboxQueued's seq."""

    key: str
    queued: int
    attempts: int


class OutboxDead(Fact, frozen=True, kw_only=True):
    """It is not tried any more: refused for good, or tried too often."""

    key: str
    queued: int
    attempts: int
    error: str
    message: str


class OutboxRequeued(Fact, frozen=True, kw_only=True):
    """A person lets a dead letter be tried again, under the same key."""

    key: str
    queued: int
    by: str = ""


KINDS: dict[str, type[Fact]] = {
    "run_admitted": RunAdmitted,
    "incarnation_started": IncarnationStarted,
    "incarnation_ended": IncarnationEnded,
    "run_completed": RunCompleted,
    "run_failed": RunFailed,
    "run_parked": RunParked,
    "cancel_requested": CancelRequested,
    "run_cancelled": RunCancelled,
    "message": Message,
    "state": State,
    "output": Output,
    "intermediate": Intermediate,
    "handler_finished": HandlerFinished,
    "handler_failed": HandlerFailed,
    "superstep_committed": SuperstepCommitted,
    "step_recorded": StepRecorded,
    "step_failed": StepFailed,
    "model_requested": ModelRequested,
    "model_replied": ModelReplied,
    "model_unsettled": ModelUnsettled,
    "effect_intended": EffectIntended,
    "effect_ended": EffectEnded,
    "transaction_rolled_back": TransactionRolledBack,
    "effect_resent": EffectResent,
    "effect_resolved": EffectResolved,
    "retry_scheduled": RetryScheduled,
    "handler_retried": HandlerRetried,
    "replayed": Replayed,
    "leftover": Leftover,
    "budget_set": BudgetSet,
    "budget_halted": BudgetHalted,
    "halt_cleared": HaltCleared,
    "hold_resolved": HoldResolved,
    "outbox_queued": OutboxQueued,
    "outbox_delivered": OutboxDelivered,
    "outbox_dead": OutboxDead,
    "outbox_requeued": OutboxRequeued,
}
KIND_OF: dict[type[Fact], str] = {fact: kind for kind, fact in KINDS.items()}
ENDS: frozenset[str] = frozenset({"run_completed", "run_failed", "run_parked", "run_cancelled"})


def message_target(kind: str, data: bytes) -> str:
    """To whom a pending message goes, without decoding what it holds."""
    if kind == "message":
        return msgspec.json.decode(data, type=Message).target
    return "the start executor"


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A fact that is about to be appended: the store gives it its seq.

    `at` is in milliseconds since the epoch: a label, never an order.
    """

    fact: Fact
    at: int
    superstep: int
    executor: str = ""


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a journal. `incarnation` counts owners from 1; 0 is a person or a command."""

    run: RunId
    seq: Seq
    kind: str
    at: int
    superstep: int
    executor: str
    incarnation: int
    pid: int
    fact: Fact
