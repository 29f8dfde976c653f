"""The main job: the countdown agent is killed where it hurts, and nothing is lost or doubled."""

from __future__ import annotations

import json
import signal
import time

import pytest

from ninelives.testing.scripted import line_for
from ninelives.testing.world import World
from support.shell import TARGET, Shell

EXPECTED = [f"{n}: {line_for(f'Checklist item {n}.')}" for n in range(20, 0, -1)] + ["0: liftoff"]
RUN = ("run", TARGET, "launch-1", "--input", "20")
RESUME = ("resume", "launch-1")


def counts(report: dict[str, dict[str, object]], status: str) -> object:
    return report["ledger"][status]


def test_killed_after_the_effect_it_goes_on_where_it_was(shell: Shell) -> None:
    with World() as world:
        shell.environment["NOTIFY_URL"] = world.url
        first = shell(*RUN, CRASH_AT_STEP="12", SCRIPTED_LOG="requests.jsonl")
        second = shell(*RESUME, SCRIPTED_LOG="requests.jsonl")
        received = {key: entry.received for key, entry in world.counts().items()}
    assert first.code == -signal.SIGKILL
    assert second.code == 0
    assert (first.lines, second.lines) == (EXPECTED[:8], EXPECTED[8:])
    assert received == {f"launch-1:step:{n}": 1 for n in range(1, 21)}
    assert len(shell.file("requests.jsonl")) == 20

    report = shell.report("launch-1")
    assert report["run"]["status"] == "completed"
    assert [
        (each["executor"], each["incarnations"])
        for each in report["reentered"]  # type: ignore[attr-defined]
    ] == [("worker", [1, 2])]
    assert report["model_calls"] == {"made": 20, "replayed": 1, "unknown": 0}
    assert (report["effects"]["applied"], report["effects"]["skipped"]) == (20, 1)
    assert counts(report, "settled") == {"calls": 20, "tokens": 600}
    assert counts(report, "held") == {"calls": 0, "tokens": 0}
    assert shell("verify").code == 0
    assert shell("outputs", "launch-1").lines == EXPECTED


def test_killed_inside_the_effect_it_asks_and_adopts(shell: Shell) -> None:
    first = shell(*RUN, CRASH_IN_EFFECT_AT_STEP="12")
    second = shell(*RESUME)
    assert first.lines + second.lines == EXPECTED
    keys = [each["key"] for each in shell.file("notifications.jsonl")]
    assert sorted(keys) == sorted(f"launch-1:step:{n}" for n in range(1, 21))
    report = shell.report("launch-1")
    assert (report["effects"]["applied"], report["effects"]["skipped"]) == (20, 1)


def test_killed_during_a_model_request_its_hold_stays_counted_and_is_named(shell: Shell) -> None:
    shell(*RUN, CRASH_IN_MODEL_AT_STEP="12", SCRIPTED_LOG="requests.jsonl")
    second = shell(*RESUME, SCRIPTED_LOG="requests.jsonl")
    assert second.lines == EXPECTED[8:]
    assert "orphaned hold: 400 tokens" in second.err
    report = shell.report("launch-1")
    assert counts(report, "settled") == {"calls": 20, "tokens": 600}
    assert counts(report, "held") == {"calls": 1, "tokens": 400}
    assert report["ledger"]["committed_tokens"] == 1000
    assert report["model_calls"]["made"] == len(shell.file("requests.jsonl")) == 21
    assert report["model_calls"]["unknown"] == 1


def test_the_coarse_mode_shows_what_others_do(shell: Shell) -> None:
    first = shell(*RUN, CRASH_AT_STEP="12", RECORD="superstep", SCRIPTED_LOG="requests.jsonl")
    second = shell(*RESUME, SCRIPTED_LOG="requests.jsonl")  # the mode was fixed at admission
    assert first.lines + second.lines == EXPECTED
    assert len(shell.file("requests.jsonl")) == 21
    assert len(shell.file("notifications.jsonl")) == 20
    report = shell.report("launch-1")
    assert counts(report, "settled") == {"calls": 20, "tokens": 600}
    assert counts(report, "held") == {"calls": 1, "tokens": 400}
    assert report["effects"]["skipped"] == 1


def test_a_passed_deadline_parks_and_resume_tries_again(shell: Shell) -> None:
    first = shell(*RUN, STALL_AT_STEP="18", DEADLINE_SECONDS="0.3")
    assert first.code == 3
    assert first.lines == EXPECTED[:2]
    assert "DeadlineExceeded" in first.err
    assert "unknown" in first.err
    again = shell(*RUN)  # a supervisor that repeats the command is no person
    assert (again.code, again.lines) == (3, EXPECTED[:2])
    second = shell(*RESUME)
    assert (second.code, second.lines) == (0, EXPECTED[2:])
    report = shell.report("launch-1")
    assert counts(report, "unknown") == {"calls": 1, "tokens": 400}
    assert counts(report, "settled") == {"calls": 20, "tokens": 600}


def test_missing_usage_halts_until_a_person_clears_it(shell: Shell) -> None:
    shell.environment |= {"MISSING_USAGE_AT_STEP": "5", "SCRIPTED_LOG": "requests.jsonl"}
    first = shell(*RUN)
    assert first.code == 3
    assert "clear-halt launch-1" in first.err
    assert len(shell.file("requests.jsonl")) == 16
    assert len(shell.file("notifications.jsonl")) == 15

    halted = shell(*RESUME)
    assert (halted.code, halted.lines) == (3, [])
    assert len(shell.file("requests.jsonl")) == 16
    assert shell.report("launch-1")["halted"] is not None

    cleared = shell("clear-halt", "launch-1", "--by", "me")
    assert cleared.code == 0
    second = shell(*RESUME)
    assert (second.code, first.lines + second.lines) == (0, EXPECTED)
    prompts = [each["prompt"] for each in shell.file("requests.jsonl")]
    assert prompts.count("Checklist item 5.") == 1
    assert counts(shell.report("launch-1"), "unknown") == {"calls": 1, "tokens": 400}


def test_a_supervisor_that_repeats_one_command_has_a_durable_run(shell: Shell) -> None:
    lines: list[str] = []
    for _ in range(3):
        result = shell(*RUN, CRASH_AT_STEP="12")
        lines += result.lines
    assert lines == EXPECTED + EXPECTED  # the third time it has ended, and is only shown


def test_other_input_for_a_used_id_is_refused(shell: Shell) -> None:
    shell("run", TARGET, "r", "--input", "2")
    other = shell("run", TARGET, "r", "--input", "3")
    assert other.code == 2
    assert "error: RunConflict" in other.err
    assert "another input: recorded 2, given 3" in other.err
    as_tick = shell("run", TARGET, "r2", "--input", '{"step": 2}')
    assert as_tick.code == 0
    assert len(as_tick.lines) == 3


def test_outputs_as_json_carry_their_number(shell: Shell) -> None:
    result = shell("run", TARGET, "r", "--input", "1", "--json")
    assert [each["output"] for each in result.json()] == EXPECTED[-2:]
    watched = shell("watch", "r", "--json").json()
    assert [each["seq"] for each in watched] == list(range(1, len(watched) + 1))
    keys = {"seq", "kind", "at", "superstep", "executor", "incarnation", "pid", "data"}
    assert all(keys <= each.keys() for each in watched)
    seen = [each["seq"] for each in watched if each["kind"] == "output"]
    assert seen == [each["seq"] for each in result.json()]
    rest = shell("watch", "r", "--json", "--after", str(watched[-3]["seq"])).json()
    assert rest == watched[-2:]


def test_a_resume_that_finds_nothing_starts_nothing(shell: Shell) -> None:
    assert shell(*RESUME).code == 2
    assert not list(shell.folder.glob("ninelives.db*"))
    shell("run", TARGET, "r", "--input", "1")
    missing = shell(*RESUME)
    assert missing.code == 2
    assert "error: RunNotFound" in missing.err
    assert [each["id"] for each in shell("ls", "--json").json()] == ["r"]


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["TERM", "INT"]
)
def test_a_signal_finishes_the_operation_under_way_and_says_how_to_go_on(
    shell: Shell, number: signal.Signals, code: int
) -> None:
    shell.environment["SCRIPTED_DELAY_SECONDS"] = "0.15"
    child = shell.start(*RUN)
    assert child.stdout is not None
    first = child.stdout.readline().rstrip()
    child.send_signal(number)
    with child:
        out, err = child.communicate(timeout=30)
    assert child.returncode == code
    assert "ninelives resume launch-1" in err
    report = shell.report("launch-1")
    assert counts(report, "held") == {"calls": 0, "tokens": 0}
    assert report["processes"][0]["ended"] == "stopped"  # type: ignore[index]
    assert report["run"]["status"] == "interrupted"
    rest = shell(*RESUME, SCRIPTED_DELAY_SECONDS="0")
    assert [first, *out.splitlines(), *rest.lines] == EXPECTED


def test_of_two_that_resume_at_once_one_wins_and_the_other_says_why(shell: Shell) -> None:
    shell(*RUN, CRASH_AT_STEP="18")
    both = [shell.start(*RESUME, SCRIPTED_DELAY_SECONDS="0.05") for _ in range(2)]
    results = []
    for child in both:
        with child:
            results.append((*child.communicate(timeout=50), child.returncode))
    won = [result for result in results if result[2] == 0]
    lost = [result for result in results if result[2] == 2]
    assert (len(won), len(lost)) == (1, 1), results
    assert won[0][0].splitlines() == EXPECTED[2:]
    assert "error: RunOwned" in lost[0][1]
    assert len(shell.file("notifications.jsonl")) == 20


def test_a_run_that_lives_elsewhere_is_followed(shell: Shell) -> None:
    shell.environment["SCRIPTED_DELAY_SECONDS"] = "0.03"
    owner = shell.start(*RUN)
    assert owner.stdout is not None
    first = owner.stdout.readline().rstrip()
    follower = shell(*RUN)
    with owner:
        out, _ = owner.communicate(timeout=50)
    assert [first, *out.splitlines()] == EXPECTED
    assert (follower.code, follower.lines) == (0, EXPECTED)
    assert len(shell.file("notifications.jsonl")) == 20


def test_a_stopped_owner_is_taken_over_only_when_asked_and_wakes_in_vain(shell: Shell) -> None:
    log = {"SCRIPTED_LOG": "requests.jsonl"}
    owner = shell.start(*RUN, SCRIPTED_DELAY_SECONDS="0.5", **log)
    while len(shell.file("requests.jsonl")) < 2:
        time.sleep(0.01)  # it now waits for its model, with no commit under way
    owner.send_signal(signal.SIGSTOP)
    try:
        refused = shell(*RESUME)
        assert refused.code == 2
        assert str(owner.pid) in refused.err
        taken = shell(*RESUME, "--take-over")
        assert taken.code == 0
        before = shell("watch", "launch-1", "--json").lines
    finally:
        owner.send_signal(signal.SIGCONT)
        with owner:
            _, err = owner.communicate(timeout=30)
    assert owner.returncode == 2
    assert "error: StaleEpoch" in err
    assert shell("watch", "launch-1", "--json").lines == before
    assert len(shell.file("notifications.jsonl")) == 20
    assert shell("verify").code == 0


def test_a_reader_that_goes_away_does_no_harm(shell: Shell) -> None:
    shell("run", TARGET, "r", "--input", "3")
    with shell.start("watch", "r", "--json") as child:
        assert child.stdout is not None
        json.loads(child.stdout.readline())
        child.stdout.close()
        assert child.wait(timeout=20) in {0, 1, 141}


def test_help_names_every_command(shell: Shell) -> None:
    text = "\n".join(shell("--help").lines)
    for command in ("run", "resume", "report", "clear-halt", "ls", "show", "watch", "verify"):
        assert command in text
    assert shell("nonsense").code == 2
