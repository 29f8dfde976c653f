"""Definitions: executors, edges, workflows and their checks. Nothing here runs."""

from ninelives.graph.builder import Case, Default, WorkflowBuilder
from ninelives.graph.executor import Executor, handler
from ninelives.graph.functions import FunctionExecutor, executor
from ninelives.graph.settings import Budget, RunSettings
from ninelives.graph.workflow import Workflow

__all__ = [
    "Budget",
    "Case",
    "Default",
    "Executor",
    "FunctionExecutor",
    "RunSettings",
    "Workflow",
    "WorkflowBuilder",
    "executor",
    "handler",
]
