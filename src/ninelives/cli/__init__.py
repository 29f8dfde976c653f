"""The `ninelives` command: words in, lines and exit codes out.

Each command's module is imported when it is asked for, so that `ninelives --help` is quick.
"""

from __future__ import annotations

import importlib
import signal
import sys
from typing import Final

import click

_COMMANDS: Final = {
    "run": ("running", "run", "Start a run, or go on with it: repeat the command until it ends."),
    "resume": ("running", "resume", "Take up a run whose process died, failed or parked."),
    "report": ("reading", "report", "What ran twice, what was replayed, what it cost."),
    "show": ("reading", "show", "How a run stands, and what to do next."),
    "ls": ("reading", "ls", "The runs of a store, newest first."),
    "watch": ("reading", "watch", "A run's events, from the journal and then live."),
    "outputs": ("reading", "outputs", "A run's outputs, exactly those that are committed."),
    "verify": ("reading", "verify", "Check the invariants of one run, or of the whole store."),
    "resolve": ("acting", "resolve", "Say what became of an effect of unknown outcome."),
    "cancel": ("acting", "cancel", "End a run, at its owner's next boundary."),
    "clear-halt": ("acting", "clear_halt", "Let a halted budget admit model calls again."),
    "budget": ("budget", "budget", "Limits in tokens and money: list, set, halt, settle."),
    "relay": ("outbox", "relay", "Deliver the outbox: what handlers left for the outside."),
    "outbox": ("outbox", "outbox", "What waits in the outbox, dead letters, requeue."),
    "crashtest": ("crashtest", "crashtest", "Kill a workflow of yours at every boundary."),
    "demo": ("demo", "demo", "Kill an agent in its most dangerous moment, and see it survive."),
}


class _Lazy(click.Group):
    """A group whose commands are imported one by one."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        module, name, _ = _COMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(f"ninelives.cli.{module}"), name)
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run a command. Ctrl-C where nothing had to be finished is 130: nothing has failed."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            sys.exit(128 + signal.SIGINT)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in _COMMANDS.items()])


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="ninelives")
def main() -> None:
    """Durable agents: kill the process, and nothing recorded is lost, paid twice or sent twice.

    Exit codes: 0 completed, 1 failed, 2 refused (nothing changed), 3 parked (needs a person),
    4 waiting, 5 cancelled, 130 and 143 stopped by a signal (resumable).
    """


if __name__ == "__main__":
    sys.exit(main())
