"""Asking a workflow where a message goes, outside of any run."""

from __future__ import annotations

import asyncio

from ninelives.graph.workflow import Route, Workflow


def routes(
    workflow: Workflow, source: str, message: object, target_id: str | None = None
) -> list[Route]:
    return asyncio.run(workflow.route(source, message, target_id))
