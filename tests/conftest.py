"""What every test stands on: at least two workers, and nothing of the caller's environment."""

from __future__ import annotations

import os

import pytest

# What a developer has set for their own runs must not reach a test or its children.
_READ_FROM_ENVIRONMENT = (
    "NINELIVES_",
    "CRASH_",
    "SCRIPTED_",
    "NOTIFY_",
    "OLLAMA_",
    "OPENAI_",
    "MODEL",
    "RECORD",
    "TOKEN_BUDGET",
    "DEADLINE_SECONDS",
    "MISSING_USAGE_AT_STEP",
    "STALL_AT_STEP",
)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Never fewer than two: tests that lean on each other shall show it on any machine."""
    return max(2, os.cpu_count() or 2)


@pytest.fixture(autouse=True)
def environment_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drop the variables that ninelives and its example read."""
    for name in list(os.environ):
        if name.startswith(_READ_FROM_ENVIRONMENT):
            monkeypatch.delenv(name)
