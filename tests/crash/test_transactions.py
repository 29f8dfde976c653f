"""A process is killed at each boundary of a transaction, and each booking is made once."""

from __future__ import annotations

import asyncio
import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

from ninelives.durable.databases import create_transactions_table
from ninelives.faults import Boundary
from support import bookings
from support.bookings import Bookings

BOOKER = pathlib.Path(__file__).with_name("booker.py")
BOUNDARIES = [each for each in Boundary if each.value.startswith("transaction_")]
OUTPUTS = ["1: room", "2: table", "3: seat"]


@pytest.fixture
def booked(tmp_path: pathlib.Path) -> Bookings:
    found = bookings.in_sqlite(tmp_path)
    asyncio.run(create_transactions_table(found.database))
    return found


def booker(store: str, booked: Bookings, *armed: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BOOKER), store, str(booked.database), *armed]
    environment = {**os.environ, "PYTHONPATH": str(BOOKER.parents[1])}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=50, check=False, env=environment
    )


@pytest.mark.parametrize("arrival", [1, 2])
@pytest.mark.parametrize("boundary", BOUNDARIES, ids=lambda each: each.value)
def test_a_kill_around_a_transaction_books_everything_once(
    tmp_path: pathlib.Path, booked: Bookings, boundary: Boundary, arrival: int
) -> None:
    store = f"sqlite:///{tmp_path}/a.db"
    killed = booker(store, booked, boundary.value, str(arrival))
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    ended = booker(store, booked)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["outputs"] == OUTPUTS
    assert booked.items() == ["room", "seat", "table"]
    assert booked.kept() == [("r:room", "done"), ("r:seat", "done"), ("r:table", "done")]
