"""The named places where a process may die, and where a test kills it.

Every boundary has exactly one call of `reach` in the project. Unarmed, a call costs one
comparison. Armed, the n-th arrival at a boundary ends the process with SIGKILL: no handler, no
flush, no `finally` runs, as with `kill -9`.
"""

from __future__ import annotations

import enum
import os
import signal
import threading
from collections.abc import Callable


class Boundary(enum.StrEnum):
    """What is durable when the process dies there stands beside each name."""

    ADMITTED = "admitted"  # the run and its input; its id is not yet returned
    CLAIMED = "claimed"  # the new epoch; nothing was run under it
    COMMIT_BEFORE = "commit_before"  # nothing of this group
    COMMIT_AFTER = "commit_after"  # the whole group; nobody was told
    STEP_DONE = "step_done"  # nothing of the step, whose code has run
    STEP_RECORDED = "step_recorded"  # the step's result
    MODEL_REQUESTED = "model_requested"  # the hold; nothing was sent
    MODEL_ANSWERED = "model_answered"  # the hold; the provider has answered
    MODEL_RECORDED = "model_recorded"  # reply and settlement
    EFFECT_INTENDED = "effect_intended"  # the intent; nothing was sent
    EFFECT_DONE = "effect_done"  # the intent; the outside world has changed
    EFFECT_RECORDED = "effect_recorded"  # intent and outcome
    TRANSACTION_INTENDED = "transaction_intended"  # the intent; the user's SQL has not begun
    TRANSACTION_READY = "transaction_ready"  # the intent; the user's SQL has run, uncommitted
    TRANSACTION_COMMITTED = "transaction_committed"  # the intent; the user's database has it
    TRANSACTION_RECORDED = "transaction_recorded"  # intent and outcome
    RECONCILE_ANSWERED = "reconcile_answered"  # the intent; the other side was asked
    OUTPUT_YIELDED = "output_yielded"  # nothing of the output
    HANDLER_RECORDED = "handler_recorded"  # one handler's work, private
    SUPERSTEP_DONE = "superstep_done"  # nothing of the superstep's messages and outputs
    SUPERSTEP_COMMITTED = "superstep_committed"  # the superstep
    RUN_ENDED = "run_ended"  # the run's end; nobody was told
    RELAY_CLAIMED = "relay_claimed"  # the claim; nothing was sent
    RELAY_DELIVERED = "relay_delivered"  # the claim; the receiver has acknowledged
    RELAY_MARKED = "relay_marked"  # the delivery


class _Trigger:
    """Counts arrivals at one boundary and ends the process at the n-th."""

    def __init__(self, boundary: Boundary, arrival: int) -> None:
        self._boundary = boundary
        self._left = arrival
        self._lock = threading.Lock()

    def __call__(self, boundary: Boundary) -> None:
        if boundary is not self._boundary:
            return
        with self._lock:
            self._left -= 1
            if self._left == 0:
                die()


_observer: Callable[[Boundary], None] | None = None
_witness: Callable[[str, str], None] | None = None


def reach(boundary: Boundary) -> None:
    """Say that the process stands at `boundary`."""
    if _observer is not None:
        _observer(boundary)


def arm(boundary: Boundary, arrival: int = 1) -> None:
    """Kill this process at the `arrival`-th time it reaches `boundary` (1 = the first)."""
    observe(_Trigger(boundary, arrival))


def observe(observer: Callable[[Boundary], None] | None) -> None:
    """Call `observer` at every boundary from now on, from whichever thread; None disarms."""
    global _observer
    _observer = observer


def act(kind: str, name: str) -> None:
    """Tell a record outside of the journal: an effect, a model request or a delivery goes out
    now, or an answer has come in.
    """
    if _witness is not None:
        _witness(kind, name)


def witness(record: Callable[[str, str], None] | None) -> None:
    """Let `record` see every act from now on; None ends it."""
    global _witness
    _witness = record


def die() -> None:
    """End this process as `kill -9` does."""
    os.kill(os.getpid(), signal.SIGKILL)
    threading.Event().wait()  # the signal may reach another thread first
