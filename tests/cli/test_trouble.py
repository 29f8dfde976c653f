"""Bad input and bad disks: a clear error, the right exit code, and nothing durable is lost."""

from __future__ import annotations

import pathlib
import resource
import shutil
import subprocess
import sys

import apsw
import pytest

from ninelives.store import migrate
from support.shell import TARGET, Shell

RUN = ("run", TARGET, "launch-1", "--input", "20")
RESUME = ("resume", "launch-1")


def test_a_file_that_is_no_database_is_refused_and_left_alone(shell: Shell) -> None:
    file = shell.folder / "ninelives.db"
    file.write_text("a diary, not a database, " * 100)
    before = file.read_bytes()
    result = shell(*RUN)
    assert result.code == 2
    assert "error: StoreRefused" in result.err
    assert "not a SQLite database" in result.err
    assert file.read_bytes() == before


def test_another_programs_database_is_refused_and_left_alone(shell: Shell) -> None:
    other = apsw.Connection(str(shell.folder / "ninelives.db"))
    other.execute("CREATE TABLE customers (name)")
    other.close()
    result = shell(*RUN)
    assert result.code == 2
    assert "another program's database" in result.err


def test_a_store_of_a_newer_version_is_refused(shell: Shell) -> None:
    shell("run", TARGET, "r", "--input", "1")
    connection = apsw.Connection(str(shell.folder / "ninelives.db"))
    connection.pragma("user_version", migrate.SCHEMA + 1)
    connection.close()
    for words in (RUN, RESUME, ("ls",)):
        result = shell(*words)
        assert result.code == 2
        assert "upgrade ninelives" in result.err


@pytest.mark.parametrize("kept", [0.3, 0.8])
def test_a_truncated_store_is_told_and_a_backup_of_it_works(shell: Shell, kept: float) -> None:
    shell(*RUN, CRASH_AT_STEP="12")
    file = shell.folder / "ninelives.db"
    connection = apsw.Connection(str(file))
    connection.pragma("wal_checkpoint", "TRUNCATE")
    connection.close()
    whole = file.read_bytes()
    file.write_bytes(whole[: int(len(whole) * kept)])
    result = shell(*RESUME)
    assert result.code == 1
    assert "error: StoreFailed" in result.err
    assert "backup" in result.err
    file.write_bytes(whole)
    assert shell(*RESUME).code == 0


def test_a_damaged_event_is_found(shell: Shell) -> None:
    shell(*RUN)
    file = shell.folder / "ninelives.db"
    connection = apsw.Connection(str(file))
    connection.pragma("wal_checkpoint", "TRUNCATE")
    connection.close()
    file.write_bytes(file.read_bytes().replace(b'{"workflow":', b'\x00"workflow":'))
    result = shell("verify")
    assert result.code == 1
    assert "cannot be read" in result.err or "damaged" in result.err


def test_a_full_disk_ends_with_a_clear_error_and_a_resumable_run(shell: Shell) -> None:
    command = [sys.executable, "-m", "ninelives.cli", *RUN]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (180_000, 180_000))

    full = subprocess.run(
        command,
        cwd=shell.folder,
        env={**shell._env({}), "SCRIPTED_DELAY_SECONDS": "0", "NOTIFY_FILE": "n.jsonl"},
        preexec_fn=limit,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert full.returncode == 1, full
    assert "error: StoreFailed" in full.stderr
    assert "Traceback" not in full.stderr
    rest = shell(*RESUME, NOTIFY_FILE="n.jsonl")
    assert rest.code == 0, rest
    assert full.stdout.splitlines() + rest.lines == shell("outputs", "launch-1").lines
    assert len(shell.file("n.jsonl")) == 20
    assert shell("verify").code == 0


RENAMED = """
from ninelives import Executor, WorkflowBuilder, WorkflowContext, handler

class {cls}(Executor):
    @handler
    async def work(self, number: int, ctx: WorkflowContext[int, int]) -> None:
        {body}
        await ctx.yield_output(number)

node = {cls}(id="{id}")
flow = WorkflowBuilder(name="flow", start_executor=node).build()
"""


def write(shell: Shell, *, cls: str = "Worker", id: str = "worker", body: str = "pass") -> None:  # noqa: A002
    (shell.folder / "flow.py").write_text(RENAMED.format(cls=cls, id=id, body=body))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"id": "wrker"}, ["'worker' (Worker) is missing", "'wrker' (Worker) is new"]),
        ({"cls": "Other"}, ["executor 'worker' was class Worker, is Other"]),
    ],
)
def test_a_changed_graph_is_refused_with_what_differs(
    shell: Shell, changed: dict[str, str], words: list[str]
) -> None:
    write(shell, body="import os; os.kill(os.getpid(), 9)")
    shell("run", "flow.py:flow", "r", "--input", "1")
    write(shell, **changed)
    for command in (("resume", "r"), ("run", "flow.py:flow", "r", "--input", "1")):
        result = shell(*command)
        assert result.code == 2
        assert "error: GraphChanged" in result.err
        assert all(word in result.err for word in words), result.err
    write(shell)
    assert shell("resume", "r").lines == ["1"]


def test_an_unencodable_message_fails_the_run_and_mended_code_goes_on(shell: Shell) -> None:
    write(shell, body="await ctx.yield_output({'a': [object()]})")
    first = shell("run", "flow.py:flow", "r", "--input", "1")
    assert first.code == 1
    assert "Unencodable" in first.err
    assert "output.a[0]" in first.err
    write(shell)
    assert shell("resume", "r").lines == ["1"]


def test_an_error_in_a_handler_fails_the_run_with_its_place(shell: Shell) -> None:
    write(shell, body="raise ValueError('no such order')")
    result = shell("run", "flow.py:flow", "r", "--input", "1")
    assert result.code == 1
    assert "failed: ValueError: executor 'worker' at " in result.err
    assert "flow.py:7: no such order" in result.err
    again = shell("run", "flow.py:flow", "r", "--input", "1")
    assert again.code == 1


@pytest.mark.parametrize(
    ("target", "text", "code", "word"),
    [
        ("flow.py:missing", "1", 2, "TargetInvalid"),
        ("flow.py", "1", 2, "TargetInvalid"),
        ("nowhere.py:flow", "1", 2, "TargetInvalid"),
        ("no_such_module:flow", "1", 2, "TargetInvalid"),
        ("flow.py:Worker", "1", 2, "TargetInvalid"),
        ("flow.py:flow", "nonsense", 2, "InputInvalid"),
        ("flow.py:flow", '"text"', 2, "InputInvalid"),
        ("flow.py:flow", None, 2, "InputInvalid"),
        ("broken.py:flow", "1", 2, "TargetInvalid"),
    ],
)
def test_wrong_words_are_refused_and_nothing_is_started(
    shell: Shell, target: str, text: str | None, code: int, word: str
) -> None:
    write(shell)
    (shell.folder / "broken.py").write_text("def flow(:\n")
    given = [] if text is None else ["--input", text]
    result = shell("run", target, "r", *given)
    assert result.code == code
    assert f"error: {word}" in result.err
    assert "Traceback" not in result.err
    assert shell("show", "r").code == 2


def test_settings_that_cannot_be_asked_for_start_nothing(shell: Shell) -> None:
    result = shell(*RUN, TOKEN_BUDGET="lots")
    assert result.code == 2
    assert "error: SettingsInvalid" in result.err
    assert "lots" in result.err
    assert "Traceback" not in result.err
    assert shell("show", "launch-1").code == 2


@pytest.mark.parametrize("name", ["nowhere", "effect_done:x"])
def test_an_unknown_boundary_is_refused_with_the_known_ones(shell: Shell, name: str) -> None:
    result = shell(*RUN, NINELIVES_KILL_AT=name)
    assert result.code == 2
    assert "effect_done" in result.err


@pytest.mark.parametrize("run_id", ["../../x", "a/b", "A", "Ä", "run:1", "x" * 200])
def test_run_ids_are_names_and_never_paths(shell: Shell, run_id: str) -> None:
    write(shell)
    before = {path.name for path in shell.folder.iterdir()}
    assert shell("run", "flow.py:flow", run_id, "--input", "1").code == 0
    assert shell("outputs", run_id).lines == ["1"]
    new = {path.name for path in shell.folder.iterdir()} - before
    assert all(name.startswith("ninelives.db") or name == "__pycache__" for name in new)


@pytest.mark.parametrize("run_id", ["", "a b", "a\nb", "x" * 201, "a\x07"])
def test_other_run_ids_are_refused(shell: Shell, run_id: str) -> None:
    write(shell)
    result = shell("run", "flow.py:flow", run_id, "--input", "1")
    assert result.code == 2
    assert "error: RunIdInvalid" in result.err


def test_a_moved_workflow_is_found_again_by_its_new_target(shell: Shell) -> None:
    write(shell, body="import os; os.kill(os.getpid(), 9)")
    shell("run", "flow.py:flow", "r", "--input", "1")
    write(shell)
    moved = shell.folder / "moved" / "flow.py"
    moved.parent.mkdir()
    shutil.move(shell.folder / "flow.py", moved)
    lost = shell("resume", "r")
    assert lost.code == 2
    assert "error: TargetInvalid" in lost.err
    assert shell("resume", "r", "--target", "moved/flow.py:flow").lines == ["1"]


def test_a_store_in_a_folder_that_does_not_exist_is_refused(shell: Shell) -> None:
    write(shell)
    store = f"sqlite:///{pathlib.Path('no') / 'such' / 'folder.db'}"
    result = shell("run", "flow.py:flow", "r", "--input", "1", "--store", store)
    assert result.code == 2
    assert "error: StoreRefused" in result.err
    assert shell("ls", "--store", "postgres://x").code == 2


UNKNOWN = """
import os
from typing_extensions import Never
from ninelives import Executor, WorkflowBuilder, WorkflowContext, handler

def mail(text, *, key):
    with open("mails.txt", "a") as file:
        file.write(key + "\\n")
    if os.environ.get("DIE"):
        os.kill(os.getpid(), 9)

class Mails(Executor):
    @handler
    async def go(self, number: int, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.effect(mail, "hello", key="welcome")
        await ctx.yield_output("sent")

flow = WorkflowBuilder(name="mails", start_executor=Mails(id="mails")).build()
"""


def test_show_tells_a_person_at_night_what_to_do(shell: Shell) -> None:
    (shell.folder / "flow.py").write_text(UNKNOWN)
    shell("run", "flow.py:flow", "r", "--input", "1", DIE="1")
    assert shell("resume", "r").code == 3
    shown = "\n".join(shell("show", "r").lines)
    command = "ninelives resolve r welcome --applied"
    assert "OutcomeUnknown" in shown
    assert "r:welcome, begun by mails" in shown
    assert command in shown
    assert shell("show", "r", "--json").json()[0]["unknown_effects"] == ["r:welcome"]
    assert shell(*command.split()[1:]).code == 0
    assert shell("resume", "r").lines == ["sent"]
    assert "unknown" not in "\n".join(shell("show", "r").lines)
    assert (shell.folder / "mails.txt").read_text() == "r:welcome\n"


def test_a_cancelled_run_says_so_by_its_exit_code(shell: Shell) -> None:
    shell(*RUN, CRASH_AT_STEP="18")
    assert shell("cancel", "launch-1", "--by", "me").lines == ["cancelled by me"]
    assert shell(*RUN).code == 5
    assert shell(*RESUME).code == 2
    assert shell("cancel", "launch-1").code == 2


def test_words_that_do_not_go_together_are_refused(shell: Shell) -> None:
    shell("run", TARGET, "r", "--input", "1")
    for words in (["resolve", "r", "k"], ["resolve", "r", "k", "--applied", "--result", "{"]):
        assert shell(*words).code == 2
    closed = shell("resolve", "r", "step:1", "--applied")
    assert closed.code == 2
    assert "error: EffectNotOpen" in closed.err
