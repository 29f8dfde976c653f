"""Steps: computations whose recorded result is returned after a crash instead of running again."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ninelives import codec, errors, faults
from ninelives.durable import calls
from ninelives.durable.delivery import Delivery
from ninelives.durable.replay import Found
from ninelives.log import events


async def run(
    delivery: Delivery,
    function: Callable[..., object],
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
    *,
    name: str,
) -> object:
    """Carry out a step, or return what was recorded of it.

    Raises:
        StepFailed: the function raised, now or when it was recorded.
        Unencodable: arguments or result cannot be recorded.
    """
    fingerprint = calls.fingerprint(delivery, f"step {name!r}", args, kwargs)
    found = delivery.find("step", name, fingerprint)
    if found.record is not None:
        match found.record.outcome:
            case events.StepRecorded(result=result):
                delivery.note(found, "step")
                return delivery.journal.decode(result)
            case events.StepFailed() as failure if not delivery.replay.retries(found.record):
                delivery.note(found, "step")
                raise errors.StepFailed(name, failure.error, failure.message)
            case _:
                pass  # the failure that ended the last attempt: tried again
    else:
        await delivery.require_no_leftovers(f"step {name!r}", "step")
    return await _carry_out(delivery, function, args, kwargs, found)


async def _carry_out(
    delivery: Delivery,
    function: Callable[..., object],
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
    found: Found,
) -> object:
    place = found.place
    async with delivery.call() as call:
        try:
            with calls.nested(f"step {place.name!r}"):
                result = await calls.invoke(function, args, kwargs)
            raw = delivery.journal.encode(result, f"result of step {place.name!r}")
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
            raise errors.StepFailed(place.name, type(error).__name__, str(error)) from error
        faults.reach(faults.Boundary.STEP_DONE)
        if not delivery.coarse:
            await delivery.append(
                events.StepRecorded(place=delivery.placed(place, call), result=raw)
            )
            faults.reach(faults.Boundary.STEP_RECORDED)
    return codec.decode(raw, delivery.journal.registry)
