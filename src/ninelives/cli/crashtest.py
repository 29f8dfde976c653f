"""`crashtest`: kills a workflow of yours at every boundary, and says what a customer would see."""

from __future__ import annotations

import pathlib
import sys

import click

from ninelives import errors, ids
from ninelives.cli import terminal
from ninelives.crashlab import campaign, plan
from ninelives.crashlab.campaign import Choice, Result, Verdict
from ninelives.crashlab.scenario import Work

# With five deaths in a row without progress a run counts as stuck, as it should.
KILLS_MAX = 4


@click.command()
@click.argument("target")
@click.option("--input", "text", metavar="JSON", help="The input, as for `run`.")
@click.option("--channels", metavar="TARGET", help="Deliver the outbox with a relay, killed too.")
@click.option("--sample", type=click.IntRange(min=0), help="At most so many kills at boundaries.")
@click.option("--random", "moments", default=0, metavar="N", help="N scenarios at random moments.")
@click.option("--seed", default=0, show_default=True, help="What random kills are drawn from.")
@click.option(
    "--kills",
    type=click.IntRange(1, KILLS_MAX),
    default=1,
    show_default=True,
    help="Kills in each scenario: the recovery is killed too.",
)
@click.option("--at", metavar="KILLS", multiple=True, help="Only this scenario (repeatable).")
@click.option("--jobs", default=2, show_default=True, help="Scenarios side by side.")
@click.option("--time-limit", type=float, metavar="SECONDS", help="Begin none after so long.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def crashtest(  # noqa: PLR0913 - one for each option
    *,
    target: str,
    text: str | None,
    channels: str | None,
    sample: int | None,
    moments: int,
    seed: int,
    kills: int,
    at: tuple[str, ...],
    jobs: int,
    time_limit: float | None,
    as_json: bool,
) -> None:
    """Run TARGET once, then kill it with SIGKILL at each boundary that it reached, and resume it.

    Every scenario is held against the clean run, from the journal and from a witness beside it.
    Effects really happen: point them at something that may be hit. Exit code 1 if anything would
    have gone wrong.
    """
    try:
        plans = tuple(plan.parse(text) for text in at)
    except errors.NineLivesError as error:
        terminal.fail(error)
    campaign_id = f"crashtest-{ids.new_token()[:8]}"
    result = campaign.run(
        Work(target, text, pathlib.Path.cwd(), campaign_id, channels),
        Choice(plans, sample, moments, kills, seed),
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
    sys.stderr.write(f"\r\x1b[K{done} of {planned}: {verdict.plan.name} {state}")
    if done == planned:
        sys.stderr.write("\r\x1b[K")
    sys.stderr.flush()


def _say(result: Result) -> None:
    for problem in result.clean:
        terminal.say(f"without any kill: {problem}")
    places: dict[str, list[Verdict]] = {}
    for verdict in result.verdicts:
        places.setdefault(verdict.plan.place, []).append(verdict)
    if places:
        terminal.say(f"{'KILLED FIRST AT':<22} {'SCENARIOS':>9} {'KILLS':>6} {'SURVIVED':>9}")
    for place, verdicts in places.items():
        survived = sum(not verdict.problems for verdict in verdicts)
        kills = sum(verdict.kills for verdict in verdicts)
        terminal.say(f"{place:<22} {len(verdicts):>9} {kills:>6} {survived:>9}")
    for verdict in result.failed:
        terminal.say(f"\nkilled at {verdict.plan.name}:")
        for problem in verdict.problems:
            terminal.say(f"  {problem}")
        terminal.say(f"  again: {verdict.command}")
    left = f", {result.skipped} points left out" if result.skipped else ""
    words = "survived every one" if result.survived else "would have gone wrong"
    terminal.say(f"\n{result.kills} kills in {result.seconds:.0f} s{left}: {words}")


def _document(result: Result) -> dict[str, object]:
    return {
        "survived": result.survived,
        "scenarios": len(result.verdicts),
        "kills": result.kills,
        "skipped": result.skipped,
        "seed": result.seed,
        "seconds": round(result.seconds, 3),
        "clean": list(result.clean),
        "failed": [
            {
                "point": verdict.plan.name,
                "kills": verdict.kills,
                "problems": list(verdict.problems),
                "command": verdict.command,
            }
            for verdict in result.failed
        ],
    }
