"""What a store or the codec could not keep or give back."""

from __future__ import annotations

from ninelives.errors.base import Interrupt, NineLivesError, UsageError


class StoreRefused(UsageError):
    """The store cannot be opened as it is: not a database, a newer version, a network disk."""

    def __init__(self, store: str, why: str) -> None:
        super().__init__(store, why)
        self.store, self.why = store, why

    def __str__(self) -> str:
        return f"store {self.store}: {self.why}"


class StoreFailed(NineLivesError):
    """The store could not write or read (disk full, corrupt file); durable facts stay."""

    def __init__(self, store: str, why: str) -> None:
        super().__init__(store, why)
        self.store, self.why = store, why

    def __str__(self) -> str:
        return f"store {self.store}: {self.why}"


class StoreLost(Interrupt):
    """The store could not write while a handler ran; `error` says why. The run is resumable."""

    def __init__(self, error: StoreFailed) -> None:
        super().__init__(error)
        self.error = error

    def __str__(self) -> str:
        return str(self.error)


class StaleEpoch(UsageError):
    """Another process owns the run now: nothing was written; stop at once."""

    def __init__(self, run_id: str, epoch: int) -> None:
        super().__init__(run_id, epoch)
        self.run_id, self.epoch = run_id, epoch

    def __str__(self) -> str:
        return (
            f"run {self.run_id!r} was taken over by another process; this one (epoch "
            f"{self.epoch}) wrote nothing more. See `ninelives report {self.run_id}`"
        )


class Unencodable(NineLivesError):
    """A value cannot be recorded; nothing was written. `path` leads to the offending part."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path, why)
        self.path, self.why = path, why

    def __str__(self) -> str:
        return f"cannot encode {self.path}: {self.why}"


class Undecodable(NineLivesError):
    """A recorded value cannot come back as what it was."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path, why)
        self.path, self.why = path, why

    def __str__(self) -> str:
        return f"cannot decode {self.path}: {self.why}"
