"""The budgets in a SQLite store: windows are summed from days, acts have their own journal."""

from __future__ import annotations

import pathlib
from typing import cast

import apsw
import msgspec

from ninelives import clock, errors
from ninelives.ids import RUN_BUDGET, RunId, Seq
from ninelives.log import events
from ninelives.log.events import Draft
from ninelives.store import apply, booking, owners, rows
from ninelives.store.budgets import Budget, BudgetAct, Limit, OpenHold, Per, Spending
from ninelives.store.sqlite_outbox import Read, Write

_SEQ = (1 << rows.SHIFT) - 1


class SqliteBudgets:
    """A `Budgets`; see `store.budgets.Budgets` for what each call promises."""

    def __init__(self, path: pathlib.Path, url: str, write: Write, read: Read) -> None:
        self._path, self._url = path, url
        self._write, self._read = write, read

    async def show(self, name: str, *, at: int) -> Budget:
        return await self._read(lambda connection: self._show(connection, name, at))

    def _show(self, connection: apsw.Connection, name: str, at: int) -> Budget:
        number, halted, halted_at = self._find(connection, name)
        day = clock.day(at)
        spans: dict[Per, tuple[str, str]] = {
            "total": ("", ""),
            "day": (day, day),
            "month": (day[:7], day[:7] + "-99"),
        }
        return Budget(
            name=name,
            limits=tuple(Limit(*found) for found in rows.fetch(connection, "limits_of", (number,))),
            spent={
                per: Spending(*rows.fetch(connection, "spending_between", (number, *span))[0])
                for per, span in spans.items()
            },
            halted=halted,
            halted_at=halted_at,
        )

    def _find(self, connection: apsw.Connection, name: str) -> tuple[int, str, int]:
        found = rows.one(connection, "budget_id", (name,))
        if found is None:
            raise errors.BudgetUnknown(name, self._url)
        number, halted, halted_at = found
        return number, halted, halted_at

    async def of_run(self, run: RunId, *, at: int) -> list[Budget]:
        def work(connection: apsw.Connection) -> list[Budget]:
            row = rows.one(connection, "run_by_id", (run,))
            if row is None:
                raise errors.RunNotFound(run, self._url)
            names = rows.fetch(connection, "budgets_of", (row[0],))
            return [self._show(connection, str(name), at) for (name,) in names]

        return await self._read(work)

    async def shared(self, *, at: int, after: str, limit: int) -> list[Budget]:
        def work(connection: apsw.Connection) -> list[Budget]:
            names = rows.fetch(connection, "budgets_shared", {"after": after, "limit": limit})
            return [self._show(connection, str(name), at) for (name,) in names]

        return await self._read(work)

    async def days(self, name: str, *, limit: int) -> list[tuple[str, Spending]]:
        def work(connection: apsw.Connection) -> list[tuple[str, Spending]]:
            number = self._find(connection, name)[0]
            found = rows.fetch(connection, "spending_days", (number, limit))
            return [(day, Spending(*counts)) for day, *counts in found]

        return await self._read(work)

    async def open_holds(self, name: str, *, limit: int) -> list[OpenHold]:
        def work(connection: apsw.Connection) -> list[OpenHold]:
            number = self._find(connection, name)[0]
            if name.startswith(RUN_BUDGET):
                run = rows.one(connection, "run_by_id", (name.removeprefix(RUN_BUDGET),))
                assert run is not None, name
                low, high = rows.span(run[0], 0)
                values = {"low": low, "high": high, "limit": limit}
                found = rows.fetch(connection, "holds_open_of", values)
            else:
                found = rows.fetch(connection, "holds_open", {"budget": number, "limit": limit})
            alive: dict[str, bool] = {}
            return [self._open_hold(each, alive) for each in found]

        return await self._read(work)

    def _open_hold(self, found: rows.Row, alive: dict[str, bool]) -> OpenHold:
        ident, run, present, status, tokens, cost, ended = found[:7]
        at, executor, superstep, incarnation, model, owner = found[7:]
        if owner not in alive:
            alive[owner] = owners.alive(self._path, owner)
        return OpenHold(
            run=RunId(run),
            seq=Seq(ident & _SEQ),
            status=status,
            under_way=status == "held" and incarnation == present and alive[owner],
            tokens=tokens,
            microdollars=cost,
            model=model,
            executor=executor,
            superstep=superstep,
            at=at,
            ended=ended,
        )

    async def acts(self, name: str, *, limit: int) -> list[tuple[int, BudgetAct]]:
        def work(connection: apsw.Connection) -> list[tuple[int, BudgetAct]]:
            number = self._find(connection, name)[0]
            found = rows.fetch(connection, "acts_of", (number, limit))
            return [
                (at, cast("BudgetAct", msgspec.json.decode(data, type=events.KINDS[kind])))
                for _, at, kind, data in found
            ]

        return await self._read(work)

    async def act(self, name: str, draft: Draft) -> None:
        (prepared,) = apply.prepare([draft])

        def work(connection: apsw.Connection) -> None:
            if not isinstance(draft.fact, events.HaltCleared):
                rows.fetch(connection, "budget_ensure", (name,))
            number = self._find(connection, name)[0]
            values = (number, draft.at, prepared.kind, prepared.data)
            rows.fetch(connection, "act_insert", values)
            booking.book(connection, 0, 0, draft)

        await self._write(work, None)

    async def resolve(self, run: RunId, draft: Draft) -> None:
        assert isinstance(draft.fact, events.HoldResolved)
        hold = draft.fact.hold
        prepared = apply.prepare([draft])

        def work(connection: apsw.Connection) -> None:
            row = rows.one(connection, "run_by_id", (run,))
            if row is None:
                raise errors.RunNotFound(run, self._url)
            number = int(row[0])
            status = self._status(connection, row, hold)
            if status not in {"held", "unknown"}:
                raise errors.HoldNotOpen(run, hold, status)
            advanced = {"count": 1, "at": draft.at, "id": number}
            before = rows.fetch(connection, "run_advance_any", advanced)[0][0]
            apply.write(connection, number, 0, before + 1, prepared)

        await self._write(work, run)

    def _status(self, connection: apsw.Connection, row: rows.Row, hold: int) -> str:
        """How a hold stands, in words that fit an error."""
        ident = rows.row_id(row[0], hold)
        found = rows.one(connection, "hold_of", (ident,)) if 0 < hold <= _SEQ else None
        if found is None:
            return "not known"
        status = str(found[0])
        if status == "held":
            event = rows.fetch(connection, "events_between", (ident - 1, ident + 1, 1))[0]
            if event[5] == row[8] and owners.alive(self._path, rows.owner(row)):
                return "under way: its process lives"
        return status
