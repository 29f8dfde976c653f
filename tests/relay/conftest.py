"""A store for each test."""

from __future__ import annotations

import pathlib

import pytest


@pytest.fixture
def url(tmp_path: pathlib.Path) -> str:
    return f"sqlite:///{tmp_path}/durable.db"
