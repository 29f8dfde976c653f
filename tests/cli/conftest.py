"""A shell in a folder of its own."""

from __future__ import annotations

import pathlib

import pytest

from support.shell import Shell


@pytest.fixture
def shell(tmp_path: pathlib.Path) -> Shell:
    return Shell(tmp_path)
