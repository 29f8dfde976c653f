"""What every store promises of notes, whatever it is built on."""

from __future__ import annotations

import asyncio
import dataclasses
import pathlib

import apsw
import pytest

from ninelives import errors
from ninelives.ids import RunId
from ninelives.store import migrate, queries
from ninelives.store.base import RunRow, Store
from ninelives.store.budgets import RunBudget
from ninelives.store.notes import Note
from ninelives.store.sqlite import SqliteStore
from support import facts


async def test_a_note_is_what_was_put_last_until_it_is_dropped(store: Store) -> None:
    assert await store.notes.get("s", "k") is None
    await store.notes.put([Note("s", "k", b"one"), Note("s", "other", b"x")])
    await store.notes.put([Note("s", "k", b"\x00two")])
    assert await store.notes.get("s", "k") == b"\x00two"
    assert await store.notes.drop([("s", "k"), ("s", "k"), ("t", "other")]) == 1
    assert await store.notes.get("s", "k") is None
    assert await store.notes.get("s", "other") == b"x"


async def test_only_one_of_many_who_take_a_key_at_once_gets_it(store: Store) -> None:
    tries = [store.notes.put([Note("s", "k", b"%d" % n)], only_new=True) for n in range(20)]
    won = await asyncio.gather(*tries)
    assert sum(won) == 1
    assert await store.notes.get("s", "k") == b"%d" % won.index(True)


async def test_if_one_key_is_in_use_none_of_the_new_notes_is_written(store: Store) -> None:
    await store.notes.put([Note("s", "b", b"old")])
    notes = [Note("s", "a", b"new"), Note("s", "b", b"new")]
    assert not await store.notes.put(notes, only_new=True)
    assert await store.notes.get("s", "a") is None
    assert await store.notes.get("s", "b") == b"old"


async def test_notes_are_read_by_prefix_in_pages(store: Store) -> None:
    keys = ["a", "b/1", "b/2", "b/3", "bb", "c", "b/\N{GRINNING FACE}"]
    await store.notes.put([*(Note("s", key) for key in keys), Note("t", "b/9")])

    async def page(prefix: str, after: str = "", limit: int = 100) -> list[str]:
        found = await store.notes.under("s", prefix=prefix, after=after, limit=limit)
        return [note.key for note in found]

    assert await page("b/") == ["b/1", "b/2", "b/3", "b/\N{GRINNING FACE}"]
    assert await page("b/", limit=2) == ["b/1", "b/2"]
    assert await page("b/", after="b/2") == ["b/3", "b/\N{GRINNING FACE}"]
    assert await page("b/", after="a") == await page("b/")
    assert await page("") == sorted(keys)
    assert await page("x") == []


async def test_notes_of_an_admission_are_written_with_it_or_not_at_all(store: Store) -> None:
    note = Note("s", "r", b"1")
    refused = facts.admission(budget=RunBudget(named=("nobody's",)))
    with pytest.raises(errors.BudgetUnknown):
        await store.admit(dataclasses.replace(refused, notes=(note,)))
    assert await store.notes.get("s", "r") is None
    await store.admit(dataclasses.replace(facts.admission(), notes=(note,)))
    assert await store.notes.get("s", "r") == b"1"
    again = dataclasses.replace(facts.admission(), notes=(Note("s", "r", b"2"),))
    assert isinstance(await store.admit(again), RunRow)
    assert await store.notes.get("s", "r") == b"1"


async def test_a_store_of_the_first_schema_gets_its_notes_and_keeps_its_runs(
    tmp_path: pathlib.Path,
) -> None:
    connection = apsw.Connection(str(tmp_path / "old.db"))
    connection.execute(queries.load("sqlite")["schema_1"])
    connection.execute("INSERT INTO meta (key, value) VALUES ('identity', 'old')")
    connection.pragma("application_id", migrate.APPLICATION_ID)
    connection.pragma("user_version", 1)
    connection.close()
    store = SqliteStore(f"sqlite:///{tmp_path}/old.db")
    await store.open()
    try:
        await store.notes.put([Note("s", "k", b"v")])
        await facts.admit(store)
        assert await store.identity() == "old"
        assert (await store.run(RunId("r"))).state == "running"
        assert await store.check() == []
    finally:
        await store.close()
