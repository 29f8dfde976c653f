"""A user's database of each kind, with the table of transactions, and a store beside it."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import pytest

from ninelives.durable.databases import create_transactions_table
from ninelives.graph.builder import WorkflowBuilder
from ninelives.graph.executor import Executor
from ninelives.graph.functions import executor
from ninelives.graph.workflow import Workflow
from support import bookings
from support.bookings import Bookings

KINDS = ["sqlite"]


@pytest.fixture
def url(tmp_path: pathlib.Path) -> str:
    return f"sqlite:///{tmp_path}/durable.db"


@pytest.fixture
def single() -> Callable[[object], Workflow]:
    """Makes a workflow of one function."""

    def build(function: object) -> Workflow:
        node = executor(id="node")(function)  # type: ignore[call-overload]
        assert isinstance(node, Executor)
        return WorkflowBuilder(name="single", start_executor=node).build()

    return build


@pytest.fixture(params=KINDS)
def bare(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Bookings:
    """A database in which nobody has created the table of transactions."""
    return bookings.in_sqlite(tmp_path)


@pytest.fixture
async def booked(bare: Bookings) -> Bookings:
    await create_transactions_table(bare.database)
    return bare
