"""A store for each test, and workflows of one function."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import pytest

from ninelives.graph.builder import WorkflowBuilder
from ninelives.graph.executor import Executor
from ninelives.graph.functions import executor
from ninelives.graph.workflow import Workflow


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
