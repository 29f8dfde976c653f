"""A run's journal folded into what a person wants to know of it: who, what twice, what it cost.

`fold` takes events in order and may be given them in parts: folding `a + b` is folding `b` into
the fold of `a`. It needs no user types and reads no clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, TypeVar

import msgspec

from ninelives.log import events
from ninelives.log.events import Event

T = TypeVar("T")
HoldStatus: TypeAlias = Literal["held", "settled", "unknown", "released"]
OutboxState: TypeAlias = Literal["queued", "delivered", "dead"]
EffectState: TypeAlias = Literal[
    "intended", "confirmed", "refused", "unknown", "failed", "rolled_back"
]


@dataclass(frozen=True, slots=True)
class Process:
    """One incarnation; `ended` is empty while it lives, or if it was killed."""

    incarnation: int
    pid: int
    host: str
    epoch: int
    started_at: int
    ended: str = ""


@dataclass(frozen=True, slots=True)
class Hold:
    """A reservation and what became of it; `tokens` and `microdollars` are what counts.

    `microdollars` None: nobody knows the price. `resolved`: by evidence or by a person.
    """

    seq: int
    executor: str
    superstep: int
    incarnation: int
    model: str
    tokens: int
    microdollars: int | None = None
    status: HoldStatus = "held"
    resolved: bool = False


@dataclass(frozen=True, slots=True)
class Tokens:
    """What providers reported of a run's calls, part by part, summed."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    tool: int = 0


@dataclass(frozen=True, slots=True)
class Superstep:
    """A superstep and the incarnations that recorded something in it."""

    number: int
    executors: tuple[str, ...] = ()
    incarnations: tuple[int, ...] = ()
    committed: bool = False


@dataclass(slots=True)
class Report:
    """Everything that `ninelives report` says of one run."""

    run: str = ""
    workflow: str = ""
    state: str = "running"
    code: str = ""
    reason: str = ""
    supersteps: int = 0
    outputs: int = 0
    seq: int = 0
    processes: dict[int, Process] = field(default_factory=dict)
    entered: dict[tuple[int, str, int], tuple[int, ...]] = field(default_factory=dict)
    holds: dict[int, Hold] = field(default_factory=dict)
    replayed_models: int = 0
    unanswered: set[int] = field(default_factory=set)
    effects: dict[str, EffectState] = field(default_factory=dict)
    skipped_effects: int = 0
    halted: tuple[str, int] | None = None
    timeline: dict[int, Superstep] = field(default_factory=dict)
    reported: Tokens = field(default_factory=Tokens)
    drifts: int = 0
    leftovers: int = 0
    outbox: dict[str, OutboxState] = field(default_factory=dict)

    @property
    def committed_tokens(self) -> int:
        """Settled at actual, held and unknown at reserved."""
        return sum(hold.tokens for hold in self.holds.values())

    @property
    def committed_microdollars(self) -> int:
        """The same in money, for the calls whose price is known."""
        return sum(hold.microdollars or 0 for hold in self.holds.values())

    @property
    def unpriced(self) -> int:
        """Calls that count, and of which nobody knows the price."""
        return sum(
            hold.microdollars is None and hold.status != "released" for hold in self.holds.values()
        )

    def reentered(self) -> list[tuple[str, int, int, tuple[int, ...]]]:
        """Deliveries with durable facts of several processes: executor, superstep, message."""
        return [
            (executor, superstep, delivery, incarnations)
            for (superstep, executor, delivery), incarnations in sorted(self.entered.items())
            if len(incarnations) > 1
        ]

    def count(self, status: HoldStatus) -> tuple[int, int]:
        """Calls and tokens of the holds with this status."""
        found = [hold.tokens for hold in self.holds.values() if hold.status == status]
        return len(found), sum(found)

    def effects_in(self, state: EffectState) -> int:
        return sum(each == state for each in self.effects.values())

    def outbox_in(self, state: OutboxState) -> int:
        return sum(each == state for each in self.outbox.values())


def fold(journal: Iterable[Event], into: Report | None = None) -> Report:
    """Fold events into a report: a new one, or a copy of one that holds the events before."""
    report = Report() if into is None else _copy(into)
    for event in journal:
        report.run, report.seq = event.run, event.seq
        _place(report, event)
        _fact(report, event)
    return report


def _copy(report: Report) -> Report:
    """As deep as it must be: what the containers hold is frozen."""
    return replace(
        report,
        processes=dict(report.processes),
        entered=dict(report.entered),
        holds=dict(report.holds),
        unanswered=set(report.unanswered),
        effects=dict(report.effects),
        timeline=dict(report.timeline),
        outbox=dict(report.outbox),
    )


def _place(report: Report, event: Event) -> None:
    """Note which process recorded what of which delivery and superstep."""
    delivery = _delivery(event)
    if delivery is not None and event.incarnation:
        key = (event.superstep, event.executor, delivery)
        before = report.entered.get(key, ())
        if event.incarnation not in before:
            report.entered[key] = (*before, event.incarnation)
    if event.superstep and event.incarnation and event.executor:
        step = report.timeline.get(event.superstep) or Superstep(event.superstep)
        report.timeline[event.superstep] = replace(
            step,
            executors=_with(step.executors, event.executor),
            incarnations=_with(step.incarnations, event.incarnation),
        )


def _with(known: tuple[T, ...], new: T) -> tuple[T, ...]:
    return known if new in known else (*known, new)


_OF_A_HANDLER = (
    events.HandlerFinished,
    events.HandlerFailed,
    events.HandlerRetried,
    events.Leftover,
)


def _delivery(event: Event) -> int | None:
    fact = event.fact
    place = getattr(fact, "place", None)
    if isinstance(place, events.Place):
        return place.delivery
    if isinstance(fact, _OF_A_HANDLER):
        return fact.delivery
    return None


def _fact(report: Report, event: Event) -> None:
    match event.fact:
        case events.RunAdmitted(workflow=workflow):
            report.workflow = workflow
        case events.Output():
            report.outputs += 1
        case events.SuperstepCommitted():
            report.supersteps = event.superstep
            step = report.timeline.get(event.superstep)
            if step is not None:
                report.timeline[event.superstep] = replace(step, committed=True)
        case events.Leftover():
            report.leftovers += 1
        case events.Replayed() as replayed:
            _replayed(report, replayed)
        case events.EffectIntended() | events.EffectEnded() | events.TransactionRolledBack():
            _effect(report, event.fact)
        case (
            events.ModelRequested()
            | events.ModelReplied()
            | events.ModelUnsettled()
            | events.HoldResolved()
        ):
            _model(report, event)
        case events.BudgetHalted(reason=reason):
            report.halted = (reason, event.at)
        case events.HaltCleared():
            report.halted = None
        case _:
            _status(report, event)


def _effect(
    report: Report,
    fact: events.EffectIntended | events.EffectEnded | events.TransactionRolledBack,
) -> None:
    match fact:
        case events.EffectIntended(key=key):
            report.effects[key] = "intended"
        case events.TransactionRolledBack(key=key):
            report.effects[key] = "rolled_back"
        case events.EffectEnded() as ended:
            report.effects[ended.key] = ended.outcome
            report.skipped_effects += ended.by == "reconcile" and ended.outcome == "confirmed"


def _replayed(report: Report, fact: events.Replayed) -> None:
    report.drifts += fact.drift
    if fact.operation == "model":
        report.replayed_models += 1
    elif fact.operation == "effect":
        report.skipped_effects += report.effects.get(fact.key) in {"confirmed", "failed"}


def _model(report: Report, event: Event) -> None:
    match event.fact:
        case events.ModelRequested() as requested:
            report.holds[event.seq] = Hold(
                seq=event.seq,
                executor=event.executor,
                superstep=event.superstep,
                incarnation=event.incarnation,
                model=requested.model,
                tokens=requested.reserved_tokens,
                microdollars=requested.reserved_microdollars,
            )
            report.unanswered.add(event.seq)
        case events.ModelReplied(hold=seq) as replied:
            report.unanswered.discard(seq)
            if replied.hold_status == "settled":
                _settle(report, seq, replied.tokens, replied.microdollars, replied.usage)
            else:
                report.holds[seq] = replace(report.holds[seq], status="unknown")
        case events.ModelUnsettled(hold=seq, outcome="failed"):
            _release(report, seq)
            report.unanswered.discard(seq)
        case events.ModelUnsettled(hold=seq):
            report.holds[seq] = replace(report.holds[seq], status="unknown")
        case events.HoldResolved(hold=seq) as found:
            if found.status == "settled":
                _settle(report, seq, found.tokens, found.microdollars, found.usage)
            else:
                _release(report, seq)
            report.holds[seq] = replace(report.holds[seq], resolved=True)
        case _:
            raise AssertionError(event)


def _settle(
    report: Report, seq: int, tokens: int, microdollars: int | None, usage: events.Raw
) -> None:
    """A settlement without a cost costs what was held."""
    hold = report.holds[seq]
    cost = hold.microdollars if microdollars is None else microdollars
    report.holds[seq] = replace(hold, status="settled", tokens=tokens, microdollars=cost)
    found, sums = msgspec.json.decode(usage) or {}, report.reported
    report.reported = Tokens(
        input=sums.input + (found.get("input_tokens") or 0),
        output=sums.output + (found.get("output_tokens") or 0),
        cache_read=sums.cache_read + (found.get("cache_read_tokens") or 0),
        cache_write=sums.cache_write + (found.get("cache_write_tokens") or 0),
        reasoning=sums.reasoning + (found.get("reasoning_tokens") or 0),
        tool=sums.tool + (found.get("tool_tokens") or 0),
    )


def _release(report: Report, seq: int) -> None:
    report.holds[seq] = replace(report.holds[seq], status="released", tokens=0, microdollars=0)


def _status(report: Report, event: Event) -> None:
    match event.fact:
        case events.IncarnationStarted() as started:
            report.state, report.code, report.reason = "running", "", ""
            report.processes[event.incarnation] = Process(
                event.incarnation, started.pid, started.host, started.epoch, event.at
            )
        case events.IncarnationEnded(cause=cause):
            process = report.processes[event.incarnation]
            report.processes[event.incarnation] = replace(process, ended=cause)
        case events.RunCompleted():
            report.state = "completed"
        case events.RunCancelled():
            report.state = "cancelled"
        case events.RunFailed(error=code, reason=reason):
            report.state, report.code, report.reason = "failed", code, reason
        case events.RunParked(code=code, reason=reason):
            report.state, report.code, report.reason = "parked", code, reason
        case _:
            _outbox(report, event)


def _outbox(report: Report, event: Event) -> None:
    match event.fact:
        case events.OutboxQueued(key=key) | events.OutboxRequeued(key=key):
            report.outbox[key] = "queued"
        case events.OutboxDelivered(key=key):
            report.outbox[key] = "delivered"
        case events.OutboxDead(key=key):
            report.outbox[key] = "dead"
        case _:
            pass
