"""What is wrong with a run, its workflow, or what it was asked for."""

from __future__ import annotations

from ninelives.errors.base import NineLivesError, UsageError


class RunIdInvalid(UsageError):
    def __init__(self, text: str, why: str) -> None:
        super().__init__(text, why)
        self.text, self.why = text, why

    def __str__(self) -> str:
        return f"{self.text!r} cannot be a run id: {self.why}; choose another id"


class RunNotFound(UsageError):
    def __init__(self, run_id: str, store: str) -> None:
        super().__init__(run_id, store)
        self.run_id, self.store = run_id, store

    def __str__(self) -> str:
        return (
            f"no run {self.run_id!r} in {self.store}; nothing was started. "
            "See `ninelives ls`, or check --store"
        )


class RunConflict(UsageError):
    """A run id is in use for other work."""

    def __init__(self, run_id: str, what: str, recorded: str, given: str) -> None:
        super().__init__(run_id, what, recorded, given)
        self.run_id, self.what, self.recorded, self.given = run_id, what, recorded, given

    def __str__(self) -> str:
        return (
            f"run {self.run_id!r} exists with another {self.what}: recorded {self.recorded}, "
            f"given {self.given}; choose another run id, or resume the recorded run"
        )


class RunOwned(UsageError):
    """A living process owns the run."""

    def __init__(self, run_id: str, pid: int, host: str, since: str) -> None:
        super().__init__(run_id, pid, host, since)
        self.run_id, self.pid, self.host, self.since = run_id, pid, host, since

    def __str__(self) -> str:
        return (
            f"run {self.run_id!r} is owned by process {self.pid} on {self.host} since "
            f"{self.since}, which is alive; wait for it, stop it, or use "
            "`ninelives resume --take-over` if it hangs"
        )


class RunEnded(UsageError):
    def __init__(self, run_id: str, status: str) -> None:
        super().__init__(run_id, status)
        self.run_id, self.status = run_id, status

    def __str__(self) -> str:
        return (
            f"run {self.run_id!r} is {self.status} and is never run again; "
            f"see `ninelives outputs {self.run_id}`"
        )


class GraphChanged(UsageError):
    """The workflow's graph is not the one that the run was admitted with."""

    def __init__(self, run_id: str, differences: tuple[str, ...]) -> None:
        super().__init__(run_id, differences)
        self.run_id, self.differences = run_id, differences

    def __str__(self) -> str:
        listed = "; ".join(self.differences)
        return (
            f"run {self.run_id!r} was recorded with another graph: {listed}. "
            "Restore the recorded graph, or start a new run"
        )


class TargetInvalid(UsageError):
    def __init__(self, target: str, why: str) -> None:
        super().__init__(target, why)
        self.target, self.why = target, why

    def __str__(self) -> str:
        return f"target {self.target!r}: {self.why}"


class TargetUnrecorded(UsageError):
    """A run that was started from Python does not say where its workflow lives."""

    def __init__(self, run_id: str) -> None:
        super().__init__(run_id)
        self.run_id = run_id

    def __str__(self) -> str:
        return (
            f"run {self.run_id!r} was started from Python and records no target; pass "
            "--target module:attribute or --target path.py:attribute"
        )


class InputInvalid(UsageError):
    def __init__(self, executor: str, why: str) -> None:
        super().__init__(executor, why)
        self.executor, self.why = executor, why

    def __str__(self) -> str:
        return f"the input does not fit executor {self.executor!r}: {self.why}; nothing was started"


class SettingsInvalid(UsageError):
    """A run's settings cannot be used; `what` names the setting."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(what, why)
        self.what, self.why = what, why

    def __str__(self) -> str:
        return f"the run settings cannot be used: {self.what}: {self.why}"


class WorkflowInvalid(UsageError):
    """A workflow cannot be built; `problems` name executors, edges and types."""

    def __init__(self, workflow: str, problems: tuple[str, ...]) -> None:
        super().__init__(workflow, problems)
        self.workflow, self.problems = workflow, problems

    def __str__(self) -> str:
        return f"workflow {self.workflow!r} cannot be built: " + "; ".join(self.problems)


class MessageUnhandled(NineLivesError):
    """A message was sent that no executor at the end of an open edge can handle."""

    def __init__(self, source: str, targets: tuple[str, ...], message_type: str) -> None:
        super().__init__(source, targets, message_type)
        self.source, self.targets, self.message_type = source, targets, message_type

    def __str__(self) -> str:
        if not self.targets:
            return (
                f"executor {self.source!r} sent a {self.message_type}, but no edge leaves it; "
                "add an edge to an executor that handles it"
            )
        where = ", ".join(repr(target) for target in self.targets)
        return (
            f"executor {self.source!r} sent a {self.message_type}, which {where} cannot handle; "
            "add a handler for it or an edge to an executor that has one"
        )


class IterationsExceeded(NineLivesError):
    def __init__(self, run_id: str, max_iterations: int) -> None:
        super().__init__(run_id, max_iterations)
        self.run_id, self.max_iterations = run_id, max_iterations

    def __str__(self) -> str:
        return (
            f"run {self.run_id!r} reached its limit of {self.max_iterations} supersteps; "
            "raise max_iterations= and resume"
        )


class NotAwaited(NineLivesError):
    def __init__(self, executor: str, what: str, state: str) -> None:
        super().__init__(executor, what, state)
        self.executor, self.what, self.state = executor, what, state

    def __str__(self) -> str:
        fate = (
            "and never awaited it, so it has not happened"
            if self.state == "asked"
            else "and ended while it was under way (it was seen to its end)"
        )
        return (
            f"executor {self.executor!r} began {self.what} {fate}; write `await` before it (or "
            "`ctx.gather` around several), then resume"
        )


class HandlerEnded(NineLivesError):
    def __init__(self, executor: str, superstep: int) -> None:
        super().__init__(executor, superstep)
        self.executor, self.superstep = executor, superstep

    def __str__(self) -> str:
        return (
            f"the handler of executor {self.executor!r} in superstep {self.superstep} has ended, "
            "and its context with it; await everything that it starts"
        )
