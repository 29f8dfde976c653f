"""What a person does to a run: each act is an event in its journal, with who did it."""

from __future__ import annotations

import msgspec

from ninelives import codec, errors, ids
from ninelives.durable.effects import Absent, Applied
from ninelives.engine.run import status_of
from ninelives.engine.runner import Status
from ninelives.ids import RunId
from ninelives.log import events
from ninelives.log.events import Draft, Fact
from ninelives.store.base import KeyTaken, RunRow, Store
from ninelives.store.budgets import BudgetAct


async def clear_halt(store: Store, run: RunId, at: int, *, by: str, why: str = "") -> bool:
    """Let a run's halted budget admit calls again; unknown holds stay counted.

    Returns whether it was halted.

    Raises:
        RunNotFound: no such run.
        RunEnded: it has completed or was cancelled.
    """
    row = await store.run(run)
    own = ids.run_budget(run)
    if not (await store.budgets.show(own, at=at)).halted:
        return False
    await _act(store, row, at, events.HaltCleared(budget=own, by=by, why=why))
    return True


async def change_budget(store: Store, fact: BudgetAct, at: int) -> None:
    """Record what a person does to a budget: in its run's journal, or in the budget's own.

    Raises:
        BudgetUnknown: there is none of that name (for clearing a halt).
        RunNotFound: the budget would be that of a run which does not exist.
        RunEnded: the run has completed or was cancelled.
    """
    name = ids.budget_name(fact.budget)
    if name.startswith(ids.RUN_BUDGET):
        row = await store.run(RunId(name.removeprefix(ids.RUN_BUDGET)))
        await _act(store, row, at, fact)
    else:
        await store.budgets.act(name, Draft(fact=fact, at=at, superstep=0))


async def resolve(
    store: Store, run: RunId, key: str, answer: Applied | Absent, at: int, *, by: str
) -> None:
    """Say what became of an effect whose outcome is unknown; `resume` acts on it.

    `key` is the full key, or the part behind the run's id.

    Raises:
        EffectNotOpen: the effect is not unknown (any more).
        Unencodable: the result that it is said to have had cannot be recorded.
    """
    row = await store.run(run)
    full = key if key.startswith(f"{run}:") else f"{run}:{key}"
    taken = await store.key(full)
    if taken is not None and taken.other:
        taken = None  # it is no effect's
    if taken is None or taken.run != run or taken.state not in {"intended", "unknown"}:
        raise errors.EffectNotOpen(run, full, taken.state if taken else "not known")
    await _require_no_transaction(store, run, taken)
    applied = isinstance(answer, Applied)
    result = codec.encode(answer.result, codec.GLOBAL) if isinstance(answer, Applied) else b"null"
    fact = events.EffectResolved(
        key=full,
        intent=taken.seq,
        answer="applied" if applied else "absent",
        result=msgspec.Raw(result),
        by=by,
    )
    await _act(store, row, at, fact)


async def _require_no_transaction(store: Store, run: RunId, taken: KeyTaken) -> None:
    """What became of a transaction stands in its database; nobody need say it."""
    fact = (await store.events(run, after=taken.seq - 1, limit=1))[0].fact
    if isinstance(fact, events.EffectIntended) and fact.database:
        state = f"a transaction in {fact.database}, which is asked on `resume`"
        raise errors.EffectNotOpen(run, fact.key, state)


async def cancel(store: Store, run: RunId, at: int, *, by: str) -> Status:
    """End a run: at once if nobody works on it, else at its owner's next boundary.

    Effects under way are seen to their outcome. Returns the status afterwards.

    Raises:
        RunEnded: it has completed or was cancelled before.
    """
    row = await store.run(run)
    wanted, ended = events.CancelRequested(by=by), events.RunCancelled(by=by)
    await _act(store, row, at, wanted, if_unowned=ended)
    return status_of(await store.run(run))


async def _act(
    store: Store, row: RunRow, at: int, fact: Fact, *, if_unowned: Fact | None = None
) -> None:
    """Append a person's fact; `if_unowned` too if nobody living owns the run."""

    def draft(each: Fact) -> Draft:
        return Draft(fact=each, at=at, superstep=row.superstep)

    follows = [] if if_unowned is None else [draft(if_unowned)]
    await store.act(row.id, [draft(fact)], if_unowned=follows)
