"""What became of an act: a step, an effect, a transaction, a message of the outbox."""

from __future__ import annotations

from ninelives.errors.base import NineLivesError, UsageError


class StepFailed(NineLivesError):
    """A step raised; the failure is recorded. `error` is the type's name."""

    def __init__(self, step: str, error: str, message: str) -> None:
        super().__init__(step, error, message)
        self.step, self.error, self.message = step, error, message

    def __str__(self) -> str:
        return f"step {self.step!r} raised {self.error}: {self.message}"


class EffectFailed(NineLivesError):
    """An effect ended without being applied in a usable way; `outcome` says which."""

    def __init__(self, key: str, outcome: str, error: str, message: str) -> None:
        super().__init__(key, outcome, error, message)
        self.key, self.outcome, self.error, self.message = key, outcome, error, message

    def __str__(self) -> str:
        return f"effect {self.key!r} ended {self.outcome}: {self.error}: {self.message}"


class EffectRefused(Exception):
    """Raise this in an effect's function: the other side said no, and nothing was done."""


class KeyConflict(NineLivesError):
    """An idempotency key is already in use for another effect or message."""

    def __init__(self, key: str, run_id: str, recorded: str, given: str) -> None:
        super().__init__(key, run_id, recorded, given)
        self.key, self.run_id, self.recorded, self.given = key, run_id, recorded, given

    def __str__(self) -> str:
        return (
            f"idempotency key {self.key!r} was used by run {self.run_id!r} for {self.recorded}; "
            f"now asked for {self.given}. Nothing was sent; give each act a key of its own"
        )


class EffectNotOpen(UsageError):
    """Only an effect whose outcome is unknown can be resolved by a person."""

    def __init__(self, run_id: str, key: str, state: str) -> None:
        super().__init__(run_id, key, state)
        self.run_id, self.key, self.state = run_id, key, state

    def __str__(self) -> str:
        return (
            f"effect {self.key!r} of run {self.run_id!r} is {self.state}, there is nothing to "
            f"resolve; see `ninelives report {self.run_id}`"
        )


class TransactionFailed(NineLivesError):
    """A transaction was rolled back: nothing of it has happened. `error` is the type's name."""

    def __init__(self, key: str, error: str, message: str) -> None:
        super().__init__(key, error, message)
        self.key, self.error, self.message = key, error, message

    def __str__(self) -> str:
        return f"transaction {self.key!r} was rolled back: {self.error}: {self.message}"


class TransactionMisused(NineLivesError):
    """A transaction's function has ended the transaction that it was given, or tried to."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(key, why)
        self.key, self.why = key, why

    def __str__(self) -> str:
        return f"the function of transaction {self.key!r} {self.why}; leave that to ninelives"


class TransactionUnknown(NineLivesError):
    """Whether a transaction has committed could not be asked. Asking again is always safe."""

    def __init__(self, database: str, why: str) -> None:
        super().__init__(database, why)
        self.database, self.why = database, why

    def __str__(self) -> str:
        return f"whether it has committed in {self.database} is not known: {self.why}"


class DatabaseUnavailable(UsageError):
    def __init__(self, database: str, why: str) -> None:
        super().__init__(database, why)
        self.database, self.why = database, why

    def __str__(self) -> str:
        return f"database {self.database!r} cannot be used: {self.why}"


class DeliveryFailed(NineLivesError):
    """A receiver did not take an outbox message now; it may later.

    `retry_after_seconds` is what the receiver asked for, if it did.
    """

    def __init__(self, why: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(why, retry_after_seconds)
        self.why, self.retry_after_seconds = why, retry_after_seconds

    def __str__(self) -> str:
        return self.why


class ChannelsInvalid(UsageError):
    """What was given to a relay is no list of channels that it can serve."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return f"the relay's channels cannot be used: {self.why}"


class LetterNotDead(UsageError):
    """Only dead letters can be queued again."""

    def __init__(self, run_id: str, key: str) -> None:
        super().__init__(run_id, key)
        self.run_id, self.key = run_id, key

    def __str__(self) -> str:
        return (
            f"run {self.run_id!r} has no dead letter {self.key!r}; nothing has changed. "
            f"See `ninelives outbox dead {self.run_id}`"
        )
