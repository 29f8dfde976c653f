"""ninelives: durable agents. What a user needs is here; everything is imported on first use.

`import ninelives` loads nothing but this file: no store, no Pydantic, no agents.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ninelives.adapters.mail import Mail
    from ninelives.adapters.webhook import Webhook
    from ninelives.codec import register
    from ninelives.durable.context import WorkflowContext
    from ninelives.durable.declarations import effect
    from ninelives.durable.effects import Absent, Applied, CannotTell
    from ninelives.durable.prices import Price
    from ninelives.durable.retries import Retry
    from ninelives.engine.channels import Backoff, Channel
    from ninelives.engine.relay import Relay
    from ninelives.engine.run import Run
    from ninelives.engine.runner import Status
    from ninelives.engine.runtime import Runtime
    from ninelives.engine.target import Target
    from ninelives.errors import DeliveryFailed, EffectRefused
    from ninelives.graph.builder import Case, Default, WorkflowBuilder
    from ninelives.graph.executor import Executor, handler
    from ninelives.graph.functions import executor
    from ninelives.graph.settings import Budget, RunSettings
    from ninelives.graph.workflow import Workflow

__version__ = "0.1.0"

__all__ = [
    "Absent",
    "Applied",
    "Backoff",
    "Budget",
    "CannotTell",
    "Case",
    "Channel",
    "Default",
    "DeliveryFailed",
    "EffectRefused",
    "Executor",
    "Mail",
    "Price",
    "Relay",
    "Retry",
    "Run",
    "RunSettings",
    "Runtime",
    "Status",
    "Target",
    "Webhook",
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
    "Backoff": "ninelives.engine.channels",
    "Budget": "ninelives.graph.settings",
    "CannotTell": "ninelives.durable.effects",
    "Case": "ninelives.graph.builder",
    "Channel": "ninelives.engine.channels",
    "Default": "ninelives.graph.builder",
    "DeliveryFailed": "ninelives.errors",
    "EffectRefused": "ninelives.errors",
    "Executor": "ninelives.graph.executor",
    "Mail": "ninelives.adapters.mail",
    "Price": "ninelives.durable.prices",
    "Relay": "ninelives.engine.relay",
    "Retry": "ninelives.durable.retries",
    "Run": "ninelives.engine.run",
    "RunSettings": "ninelives.graph.settings",
    "Runtime": "ninelives.engine.runtime",
    "Status": "ninelives.engine.runner",
    "Target": "ninelives.engine.target",
    "Webhook": "ninelives.adapters.webhook",
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
