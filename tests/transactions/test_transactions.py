"""Transactions: one contract for every kind of database that a user may have."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Never

import pytest

from ninelives import errors
from ninelives.durable import databases
from ninelives.durable.context import WorkflowContext
from ninelives.durable.databases import Row, Work
from ninelives.durable.retries import Retry
from ninelives.engine.runtime import Runtime
from ninelives.graph.workflow import Workflow
from support import bookings, crash
from support.bookings import Bookings

Single = Callable[[object], Workflow]
Context = WorkflowContext[Never, str]
ROW = Row(store="s", key="r:k", fingerprint="book 1", epoch=1, at=1000)


def work(function: Callable[..., object], *args: object) -> Work:
    return Work(function, args, lambda result: repr(result).encode())


# -- through a run ------------------------------------------------------------------------


async def test_a_recorded_transaction_is_not_run_again(
    url: str, single: Single, booked: Bookings
) -> None:
    bomb = crash.Bomb()

    async def node(value: int, ctx: Context) -> None:
        answer = await ctx.transaction(booked.database, bookings.book, "room", key="k")
        bomb.here()
        await ctx.yield_output(answer)

    await crash.until_dead(url, single(node), 0)
    ended = await crash.resumed(url, single(node))
    assert ended.outputs == ["booked room"]
    assert booked.items() == ["room"]
    assert booked.kept() == [("r:k", "done")]
    assert ended.count("replayed") == 1


async def test_what_was_committed_before_the_journal_knew_is_adopted(
    url: str, single: Single, booked: Bookings
) -> None:
    """The database has the row, and the process dies before the outcome is recorded."""
    bomb = crash.Bomb()

    class Dies:
        name = "a database that answers into the void"

        async def transact(self, row: Row, work: Work) -> databases.Kept:
            kept = await databases.resolve(booked.database).transact(row, work)
            bomb.here()
            return kept

        async def bar(self, row: Row) -> databases.Kept | None:
            return await databases.resolve(booked.database).bar(row)

        async def create_table(self) -> None: ...

        async def prune(self, before: int) -> int:
            return before

    async def node(value: int, ctx: Context) -> None:
        item = f"room {ctx.incarnation}"
        await ctx.yield_output(await ctx.transaction(Dies(), bookings.book, item, key="k"))

    await crash.until_dead(url, single(node), 0)
    assert booked.items() == ["room 1"]
    ended = await crash.resumed(url, single(node))
    # Its arguments have drifted since: those of the intent stand, and so does the result.
    assert ended.outputs == ["booked room 1"]
    assert booked.items() == ["room 1"]
    ends = [event.fact for event in ended.events if event.kind == "effect_ended"]
    assert [each.by for each in ends] == ["reconcile"]  # type: ignore[attr-defined]


async def test_a_function_that_raises_has_done_nothing_and_resume_runs_it_again(
    url: str, single: Single, booked: Bookings
) -> None:
    calls: list[str] = []

    def fails_once(transaction: Any, item: str) -> str:
        bookings.write(transaction, item)
        calls.append(item)
        if len(calls) == 1:
            raise ValueError("full")
        return item

    async def node(value: int, ctx: Context) -> None:
        await ctx.yield_output(await ctx.transaction(booked.database, fails_once, "a", key="k"))

    failed = await crash.ran(url, single(node), 0)
    assert failed.status.state == "failed"
    assert "rolled back: ValueError: full" in failed.status.reason
    assert (booked.items(), booked.kept()) == ([], [])
    ended = await crash.resumed(url, single(node))
    assert ended.outputs == ["a"]
    assert booked.items() == ["a"]
    assert ended.count("effect_intended") == ended.count("transaction_rolled_back") == 1


async def test_a_failure_that_the_code_survived_stays_a_failure(
    url: str, single: Single, booked: Bookings
) -> None:
    calls: list[str] = []
    bomb = crash.Bomb()

    def fails_once(transaction: Any) -> str:
        calls.append("call")
        if len(calls) == 1:
            raise ValueError("full")
        return "booked"

    async def node(value: int, ctx: Context) -> None:
        try:
            answer = await ctx.transaction(booked.database, fails_once, key="k")
        except errors.TransactionFailed as error:
            answer = str(error)
        await ctx.step(str.upper, "after")
        bomb.here()
        await ctx.yield_output(answer)

    await crash.until_dead(url, single(node), 0)
    ended = await crash.resumed(url, single(node))
    assert ended.outputs == ["transaction 'r:k' was rolled back: ValueError: full"]
    assert calls == ["call"]


async def test_a_retry_runs_it_again_under_the_same_key(
    url: str, single: Single, booked: Bookings
) -> None:
    calls: list[str] = []

    def fails_twice(transaction: Any) -> str:
        bookings.write(transaction, "a")
        calls.append("call")
        if len(calls) < 3:
            raise ValueError("busy")
        return "done"

    async def node(value: int, ctx: Context) -> None:
        retry = Retry(attempts_max=3, wait_seconds=0.001)
        answer = await ctx.transaction(booked.database, fails_twice, key="k", retry=retry)
        await ctx.yield_output(answer)

    ended = await crash.ran(url, single(node), 0)
    assert ended.outputs == ["done"]
    assert booked.items() == ["a"]
    assert ended.count("retry_scheduled") == 2


async def test_a_no_of_the_function_is_final(url: str, single: Single, booked: Bookings) -> None:
    def refuses(transaction: Any) -> None:
        bookings.write(transaction, "a")
        raise errors.EffectRefused("sold out")

    async def node(value: int, ctx: Context) -> None:
        try:
            await ctx.transaction(booked.database, refuses, key="k")
        except errors.EffectRefused as error:
            await ctx.yield_output(str(error))

    ended = await crash.ran(url, single(node), 0)
    assert ended.outputs == ["sold out"]
    assert booked.items() == []


async def test_a_result_that_cannot_be_recorded_is_rolled_back(
    url: str, single: Single, booked: Bookings
) -> None:
    def answers_with_a_lock(transaction: Any) -> object:
        bookings.write(transaction, "a")
        return threading.Lock()

    async def node(value: int, ctx: Context) -> None:
        await ctx.transaction(booked.database, answers_with_a_lock, key="k")

    failed = await crash.ran(url, single(node), 0)
    assert "Unencodable: cannot encode result of transaction 'r:k'" in failed.status.reason
    assert (booked.items(), booked.kept()) == ([], [])


async def test_one_key_for_two_transactions_is_a_conflict(
    url: str, single: Single, booked: Bookings
) -> None:
    async def node(value: int, ctx: Context) -> None:
        await ctx.transaction(booked.database, bookings.book, "a", key="k")
        await ctx.transaction(booked.database, bookings.book, "b", key="k")

    failed = await crash.ran(url, single(node), 0)
    assert failed.status.code == "KeyConflict"
    assert booked.items() == ["a"]


async def test_a_transaction_and_an_effect_may_not_share_a_key(
    url: str, single: Single, booked: Bookings
) -> None:
    async def node(value: int, ctx: Context) -> None:
        await ctx.effect(str.upper, "a", key="k")
        await ctx.transaction(booked.database, bookings.book, "a", key="k")

    failed = await crash.ran(url, single(node), 0)
    assert failed.status.code == "KeyConflict"
    assert booked.items() == []


async def test_a_row_with_another_fingerprint_is_a_conflict_that_shows_both(
    url: str, single: Single, booked: Bookings
) -> None:
    """A copy of the store has gone another way, and both use one database."""

    async def node(value: int, ctx: Context) -> None:
        async with Runtime(url) as runtime:
            theirs = replace(
                ROW, store=await runtime.store.identity(), fingerprint="book of-the-copy"
            )
        await databases.resolve(booked.database).transact(theirs, work(bookings.book, "theirs"))
        await ctx.transaction(booked.database, bookings.book, "ours", key="k")

    failed = await crash.ran(url, single(node), 0)
    assert failed.status.code == "KeyConflict"
    assert "for book of-the-copy; now asked for book " in failed.status.reason
    assert booked.items() == ["theirs"]


async def test_two_stores_may_use_one_database_and_the_same_run_ids(
    tmp_path: Any, single: Single, booked: Bookings
) -> None:
    async def node(value: int, ctx: Context) -> None:
        await ctx.transaction(booked.database, bookings.book, "a", key="k")

    for name in ("one", "two"):
        await crash.ran(f"sqlite:///{tmp_path}/{name}.db", single(node), 0)
    assert booked.items() == ["a", "a"]


@pytest.mark.parametrize("operation", ["step", "effect", "transaction", "outbox", "model"])
async def test_durable_operations_inside_raise(
    url: str, single: Single, booked: Bookings, operation: str
) -> None:
    async def node(value: int, ctx: Context) -> None:
        operations: dict[str, Callable[[], Any]] = {
            "step": lambda: ctx.step(str.upper, "a"),
            "effect": lambda: ctx.effect(str.upper, "a", key="inner"),
            "transaction": lambda: ctx.transaction(booked.database, bookings.book, key="inner"),
            "outbox": lambda: ctx.outbox("channel", "a", key="inner"),
            "model": lambda: ctx.model("scripted:a", "a"),
        }

        def nests(transaction: Any) -> None:
            bookings.write(transaction, "a")

            async def call() -> None:
                await operations[operation]()

            asyncio.run(call())

        await ctx.transaction(booked.database, nests, key="k")

    failed = await crash.ran(url, single(node), 0)
    assert f"{operation} inside transaction 'r:k' would not be repeated" in failed.status.reason
    assert booked.items() == []


async def test_without_its_table_a_transaction_says_how_to_create_it(
    url: str, single: Single, bare: Bookings
) -> None:
    async def node(value: int, ctx: Context) -> None:
        await ctx.transaction(bare.database, bookings.book, "a", key="k")

    failed = await crash.ran(url, single(node), 0)
    assert "ninelives transactions init" in failed.status.reason
    assert bare.items() == []


# -- the database alone -------------------------------------------------------------------


@pytest.mark.parametrize("statement", ["COMMIT", "ROLLBACK"])
async def test_a_function_that_ends_the_transaction_itself_is_told_so(
    booked: Bookings, statement: str
) -> None:
    database = databases.resolve(booked.database)

    def ends(transaction: Any) -> None:
        bookings.write(transaction, "a")
        bookings.run(transaction, statement)

    with pytest.raises(errors.TransactionMisused, match="r:k"):
        await database.transact(ROW, work(ends))


async def test_a_function_that_ends_it_and_hides_that_is_told_so(booked: Bookings) -> None:
    database = databases.resolve(booked.database)

    def ends(transaction: Any) -> None:
        bookings.write(transaction, "a")
        try:
            transaction.commit()
        except Exception:
            return

    with pytest.raises(errors.TransactionMisused, match="r:k"):
        await database.transact(ROW, work(ends))
    assert booked.items() == []


async def test_savepoints_are_the_functions_own(booked: Bookings) -> None:
    database = databases.resolve(booked.database)

    def tries(transaction: Any) -> str:
        bookings.write(transaction, "kept")
        bookings.run(transaction, "SAVEPOINT here")
        bookings.write(transaction, "given up")
        bookings.run(transaction, "ROLLBACK TO here")
        return "done"

    kept = await database.transact(ROW, work(tries))
    assert kept.is_new
    assert booked.items() == ["kept"]


async def test_of_two_at_once_one_does_the_work_and_both_get_its_result(booked: Bookings) -> None:
    """A zombie and its successor: both are inside before either has committed."""
    database, entered, others = databases.resolve(booked.database), threading.Event(), 20

    def book(transaction: Any) -> str:
        entered.set()
        bookings.write(transaction, "a")
        return "once"

    kept = await asyncio.gather(
        *(database.transact(replace(ROW, epoch=n), work(book)) for n in range(others))
    )
    assert sum(each.is_new for each in kept) == 1
    assert {each.result for each in kept} == {b"'once'"}
    assert booked.items() == ["a"]


async def test_what_a_later_owner_has_barred_an_earlier_one_may_not_do(booked: Bookings) -> None:
    """The successor has recorded that it was rolled back; then the zombie wakes."""
    database = databases.resolve(booked.database)
    assert await database.bar(replace(ROW, epoch=3)) is None
    with pytest.raises(errors.StaleEpoch):
        await database.transact(replace(ROW, epoch=2), work(bookings.book, "zombie"))
    kept = await database.transact(replace(ROW, epoch=3), work(bookings.book, "successor"))
    assert kept.is_new
    assert booked.items() == ["successor"]


async def test_what_has_committed_is_not_barred_but_told(booked: Bookings) -> None:
    database = databases.resolve(booked.database)
    await database.transact(ROW, work(bookings.book, "zombie"))
    barred = await database.bar(replace(ROW, epoch=3))
    assert barred is not None
    assert barred.result == b"'booked zombie'"
    assert not barred.is_new


async def test_a_successor_whose_function_raises_bars_its_predecessor(
    url: str, single: Single, booked: Bookings
) -> None:
    bomb = crash.Bomb()

    def dies_then_fails(transaction: Any) -> None:
        bookings.write(transaction, "a")
        bomb.here()
        raise ValueError("full")

    async def node(value: int, ctx: Context) -> None:
        await ctx.transaction(booked.database, dies_then_fails, key="k")

    await crash.until_dead(url, single(node), 0)
    ended = await crash.resumed(url, single(node))
    assert ended.status.state == "failed"
    assert booked.kept() == [("r:k", "barred")]


async def test_old_rows_are_pruned_and_young_ones_stay(booked: Bookings) -> None:
    database = databases.resolve(booked.database)
    await database.transact(ROW, work(bookings.book, "old"))
    await database.transact(replace(ROW, key="r:young", at=3000), work(bookings.book, "young"))
    assert await databases.prune_transactions(booked.database, before=2000) == 1
    assert booked.kept() == [("r:young", "done")]


async def test_the_table_may_be_created_again(booked: Bookings) -> None:
    await databases.create_transactions_table(booked.database)
    assert booked.kept() == []
