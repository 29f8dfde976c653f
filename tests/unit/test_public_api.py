"""What `ninelives` exports, and what importing it costs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import ninelives

PUBLIC = {
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
}


def modules_after(statement: str) -> set[str]:
    """Run a statement in a fresh interpreter and name the modules that it has loaded."""
    code = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_public_names_are_exactly_these() -> None:
    assert set(ninelives.__all__) == PUBLIC
    assert set(dir(ninelives)) == PUBLIC


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_name_can_be_imported(name: str) -> None:
    assert getattr(ninelives, name) is not None


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = ninelives.Nothing


def test_importing_ninelives_loads_no_other_module_of_it_and_no_dependency() -> None:
    loaded = modules_after("import ninelives")
    assert {name for name in loaded if name.startswith("ninelives.")} == set()
    assert loaded.isdisjoint({"apsw", "click", "msgspec", "pydantic", "pydantic_ai"})


def test_the_core_runs_without_pydantic_and_agents() -> None:
    loaded = modules_after("from ninelives import Executor, Runtime, WorkflowBuilder, register")
    assert loaded.isdisjoint({"pydantic", "pydantic_ai", "openai", "httpx", "click"})
