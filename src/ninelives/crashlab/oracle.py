"""Judges a scenario against the clean run, from two records: the journal and the witness."""

from __future__ import annotations

import collections
from collections.abc import Iterator

from ninelives.crashlab import clients, processes
from ninelives.crashlab.scenario import Outcome
from ninelives.log import events
from ninelives.log.projection import HoldStatus


def judge(clean: Outcome, outcome: Outcome) -> list[str]:
    """What would have gone wrong for a user, in plain words; empty if nothing."""
    return [
        *_ending(clean, outcome),
        *_streams(clean, outcome),
        *_effects(outcome),
        *_deliveries(clean, outcome),
        *_requests(clean, outcome),
        *_ledger(outcome),
        *_journal(outcome),
        *_left_behind(outcome),
    ]


def judge_clean(clean: Outcome) -> list[str]:
    """What is wrong with a workflow even if nobody kills it."""
    found = [*_ended_badly(clean), *_ledger(clean), *_journal(clean), *_left_behind(clean)]
    acts = {(act["executor"], act["act"], act["line"]) for act in clean.unrecorded}
    found += [
        f"executor {executor!r} {act} by itself, outside of any step or effect: after a crash it "
        f"does so again, and nobody knows ({line})"
        for executor, act, line in sorted(acts)
    ]
    return found


def _ended_badly(clean: Outcome) -> Iterator[str]:
    if clean.code == processes.HUNG:
        yield "the clean run did not end in time"
    elif clean.code != 0:
        yield f"the clean run ended with exit code {clean.code}: {clean.complaint}"


def _ending(clean: Outcome, outcome: Outcome) -> Iterator[str]:
    if outcome.code == processes.HUNG:
        yield "the run did not come to its end in time"
    elif outcome.code != clean.code:
        yield (
            f"the run ended with exit code {outcome.code} instead of {clean.code}: "
            f"{outcome.complaint}"
        )
    if outcome.unreadable:
        yield f"the store cannot be read in the end: {outcome.unreadable}"


def _streams(clean: Outcome, outcome: Outcome) -> Iterator[str]:
    """Who watched, who came back and who came late see the same, and what a clean run shows."""
    late, wanted = outcome.reading.late, clean.reading.outputs
    if outcome.reading.outputs != wanted:
        yield f"a client gets other outputs: {outcome.reading.outputs} instead of {wanted}"
    watched = clients.outputs_of(outcome.watched)
    if watched != wanted:
        yield f"a client that watched all along saw {watched} instead of {wanted}"
    if outcome.watched != late:
        yield "a client that watched all along saw other events than one that comes late"
    if outcome.watcher_trouble:
        yield f"a client that watched all along lost its stream: {outcome.watcher_trouble}"
    if outcome.reading.returned != late:
        yield "a client that came back with its cursor sees something else than one that stayed"
    numbers = [event.seq for event in late]
    if numbers != list(range(1, len(numbers) + 1)):
        yield "a client that comes late sees a hole or a repetition in the journal"


def _effects(outcome: Outcome) -> Iterator[str]:
    facts = [event.fact for event in outcome.reading.late]
    resent = {fact.key for fact in facts if isinstance(fact, events.EffectResent)}
    for key, times in collections.Counter(outcome.sent).items():
        if times > 1 and key not in resent:
            yield f"effect {key!r} went out {times} times: a customer would have got it twice"
    intended = {fact.key for fact in facts if isinstance(fact, events.EffectIntended)}
    for key in sorted(set(outcome.sent) - intended):
        yield f"effect {key!r} went out, and the journal does not know of it"


def _deliveries(clean: Outcome, outcome: Outcome) -> Iterator[str]:
    """A message goes out again only for a relay that died before its mark."""
    queued, wanted = outcome.report.outbox, clean.report.outbox
    if len(queued) != len(wanted):
        yield f"{len(queued)} messages were left in the outbox instead of {len(wanted)}"
    sent = collections.Counter(outcome.delivered)
    for key in sorted(set(sent) - set(queued)):
        yield f"message {key!r} was delivered, and the journal does not know of it"
    died = sum(process.killed and process.words[0] == "relay" for process in outcome.processes)
    for key, times in sent.items():
        if times > 1 + died:
            yield f"message {key!r} was delivered {times} times, and {died} relays died"
    ended = sorted(wanted.values()), sorted(queued.values())
    if ended[0] != ended[1]:
        yield f"messages of the outbox ended as {ended[1]} instead of {ended[0]}"


def _requests(clean: Outcome, outcome: Outcome) -> Iterator[str]:
    """A request goes out again only if its outcome was never recorded; each has its hold."""
    made, unanswered = len(outcome.report.holds), len(outcome.report.unanswered)
    if not made - unanswered <= outcome.requests <= made:
        yield f"the ledger counts {made} model requests, the provider got {outcome.requests}"
    answered = len(clean.report.holds) - len(clean.report.unanswered)
    if made - unanswered != answered:
        yield f"{made - unanswered} answers of the model were paid for instead of {answered}"


def _ledger(outcome: Outcome) -> Iterator[str]:
    """What the budget says, against the journal, and against what the provider has counted."""
    spent, report = outcome.reading.spending, outcome.report
    booked: dict[HoldStatus, int] = {
        "settled": spent.settled,
        "held": spent.held,
        "unknown": spent.unknown,
    }
    for status, tokens in booked.items():
        wanted = report.count(status)[1]
        if tokens != wanted:
            yield f"the budget says that {tokens} tokens are {status}, its journal says {wanted}"
    for seq, billed in outcome.billed.items():
        hold = report.holds.get(seq)
        if hold is None or hold.status == "released":
            yield f"the provider bills {billed} tokens of call {seq}, the budget none"
        elif hold.status == "settled" and hold.tokens != billed:
            yield f"call {seq} settled {hold.tokens} tokens, the provider has counted {billed}"
    # A call that took more than it had reserved is the one that may exceed what is committed.
    provider = sum(
        min(billed, report.holds[seq].tokens)
        for seq, billed in outcome.billed.items()
        if seq in report.holds
    )
    if spent.committed < provider:
        yield f"the provider bills {provider} tokens, the budget counts {spent.committed}"


def _journal(outcome: Outcome) -> Iterator[str]:
    for violation in outcome.reading.violations:
        yield f"the journal breaks an invariant: {violation}"


def _left_behind(outcome: Outcome) -> Iterator[str]:
    for words in sorted({words for process in outcome.processes for words in process.left}):
        yield f"a process was left behind: {words}"
