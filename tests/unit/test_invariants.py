"""Each invariant finds the journal that breaks it, and none finds fault with a whole one."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable

import msgspec
import pytest

from ninelives.ids import RunId, Seq
from ninelives.log import events, invariants
from ninelives.log.events import Event, Fact, Place
from ninelives.log.invariants import Invariant

RAW = msgspec.Raw(b"1")
PLACE = Place(delivery=1, name="f")


@dataclasses.dataclass
class Journal:
    """Builds journals, one fact after the other."""

    events: list[Event] = dataclasses.field(default_factory=list)
    incarnation: int = 1
    superstep: int = 0

    def add(self, *facts: Fact) -> int:
        for fact in facts:
            self.events.append(
                Event(
                    run=RunId("r"),
                    seq=Seq(len(self.events) + 1),
                    kind=events.KIND_OF[type(fact)],
                    at=0,
                    superstep=self.superstep,
                    executor="node",
                    incarnation=self.incarnation,
                    pid=1,
                    fact=fact,
                )
            )
        return len(self.events)


def started(epoch: int) -> events.IncarnationStarted:
    return events.IncarnationStarted(
        cause="start",
        epoch=epoch,
        pid=1,
        host="h",
        process_started_at=0,
        code_version="",
        attempt=1,
    )


def admitted() -> events.RunAdmitted:
    return events.RunAdmitted(
        workflow="w", input=RAW, input_fingerprint="", graph=RAW, settings=RAW, target=RAW
    )


def requested() -> events.ModelRequested:
    return events.ModelRequested(place=PLACE, model="m", reserved_tokens=400)


def replied(hold: int, status: str = "settled") -> events.ModelReplied:
    return events.ModelReplied(
        place=PLACE,
        hold=hold,
        reply=RAW,
        usage=RAW,
        hold_status=status,  # type: ignore[arg-type]
        tokens=30,
    )


def ended(intent: int, key: str = "k") -> events.EffectEnded:
    return events.EffectEnded(place=PLACE, key=key, intent=intent, outcome="confirmed")


INTENDED = events.EffectIntended(place=PLACE, key="k", arguments=RAW)
MESSAGE = events.Message(source="a", target="node", value=RAW)
QUEUED = events.OutboxQueued(channel="orders", key="r:o", payload=RAW)
COMMITTED = events.SuperstepCommitted(handlers=1)


def whole() -> Journal:
    """A journal with everything in it, killed once."""
    journal = Journal()
    journal.add(admitted(), started(1))
    journal.superstep = 1
    journal.add(replied(journal.add(requested())))
    intent = journal.add(INTENDED)
    journal.incarnation = 2
    journal.add(started(2), ended(intent))
    message = journal.add(events.Output(value=RAW), QUEUED, MESSAGE)
    journal.add(events.HandlerFinished(delivery=1, messages=[1]), COMMITTED)
    journal.superstep = 2
    unknown = replied(journal.add(requested()), "unknown")
    journal.add(unknown, events.BudgetHalted(budget="run", reason="no usage"))
    journal.add(events.HandlerFinished(delivery=message, messages=[message]), COMMITTED)
    journal.add(events.RunCompleted(), events.IncarnationEnded(cause="completed"))
    journal.incarnation = 0
    journal.add(dead(journal), events.OutboxRequeued(key="r:o", queued=queued(journal), by="me"))
    journal.add(delivered(journal))
    return journal


def queued(journal: Journal) -> int:
    return next(each.seq for each in journal.events if each.fact is QUEUED)


def delivered(journal: Journal) -> events.OutboxDelivered:
    return events.OutboxDelivered(key="r:o", queued=queued(journal), attempts=1)


def dead(journal: Journal) -> events.OutboxDead:
    return events.OutboxDead(
        key="r:o", queued=queued(journal), attempts=1, error="EffectRefused", message="no"
    )


def test_a_whole_journal_breaks_nothing() -> None:
    assert invariants.check(whole().events) == []
    assert invariants.check([]) == []


def hole(journal: Journal) -> None:
    del journal.events[5]


def second_admission(journal: Journal) -> None:
    journal.add(admitted())


def old_epoch(journal: Journal) -> None:
    journal.incarnation = 3
    journal.add(started(2))


def zombie(journal: Journal) -> None:
    journal.incarnation = 1
    journal.add(INTENDED)


def uncommitted_output(journal: Journal) -> None:
    journal.superstep = 3
    journal.add(events.Output(value=RAW))


def end_without_intent(journal: Journal) -> None:
    journal.add(ended(1, "other"))


def second_intent(journal: Journal) -> None:
    journal.add(INTENDED)


def settled_twice(journal: Journal) -> None:
    journal.add(replied(3))


def consumed_twice(journal: Journal) -> None:
    journal.add(events.HandlerFinished(delivery=1, messages=[1]))


def goes_on_after_the_end(journal: Journal) -> None:
    journal.add(events.RunFailed(reason="", error=""))


def unknown_without_halt(journal: Journal) -> None:
    journal.add(replied(journal.add(requested()), "unknown"))


def delivered_twice(journal: Journal) -> None:
    journal.add(delivered(journal))


BREAKS = [
    hole,
    second_admission,
    old_epoch,
    zombie,
    uncommitted_output,
    end_without_intent,
    second_intent,
    settled_twice,
    consumed_twice,
    goes_on_after_the_end,
    unknown_without_halt,
    delivered_twice,
]


@pytest.mark.parametrize(("invariant", "breaks"), list(zip(Invariant, BREAKS, strict=True)))
def test_a_broken_journal_is_found_by_its_invariant(
    invariant: Invariant, breaks: Callable[[Journal], None]
) -> None:
    journal = whole()
    breaks(journal)
    assert invariant in {each.invariant for each in invariants.check(journal.events)}


def unstarted(journal: Journal) -> None:
    """Somebody who never claimed the run writes into it, before it ends."""
    journal.events[3] = msgspec.structs.replace(journal.events[3], incarnation=9)


def lost_message(journal: Journal) -> None:
    """A message is sent in a superstep that commits, and the run completes without it."""
    at = next(i for i, each in enumerate(journal.events) if each.kind == "output")
    journal.events[at] = msgspec.structs.replace(journal.events[at], kind="message", fact=MESSAGE)


def effect_left_under_way(journal: Journal) -> None:
    """The run completes, and nobody waits for an effect that it has begun."""
    at = next(i for i, each in enumerate(journal.events) if each.kind == "output")
    fact = msgspec.structs.replace(INTENDED, key="left")
    journal.events[at] = msgspec.structs.replace(journal.events[at], fact=fact)


def queued_twice(journal: Journal) -> None:
    journal.add(QUEUED)


def dead_after_delivery(journal: Journal) -> None:
    journal.add(dead(journal))


def requeued_while_alive(journal: Journal) -> None:
    journal.add(events.OutboxRequeued(key="r:o", queued=queued(journal)))


def delivered_before_it_was_queued(journal: Journal) -> None:
    at = next(i for i, each in enumerate(journal.events) if each.kind == "output")
    fact = delivered(journal)
    journal.events[at] = msgspec.structs.replace(journal.events[at], fact=fact)


def queued_without_commit(journal: Journal) -> None:
    journal.superstep = 3
    journal.add(events.OutboxQueued(channel="orders", key="r:p", payload=RAW))


@pytest.mark.parametrize(
    ("invariant", "breaks"),
    [
        (Invariant.I3, unstarted),
        (Invariant.I6, effect_left_under_way),
        (Invariant.I9, lost_message),
        (Invariant.I12, queued_twice),
        (Invariant.I12, dead_after_delivery),
        (Invariant.I12, requeued_while_alive),
        (Invariant.I12, delivered_before_it_was_queued),
        (Invariant.I5, queued_without_commit),
    ],
)
def test_a_subtler_break_is_found_too(
    invariant: Invariant, breaks: Callable[[Journal], None]
) -> None:
    journal = whole()
    breaks(journal)
    assert invariant in {each.invariant for each in invariants.check(journal.events)}


def test_messages_that_wait_in_a_fan_in_at_the_end_are_not_lost() -> None:
    journal = Journal()
    journal.add(admitted(), started(1))
    journal.superstep = 1
    journal.add(MESSAGE, events.HandlerFinished(delivery=1, messages=[1]), COMMITTED)
    journal.add(events.RunCompleted(undelivered=1), events.IncarnationEnded(cause="completed"))
    assert invariants.check(journal.events) == []


def test_a_person_may_act_on_a_run_without_having_started_it() -> None:
    journal = Journal()
    journal.add(admitted(), started(1))
    journal.add(events.RunParked(code="BudgetHalted", reason=""))
    journal.add(events.IncarnationEnded(cause="parked"))
    journal.incarnation = 0
    journal.add(events.HaltCleared(budget="run", by="me"))
    assert invariants.check(journal.events) == []


def test_the_architecture_page_lists_the_invariants_as_they_are() -> None:
    page = (pathlib.Path(__file__).parents[2] / "ARCHITECTURE.md").read_text()
    for number, sentence in invariants.table():
        assert f"| {number} | {sentence} |" in page
