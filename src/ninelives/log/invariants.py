"""The numbered invariants of every journal, and a check of one run's events against them.

They are cited by number in the code, in tests and in ARCHITECTURE.md.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ninelives.log import events
from ninelives.log.events import Event


class Invariant(enum.Enum):
    """A sentence that holds for every journal at every moment."""

    I1 = "A run's events are numbered from 1 without a hole."
    I2 = "The first event, and only the first, is the run's admission."
    I3 = "Epochs grow with every take-over, and incarnations are numbered from 1 without a hole."
    I4 = "No event of an older incarnation follows the start of a newer one."
    I5 = "Supersteps commit in order, each once; outputs, messages and state lie in one that does."
    I6 = (
        "An effect ends only after its intent; once its outcome is known, it has no other; none is "
        "under way when its run completes."
    )
    I7 = "A key names one effect: one intent."
    I8 = (
        "A model call's hold ends at most once, after its request; what was left open is settled "
        "or released by evidence or a person once."
    )
    I9 = "A message is consumed by one handler, once, after it was sent."
    I10 = (
        "After completion or cancellation nothing more happens but deliveries of the outbox and "
        "settlements of open holds; who has let go of a run writes nothing more."
    )
    I11 = (
        "A reply whose usage is unknown halts a budget in the same commit, unless its run wants "
        "the reservation counted."
    )
    I12 = (
        "An outbox key is queued once; its message is delivered or dies after that, is delivered "
        "once, and only a person brings it back from the dead."
    )


@dataclass(frozen=True, slots=True)
class Violation:
    """An event that breaks an invariant."""

    run: str
    invariant: Invariant
    seq: int
    what: str

    def __str__(self) -> str:
        return f"{self.run}: {self.invariant.name} at event {self.seq}: {self.what}"


def check(journal: Sequence[Event]) -> list[Violation]:
    """All violations in one run's journal, which is given whole and in order."""
    if not journal:
        return []
    run = journal[0].run
    found: list[Violation] = []
    for invariant, rule in _RULES:
        found += [Violation(run, invariant, seq, what) for seq, what in rule(journal)]
    return sorted(found, key=lambda each: each.seq)


Findings = Iterator[tuple[int, str]]


def _numbers(journal: Sequence[Event]) -> Findings:
    for expected, event in enumerate(journal, 1):
        if event.seq != expected:
            yield event.seq, f"expected event {expected}"
            return


def _admission(journal: Sequence[Event]) -> Findings:
    for event in journal:
        if isinstance(event.fact, events.RunAdmitted) != (event.seq == 1):
            yield event.seq, f"{event.kind} as event {event.seq}"


def _epochs(journal: Sequence[Event]) -> Findings:
    epoch = number = 0
    for event in journal:
        if isinstance(event.fact, events.IncarnationStarted):
            if event.fact.epoch <= epoch:
                yield event.seq, f"epoch {event.fact.epoch} after {epoch}"
            if event.incarnation != number + 1:
                yield event.seq, f"incarnation {event.incarnation} after {number}"
            epoch, number = event.fact.epoch, event.incarnation
        elif event.incarnation > max(number, event.seq == 1):  # the admission precedes its start
            yield event.seq, f"{event.kind} of incarnation {event.incarnation}, which never started"


def _fencing(journal: Sequence[Event]) -> Findings:
    latest = 1
    for event in journal:
        if event.incarnation and event.incarnation < latest:
            yield event.seq, f"{event.kind} of incarnation {event.incarnation}, {latest} owns it"
        latest = max(latest, event.incarnation)


def _supersteps(journal: Sequence[Event]) -> Findings:
    visible = (
        events.Output | events.Intermediate | events.Message | events.State | events.OutboxQueued
    )
    committed, waiting = 0, list[Event]()
    for event in journal:
        if isinstance(event.fact, visible):
            waiting.append(event)
        if isinstance(event.fact, events.SuperstepCommitted):
            if event.superstep != committed + 1:
                yield event.seq, f"superstep {event.superstep} after {committed}"
            for each in waiting:
                if each.superstep != event.superstep:
                    yield each.seq, f"{each.kind} of superstep {each.superstep}"
            committed, waiting = event.superstep, []
    for each in waiting:
        yield each.seq, f"{each.kind} is visible without its superstep's commit"


def _effects(journal: Sequence[Event]) -> Findings:
    intents: dict[int, str] = {}
    known: dict[str, str] = {}
    for event in journal:
        match event.fact:
            case events.EffectIntended(key=key):
                intents[event.seq] = key
            case events.TransactionRolledBack() as undone:
                if intents.get(undone.intent) != undone.key:
                    yield event.seq, f"transaction {undone.key!r} ends without its intent"
                if undone.key in known:
                    before = known[undone.key]
                    yield event.seq, f"transaction {undone.key!r} is undone, it was {before}"
            case events.EffectEnded() as ended:
                if intents.get(ended.intent) != ended.key:
                    yield event.seq, f"effect {ended.key!r} ends without its intent"
                if ended.key in known:
                    before = known[ended.key]
                    yield event.seq, f"effect {ended.key!r} is {ended.outcome}, it was {before}"
                if ended.outcome != "unknown":
                    known[ended.key] = ended.outcome
            case _:
                pass


def _abandoned(journal: Sequence[Event]) -> Findings:
    under_way: set[str] = set()
    for event in journal:
        match event.fact:
            case events.EffectIntended(key=key) | events.EffectResent(key=key):
                under_way.add(key)
            case events.EffectEnded(key=key) | events.TransactionRolledBack(key=key):
                under_way.discard(key)
            case events.RunCompleted():
                for key in sorted(under_way):
                    yield event.seq, f"effect {key!r} is under way"
            case _:
                pass


def _keys(journal: Sequence[Event]) -> Findings:
    seen: set[str] = set()
    for event in journal:
        if isinstance(event.fact, events.EffectIntended):
            if event.fact.key in seen:
                yield event.seq, f"key {event.fact.key!r} has a second intent"
            seen.add(event.fact.key)


def _holds(journal: Sequence[Event]) -> Findings:
    held: set[int] = set()
    unknown: set[int] = set()
    for event in journal:
        match event.fact:
            case events.ModelRequested():
                held.add(event.seq)
            case events.ModelReplied(hold=hold) | events.ModelUnsettled(hold=hold):
                if hold not in held:
                    yield event.seq, f"hold {hold} is not held"
                held.discard(hold)
                if _leaves_unknown(event.fact):
                    unknown.add(hold)
            case events.HoldResolved(hold=hold):
                if hold not in held | unknown:
                    yield event.seq, f"hold {hold} is not open"
                held.discard(hold)
                unknown.discard(hold)
            case _:
                pass


def _leaves_unknown(fact: events.Fact) -> bool:
    if isinstance(fact, events.ModelReplied):
        return fact.hold_status == "unknown"
    return isinstance(fact, events.ModelUnsettled) and fact.outcome == "unknown"


def _messages(journal: Sequence[Event]) -> Findings:
    pending: Counter[int] = Counter()
    for event in journal:
        match event.fact:
            case events.RunAdmitted() | events.Message():
                pending[event.seq] += 1
            case events.HandlerFinished(messages=consumed):
                for seq in consumed:
                    if pending[seq] != 1:
                        yield event.seq, f"message {seq} is not pending"
                    pending[seq] -= 1
            case events.RunCompleted(undelivered=undelivered):
                left = [seq for seq, count in pending.items() if count > 0]
                if len(left) != undelivered:
                    yield event.seq, f"messages {left} are left, {undelivered} may be"
            case _:
                pass


_AFTER_THE_END = (
    events.IncarnationEnded,
    events.OutboxDelivered,
    events.OutboxDead,
    events.OutboxRequeued,
    events.HoldResolved,
)


def _ends(journal: Sequence[Event]) -> Findings:
    ended, gone = False, set[int]()
    for event in journal:
        if event.incarnation in gone:
            yield event.seq, f"{event.kind} of incarnation {event.incarnation}, which had let go"
        if isinstance(event.fact, events.IncarnationEnded):
            gone.add(event.incarnation)
        if ended and not isinstance(event.fact, _AFTER_THE_END):
            yield event.seq, f"{event.kind} after the run's end"
        ended |= isinstance(event.fact, events.RunCompleted | events.RunCancelled)


def _halts(journal: Sequence[Event]) -> Findings:
    for event, after in zip(journal, [*journal[1:], None], strict=True):
        unknown = isinstance(event.fact, events.ModelReplied) and (
            event.fact.hold_status == "unknown" and not event.fact.counted
        )
        halts = after is not None and isinstance(after.fact, events.BudgetHalted)
        if unknown and not halts:
            yield event.seq, "the usage is unknown and nothing was halted"


def _outbox(journal: Sequence[Event]) -> Findings:
    keys: dict[int, str] = {}
    states: dict[str, str] = {}
    for event in journal:
        match event.fact:
            case events.OutboxQueued(key=key):
                if key in states:
                    yield event.seq, f"outbox key {key!r} is queued a second time"
                keys[event.seq], states[key] = key, "queued"
            case (
                events.OutboxDelivered(key=key, queued=queued)
                | events.OutboxDead(key=key, queued=queued)
                | events.OutboxRequeued(key=key, queued=queued)
            ):
                wanted = "dead" if isinstance(event.fact, events.OutboxRequeued) else "queued"
                state = states.get(key, "not known") if keys.get(queued) == key else "not known"
                if state != wanted:
                    yield event.seq, f"{event.kind} of {key!r}, which is {state}"
                states[key] = _OUTBOX_STATES[type(event.fact)]
            case _:
                pass


_OUTBOX_STATES: dict[type[events.Fact], str] = {
    events.OutboxDelivered: "delivered",
    events.OutboxDead: "dead",
    events.OutboxRequeued: "queued",
}


_RULES = (
    (Invariant.I1, _numbers),
    (Invariant.I2, _admission),
    (Invariant.I3, _epochs),
    (Invariant.I4, _fencing),
    (Invariant.I5, _supersteps),
    (Invariant.I6, _effects),
    (Invariant.I6, _abandoned),
    (Invariant.I7, _keys),
    (Invariant.I8, _holds),
    (Invariant.I9, _messages),
    (Invariant.I10, _ends),
    (Invariant.I11, _halts),
    (Invariant.I12, _outbox),
)


def table() -> Iterable[tuple[str, str]]:
    """Numbers and sentences, for documents and the command line."""
    return [(each.name, each.value) for each in Invariant]
