"""`crashtest`: kills a workflow of yours at every boundary, and says what a customer would see."""

from __future__ import annotations

import pathlib
import sys

import click

from ninelives import ids
from ninelives.cli import terminal
from ninelives.crashlab import campaign
from ninelives.crashlab.campaign import Result, Verdict
from ninelives.crashlab.scenario import Work


@click.command()
@click.argument("target")
@click.option("--input", "text", metavar="JSON", help="The input, as for `run`.")
@click.option("--sample", type=int, help="At most so many kills, spread fairly.")
@click.option("--jobs", default=2, show_default=True, help="Scenarios side by side.")
@click.option("--time-limit", type=float, metavar="SECONDS", help="Begin no kill after so long.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def crashtest(
    target: str,
    text: str | None,
    sample: int | None,
    jobs: int,
    time_limit: float | None,
    as_json: bool,  # noqa: FBT001
) -> None:
    """Run TARGET once, then kill it with SIGKILL at each boundary that it reached, and resume it.

    Every scenario is held against the clean run, from the journal and from a witness beside it.
    Effects really happen: point them at something that may be hit. Exit code 1 if anything would
    have gone wrong.
    """
    result = campaign.run(
        Work(target, text, pathlib.Path.cwd(), f"crashtest-{ids.new_token()[:8]}"),
        sample=sample,
        jobs=jobs,
        time_limit_seconds=time_limit,
        tell=_tell if sys.stderr.isatty() else None,
    )
    if as_json:
        terminal.say_json(_document(result))
    else:
        _say(result)
    sys.exit(0 if result.survived else 1)


def _tell(done: int, planned: int, verdict: Verdict) -> None:
    state = "survived" if not verdict.problems else "FAILED"
    sys.stderr.write(f"\r\x1b[K{done} of {planned}: {verdict.point.name} {state}")
    if done == planned:
        sys.stderr.write("\r\x1b[K")
    sys.stderr.flush()


def _say(result: Result) -> None:
    for problem in result.clean:
        terminal.say(f"without any kill: {problem}")
    boundaries: dict[str, list[Verdict]] = {}
    for verdict in result.verdicts:
        boundaries.setdefault(verdict.point.boundary, []).append(verdict)
    if boundaries:
        terminal.say(f"{'BOUNDARY':<22} {'KILLS':>6} {'SURVIVED':>9}")
    for boundary, verdicts in boundaries.items():
        survived = sum(not verdict.problems for verdict in verdicts)
        terminal.say(f"{boundary:<22} {len(verdicts):>6} {survived:>9}")
    for verdict in result.failed:
        terminal.say(f"\nkilled at {verdict.point.name}:")
        for problem in verdict.problems:
            terminal.say(f"  {problem}")
        terminal.say(f"  again: {verdict.command}")
    left = f", {result.skipped} points left out" if result.skipped else ""
    words = "survived every one" if result.survived else "would have gone wrong"
    terminal.say(f"\n{result.kills} kills{left}: {words}")


def _document(result: Result) -> dict[str, object]:
    return {
        "survived": result.survived,
        "kills": result.kills,
        "skipped": result.skipped,
        "clean": list(result.clean),
        "failed": [
            {
                "point": verdict.point.name,
                "problems": list(verdict.problems),
                "command": verdict.command,
            }
            for verdict in result.failed
        ],
    }
