"""The stores that the contract suite runs on: every backend, for real."""

from __future__ import annotations

import pathlib
from collections.abc import AsyncIterator

import pytest_asyncio

from ninelives.store.sqlite import SqliteStore


@pytest_asyncio.fixture
async def store(tmp_path: pathlib.Path) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(f"sqlite:///{tmp_path}/durable.db")
    await opened.open()
    yield opened
    await opened.close()
