"""ninelives: durable agents. What a user needs is here; everything is imported on first use.

`import ninelives` loads nothing but this file: no store, no Pydantic, no agents.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ninelives.codec import register
    from ninelives.durable.context import WorkflowContext
    from ninelives.durable.effects import Absent, Applied, CannotTell
    from ninelives.engine import Run, Runtime, Status, Target
    from ninelives.errors import EffectRefused
    from ninelives.graph import (
        Budget,
        Case,
        Default,
        Executor,
        RunSettings,
        Workflow,
        WorkflowBuilder,
        executor,
        handler,
    )

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
    "Run",
    "RunSettings",
    "Runtime",
    "Status",
    "Target",
    "Workflow",
    "WorkflowBuilder",
    "WorkflowContext",
    "__version__",
    "executor",
    "handler",
    "register",
]

_HOMES = {
    "Absent": "ninelives.durable.effects",
    "Applied": "ninelives.durable.effects",
    "Budget": "ninelives.graph",
    "CannotTell": "ninelives.durable.effects",
    "Case": "ninelives.graph",
    "Default": "ninelives.graph",
    "EffectRefused": "ninelives.errors",
    "Executor": "ninelives.graph",
    "Run": "ninelives.engine",
    "RunSettings": "ninelives.graph",
    "Runtime": "ninelives.engine",
    "Status": "ninelives.engine",
    "Target": "ninelives.engine",
    "Workflow": "ninelives.graph",
    "WorkflowBuilder": "ninelives.graph",
    "WorkflowContext": "ninelives.durable.context",
    "executor": "ninelives.graph",
    "handler": "ninelives.graph",
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
