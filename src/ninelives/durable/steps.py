"""Steps: computations whose recorded result is returned after a crash instead of running again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from ninelives import errors, faults
from ninelives.durable import calls, retries
from ninelives.durable.delivery import Delivery
from ninelives.durable.replay import Found
from ninelives.durable.retries import ONCE, Retry
from ninelives.log import events


@dataclass(frozen=True, slots=True)
class Step:
    """A step as the handler asks for it; `name` is part of its identity."""

    function: Callable[..., object]
    args: tuple[object, ...]
    kwargs: Mapping[str, object]
    name: str
    retry: Retry = ONCE


async def run(delivery: Delivery, step: Step) -> object:
    """Carry out a step, or return what was recorded of it.

    Raises:
        StepFailed: the function raised, now or when it was recorded.
        Unencodable: the arguments cannot be recorded.
    """
    fingerprint = calls.fingerprint(delivery, f"step {step.name!r}", step.args, step.kwargs)
    found = delivery.find("step", step.name, fingerprint)
    if found.record is not None:
        match found.record.outcome:
            case events.StepRecorded(result=result):
                delivery.note(found, "step")
                return delivery.journal.decode(result)
            case events.StepFailed() as failure if not delivery.replay.retries(found.record):
                delivery.note(found, "step")
                raise errors.StepFailed(step.name, failure.error, failure.message)
            case _:
                pass  # the failure that ended the last attempt: tried again
    else:
        await delivery.require_no_leftovers(f"step {step.name!r}", "step")
    return await _carry_out(delivery, step, found)


async def _carry_out(delivery: Delivery, step: Step, found: Found) -> object:
    place = found.place

    async def attempt() -> msgspec.Raw:
        with calls.nested(f"step {step.name!r}"):
            result = await calls.invoke(step.function, step.args, step.kwargs)
        return delivery.journal.encode(result, f"result of step {step.name!r}")

    async with delivery.call() as call:
        try:
            raw = await retries.attempts(delivery, "step", place, found.record, step.retry, attempt)
        except Exception as error:
            if not delivery.coarse:
                await delivery.append(
                    events.StepFailed(
                        place=delivery.placed(place, call),
                        error=type(error).__name__,
                        message=str(error),
                        attempt=delivery.replay.attempt,
                    )
                )
            raise errors.StepFailed(step.name, type(error).__name__, str(error)) from error
        faults.reach(faults.Boundary.STEP_DONE)
        if not delivery.coarse:
            await delivery.append(
                events.StepRecorded(place=delivery.placed(place, call), result=raw)
            )
            faults.reach(faults.Boundary.STEP_RECORDED)
    return delivery.journal.decode(raw)
