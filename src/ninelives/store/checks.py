"""Looks for damage in a SQLite store: its pages, and its views against the journals."""

from __future__ import annotations

import apsw

from ninelives.store import queries

_SQL = queries.load("sqlite")
_QUESTIONS = {
    "check_numbers": "run {0}: its last event is {1}, its row says {2}",
    "check_pending": "message {0} is pending and has no event",
    "check_holds": "hold {0} has no request in its journal",
    "check_settled": "run {1}: hold {0} is open, its journal says that it ended",
    "check_consumed": "run {1}: message {0} is pending, its journal says that it was handled",
    "check_budgets": "budget {0}, day {1!r}: its counters do not agree with its runs' holds",
    "check_draws": "run {0} does not draw on a budget of its own",
    "check_effects": "key {0} has no intent in its journal",
    "check_outbox": "outbox key {0} is {1}, its journal says otherwise",
    "check_outbox_lost": "run {1}: event {0} queued a message that no relay will find",
    "check_state": "run {0}: state {1!r} points to event {2}, which does not exist",
}


def run(connection: apsw.Connection) -> list[str]:
    """All that is wrong, in words; empty if nothing is."""
    pages = connection.execute("PRAGMA integrity_check").fetchall()
    found = [str(each[0]) for each in pages if each[0] != "ok"]
    for name, words in _QUESTIONS.items():
        rows = connection.execute(_SQL[name]).fetchall()
        found += [words.format(*row) for row in rows]
    return found
