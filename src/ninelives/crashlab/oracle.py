"""Judges a scenario against the clean run, from two records: the journal and the witness."""

from __future__ import annotations

import collections
from collections.abc import Iterator

from ninelives.crashlab.scenario import Outcome
from ninelives.log import events


def judge(clean: Outcome, outcome: Outcome) -> list[str]:
    """What would have gone wrong for a user, in plain words; empty if nothing."""
    return [
        *_ending(clean, outcome),
        *_streams(clean, outcome),
        *_effects(outcome),
        *_requests(clean, outcome),
        *_journal(outcome),
    ]


def judge_clean(clean: Outcome) -> list[str]:
    """What is wrong with a workflow even if nobody kills it."""
    found = (
        [] if clean.codes == [0] else [f"the clean run ended with {clean.codes}: {clean.errors}"]
    )
    found += _journal(clean)
    acts = {(act["executor"], act["act"], act["line"]) for act in clean.unrecorded}
    found += [
        f"executor {executor!r} {act} by itself, outside of any step or effect: after a crash it "
        f"does so again, and nobody knows ({line})"
        for executor, act, line in sorted(acts)
    ]
    return found


def _ending(clean: Outcome, outcome: Outcome) -> Iterator[str]:
    if outcome.codes[-1] != clean.codes[-1]:
        last = outcome.errors.strip().splitlines()[-2:]
        yield (
            f"the run ended with exit code {outcome.codes[-1]} instead of {clean.codes[-1]}: "
            f"{' '.join(last)}"
        )


def _streams(clean: Outcome, outcome: Outcome) -> Iterator[str]:
    if outcome.outputs != clean.outputs:
        yield f"a client gets other outputs: {outcome.outputs} instead of {clean.outputs}"
    numbers = [event.seq for event in outcome.events]
    if numbers != list(range(1, len(numbers) + 1)):
        yield "a client that comes late sees a hole or a repetition in the journal"
    if outcome.resumed != outcome.events:
        yield "a client that came back with its cursor sees something else than one that stayed"


def _effects(outcome: Outcome) -> Iterator[str]:
    facts = [event.fact for event in outcome.events]
    resent = {fact.key for fact in facts if isinstance(fact, events.EffectResent)}
    for key, times in collections.Counter(outcome.sent).items():
        if times > 1 and key not in resent:
            yield f"effect {key!r} went out {times} times: a customer would have got it twice"
    intended = {fact.key for fact in facts if isinstance(fact, events.EffectIntended)}
    for key in set(outcome.sent) - intended:
        yield f"effect {key!r} went out, and the journal does not know of it"


def _requests(clean: Outcome, outcome: Outcome) -> Iterator[str]:
    """A request goes out again only if its outcome was never recorded; each has its hold."""
    made, unanswered = len(outcome.report.holds), len(outcome.report.unanswered)
    if not made - unanswered <= outcome.requests <= made:
        yield f"the ledger counts {made} model requests, the provider got {outcome.requests}"
    answered = len(clean.report.holds) - len(clean.report.unanswered)
    if made - unanswered != answered:
        yield f"{made - unanswered} answers of the model were paid for instead of {answered}"


def _journal(outcome: Outcome) -> Iterator[str]:
    for violation in outcome.violations:
        yield f"the journal breaks an invariant: {violation}"
