"""The roots of the tree, and the control flow that unwinds a handler."""

from __future__ import annotations


class NineLivesError(Exception):
    """Base of all errors that a caller may want to catch. `code` names the condition."""

    @property
    def code(self) -> str:
        return type(self).__name__


class UsageError(NineLivesError):
    """The call was refused and nothing has changed (the command line exits with 2)."""


class Interrupt(BaseException):
    """Control flow of the engine: a handler is unwound; never caught by `except Exception`."""


class Parked(Interrupt):
    """The run needs a person. `code` is the condition's name."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(code, reason)
        self.code, self.reason = code, reason

    def __str__(self) -> str:
        return f"{self.code}: {self.reason}"


class Cancelled(Interrupt):
    """A person has cancelled the run: it ends at this boundary."""


class Stopped(Interrupt):
    """This process is shutting down in an orderly way; the run stays resumable."""


class OwnershipLost(Interrupt):
    """Another process owns the run now; nothing more may be written by this one."""
