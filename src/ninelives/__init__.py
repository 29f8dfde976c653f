"""ninelives: durable agents. What a user needs is here; everything is imported on first use.

`import ninelives` loads nothing but this file: no store, no Pydantic, no agents.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ninelives.codec import register
    from ninelives.durable.context import WorkflowContext
    from ninelives.durable.declarations import effect
    from ninelives.durable.effects import Absent, Applied, CannotTell
    from ninelives.durable.retries import Retry
    from ninelives.engine.run import Run
    from ninelives.engine.runner import Status
    from ninelives.engine.runtime import Runtime
    from ninelives.engine.target import Target
    from ninelives.errors import EffectRefused
    from ninelives.graph.builder import Case, Default, WorkflowBuilder
    from ninelives.graph.executor import Executor, handler
    from ninelives.graph.functions import executor
    from ninelives.graph.settings import Budget, RunSettings
    from ninelives.graph.workflow import Workflow

__version__ = "0.1.0"

__all__ = [
    "Absent",
    "Applied",
    "Budget",
    "CannotTell",
    "Case",
    "Default",
    "EffectRefused",
    "Executor",
    "Retry",
    "Run",
    "RunSettings",
    "Runtime",
    "Status",
    "Target",
    "Workflow",
    "WorkflowBuilder",
    "WorkflowContext",
    "__version__",
    "effect",
    "executor",
    "handler",
    "register",
]

_HOMES = {
    "Absent": "ninelives.durable.effects",
    "Applied": "ninelives.durable.effects",
    "Budget": "ninelives.graph.settings",
    "CannotTell": "ninelives.durable.effects",
    "Case": "ninelives.graph.builder",
    "Default": "ninelives.graph.builder",
    "EffectRefused": "ninelives.errors",
    "Executor": "ninelives.graph.executor",
    "Retry": "ninelives.durable.retries",
    "Run": "ninelives.engine.run",
    "RunSettings": "ninelives.graph.settings",
    "Runtime": "ninelives.engine.runtime",
    "Status": "ninelives.engine.runner",
    "Target": "ninelives.engine.target",
    "Workflow": "ninelives.graph.workflow",
    "WorkflowBuilder": "ninelives.graph.builder",
    "WorkflowContext": "ninelives.durable.context",
    "effect": "ninelives.durable.declarations",
    "executor": "ninelives.graph.functions",
    "handler": "ninelives.graph.executor",
    "register": "ninelives.codec",
}


def __getattr__(name: str) -> object:
    """Import a public name from its home (PEP 562), once."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(importlib.import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
