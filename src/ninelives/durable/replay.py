"""Finds the record that a repeated call of a durable operation belongs to.

A record's identity is its place: delivery, branch, kind and name, and which of the equal calls
it was. The rules, in this order:

1. An exact match (same name, same arguments, the n-th such call) is taken.
2. A record at the same ordinal with other arguments is taken with a note of the drift, if the
   code is the one that recorded it and the branch was sequential: a prompt that holds the time.
3. A call that finds nothing is new, unless its branch still holds records that nobody has
   asked for, which only other code or another path can explain: a divergence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ninelives.log import events
from ninelives.log.events import Event, Place

Kind = Literal["step", "model", "effect"]
Key: TypeAlias = tuple[Kind, int, str, str, int, int, str]
Outcome = (
    events.StepRecorded
    | events.StepFailed
    | events.ModelReplied
    | events.ModelUnsettled
    | events.EffectEnded
    | events.TransactionRolledBack
)


@dataclass(slots=True)
class Record:
    """What the journal holds of one operation: where it began and, if known, how it ended."""

    kind: Kind
    place: Place
    seq: int
    incarnation: int
    intent: events.EffectIntended | None = None
    resolved: events.EffectResolved | None = None
    retry: events.RetryScheduled | None = None
    outcome: Outcome | None = None
    outcome_seq: int = 0
    taken: bool = False


Records: TypeAlias = dict[Key, Record]


@dataclass(frozen=True, slots=True)
class Found:
    """A call's place, the record that answers it, and whether its arguments had drifted."""

    place: Place
    record: Record | None
    drift: bool = False


@dataclass(slots=True)
class Replay:
    """The records of one delivery, and the calls that were made so far in this process."""

    delivery: int
    attempt: int
    code_version: str
    code_versions: Mapping[int, str]
    records: list[Record] = field(default_factory=list)
    _exact: dict[tuple[str, str, str, str, int], Record] = field(init=False)
    _ordinals: dict[tuple[str, str, str], int] = field(default_factory=dict)
    _nths: dict[tuple[str, str, str, str], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        places = [(record, record.place) for record in self.records]
        self._exact = {
            (record.kind, place.branch, place.name, place.fingerprint, place.nth): record
            for record, place in places
        }

    def find(self, kind: Kind, branch: str, name: str, fingerprint: str) -> Found:
        """Number a call and find its record; a record is taken once."""
        place = self.number(kind, branch, name, fingerprint)
        record = self._exact.get((kind, branch, name, fingerprint, place.nth))
        if record is not None and not record.taken:
            record.taken = True
            return Found(place, record)
        record = self._drifted(kind, place)
        if record is not None:
            record.taken = True
            return Found(place, record, drift=True)
        return Found(place, None)

    def number(self, kind: Kind, branch: str, name: str, fingerprint: str) -> Place:
        """Give a call its place in the branch."""
        ordinal = self._ordinals.get((kind, branch, name), 0)
        self._ordinals[kind, branch, name] = ordinal + 1
        nth = self._nths.get((kind, branch, name, fingerprint), 0)
        self._nths[kind, branch, name, fingerprint] = nth + 1
        return Place(
            delivery=self.delivery,
            branch=branch,
            name=name,
            ordinal=ordinal,
            nth=nth,
            fingerprint=fingerprint,
        )

    def _drifted(self, kind: Kind, place: Place) -> Record | None:
        for record in self.records:
            if (
                not record.taken
                and record.kind == kind
                and record.place.branch == place.branch
                and record.place.name == place.name
                and record.place.ordinal == place.ordinal
                and not record.place.concurrent
                and self.code_versions.get(record.incarnation) == self.code_version
            ):
                return record
        return None

    def effect(self, key: str) -> Record | None:
        """Find an effect by its key, which is its identity."""
        for record in self.records:
            if record.intent is not None and record.intent.key == key:
                return record
        return None

    def leftovers(self, branch: str | None = None) -> list[Record]:
        """Records that nobody has asked for (in one branch, or in the whole delivery)."""
        return [
            record
            for record in self.records
            if not record.taken
            and _counts(record)
            and (branch is None or record.place.branch == branch)
        ]

    def retries(self, record: Record) -> bool:
        """Whether a recorded failure is tried again: it ended the last attempt.

        A failure after which its branch (or one around it) recorded anything was survived by
        the code, and is final.
        """
        outcome = record.outcome
        assert isinstance(
            outcome, events.StepFailed | events.ModelUnsettled | events.TransactionRolledBack
        )
        if outcome.attempt >= self.attempt:
            return False
        return not any(
            other.seq > record.outcome_seq and _encloses(other.place.branch, record.place.branch)
            for other in self.records
        )


def _encloses(outer: str, inner: str) -> bool:
    return outer in {"", inner} or inner.startswith(outer + "/")


def _counts(record: Record) -> bool:
    """A request that was never answered is no result that a replay could miss."""
    return record.kind == "effect" or isinstance(
        record.outcome, events.StepRecorded | events.StepFailed | events.ModelReplied
    )


def gather_records(since: Iterable[Event]) -> dict[int, list[Record]]:
    """Sort the facts of the superstep under way into records, by delivery.

    Of several facts about one place the last one holds: a call that was made again, a failure
    that was tried again.
    """
    records: Records = {}
    for event in since:
        match event.fact:
            case events.StepRecorded(place=place) | events.StepFailed(place=place):
                _end(records, "step", place, event)
            case events.ModelRequested(place=place):
                _begin_again(records, place, event)
            case events.RetryScheduled(operation=kind, place=place) as scheduled:
                record = records.setdefault(_key(kind, place), _begin(kind, place, event))
                record.retry, record.outcome = scheduled, None
            case events.ModelReplied(place=place) | events.ModelUnsettled(place=place):
                _end(records, "model", place, event)
            case _:
                _gather_effect(records, event)
    by_delivery: dict[int, list[Record]] = {}
    for record in records.values():
        by_delivery.setdefault(record.place.delivery, []).append(record)
    return by_delivery


def _begin_again(records: Records, place: Place, event: Event) -> None:
    """A request at a place where there may have been one before: only its retries are kept."""
    record = _begin("model", place, event)
    before = records.get(_key("model", place))
    record.retry = before.retry if before is not None else None
    records[_key("model", place)] = record


def _gather_effect(records: Records, event: Event) -> None:
    match event.fact:
        case events.EffectIntended(place=place) as intent:
            record = _begin("effect", place, event)
            record.intent = intent
            records[_key("effect", place)] = record
        case events.EffectEnded(place=place) | events.TransactionRolledBack(place=place):
            _end(records, "effect", place, event)
        case events.EffectResent(place=place):
            # It is out again, by this process; what a person knew was about the time before.
            record = records[_key("effect", place)]
            record.resolved, record.incarnation = None, event.incarnation
        case events.EffectResolved(intent=seq) as resolved:
            for record in records.values():
                if record.kind == "effect" and record.seq == seq:
                    record.resolved = resolved
        case _:
            pass


def _key(kind: Kind, place: Place) -> Key:
    return (
        kind,
        place.delivery,
        place.branch,
        place.name,
        place.ordinal,
        place.nth,
        place.fingerprint,
    )


def _begin(kind: Kind, place: Place, event: Event) -> Record:
    return Record(kind, place, event.seq, event.incarnation)


def _end(
    records: Records,
    kind: Kind,
    place: Place,
    event: Event,
) -> None:
    record = records.setdefault(_key(kind, place), _begin(kind, place, event))
    record.place = place  # the last word on whether it ran beside others
    record.outcome = event.fact  # type: ignore[assignment]
    record.outcome_seq = event.seq
    record.incarnation = event.incarnation
