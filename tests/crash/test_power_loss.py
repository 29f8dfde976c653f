"""The power fails at any act on the disk: what anybody relied on is there when it is back."""

from __future__ import annotations

import asyncio
import pathlib
import random
from dataclasses import dataclass, field

import pytest

from ninelives import errors, faults
from ninelives.engine.runtime import Runtime
from ninelives.faults import Boundary
from support import desk, disk
from support.desk import Desk, Seen
from support.disk import Act, Plate

PAGES_OF_A_CHECKPOINT = 12  # so small that a short run has many of them
SENT, REQUESTED, COMMITTED, SHOWN = "sent", "requested", "committed", "shown"


@dataclass
class Recorded:
    """A run on such a disk: every act on its files, and its whole journal."""

    acts: list[Act]
    whole: Seen
    moments: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        on_disk = [number for number, act in enumerate(self.acts) if act.kind != "told"]
        self.moments = [*on_disk, len(self.acts)]

    def told(self, what: str, moment: int) -> list[tuple[object, ...]]:
        """What the world had been told when the power failed."""
        said = [act.said for act in self.acts[:moment] if act.kind == "told"]
        return [each[1:] for each in said if isinstance(each, tuple) and each[0] == what]


async def record(folder: pathlib.Path, synchronous: str = "FULL") -> Recorded:
    """Run once on a disk that notes everything, to the end and out of the store."""
    subject = Desk()
    with disk.mounted() as mounted:
        runtime = Runtime(
            f"sqlite:///{folder}/a.db",
            on_output=lambda _run, seq, _value: mounted.tell((SHOWN, seq)),
        )
        async with runtime:
            writing = runtime.store._writing  # type: ignore[attr-defined]
            writing.wal_autocheckpoint(PAGES_OF_A_CHECKPOINT)
            writing.pragma("synchronous", synchronous)

            def committed(boundary: Boundary) -> None:
                if boundary is Boundary.COMMIT_AFTER:
                    (found,) = writing.execute("SELECT coalesce(max(id), 0) FROM events")
                    mounted.tell((COMMITTED, found[0] & 0xFFFFFFFF))

            faults.observe(committed)
            subject.echo.before = lambda prompt: mounted.tell((REQUESTED, prompt))
            subject.before_sending = lambda key, text: mounted.tell((SENT, key, text))
            try:
                run = await runtime.start(subject.workflow(), desk.START, run_id="r")
                assert (await run.wait()).state == "completed"
            finally:
                faults.observe(None)
            whole = await desk.look(runtime)
    assert len(whole.outputs) == desk.START
    return Recorded(mounted.acts, whole)


def after_power_loss(recorded: Recorded, moment: int, seed: int, folder: pathlib.Path) -> str:
    """Put into a new folder what is left; returns the store's address there."""
    plate = Plate()
    for act in recorded.acts[:moment]:
        plate.take(act)
    folder = folder / f"{moment}-{seed}"
    folder.mkdir()
    for name, content in plate.after_power_loss(random.Random(f"{moment} {seed}")).items():
        (folder / name).write_bytes(content)
    return f"sqlite:///{folder}/a.db"


async def judge(recorded: Recorded, moment: int, url: str) -> list[str]:
    """What somebody has lost; empty if nobody has."""
    committed = max((seq for (seq,) in recorded.told(COMMITTED, moment)), default=0)
    try:
        async with Runtime(url) as runtime:
            seen = await desk.look(runtime)
    except errors.NineLivesError as error:
        return [f"the store cannot be opened: {error}"]
    problems = list(seen.damage)
    if list(seen.events) != list(recorded.whole.events[: len(seen.events)]):
        problems.append("the journal is another one")
    if len(seen.events) < int(str(committed)):
        problems.append(f"{committed} facts were acknowledged, {len(seen.events)} are there")
    return problems


async def judge_resumed(recorded: Recorded, moment: int, url: str) -> list[str]:
    """What differs from a run whose power never failed, once it has been taken up and ended."""
    subject = Desk()
    sent = [(str(key), text) for key, text in recorded.told(SENT, moment)]
    subject.outside.received = list(sent)
    async with Runtime(url) as runtime:
        run = await runtime.start(subject.workflow(), desk.START, run_id="r")
        status = await run.wait()
        seen = await desk.look(runtime)
    problems = [*seen.damage] + ([] if status.state == "completed" else [f"it ended {status}"])
    if [value for _, value in seen.outputs] != [value for _, value in recorded.whole.outputs]:
        problems.append(f"other outputs: {seen.outputs}")
    shown = [seq for (seq,) in recorded.told(SHOWN, moment)]
    if shown != [seq for seq, _ in seen.outputs[: len(shown)]]:
        problems.append(f"shown were {shown}, now there are {seen.outputs}")
    if sorted(subject.outside.keys) != sorted(f"r:n:{n + 1}" for n in range(desk.START)):
        problems.append(f"the world got {subject.outside.keys}")
    if seen.letters != recorded.whole.letters:
        problems.append(f"in the outbox are {seen.letters}")
    requests = len(recorded.told(REQUESTED, moment)) + len(subject.echo.requests)
    if not desk.START <= requests <= desk.START + 1:
        problems.append(f"{requests} model requests were made")
    return problems


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return asyncio.run(record(tmp_path_factory.mktemp("recorded")))


def sample(recorded: Recorded, count: int, seed: int) -> list[int]:
    return sorted(random.Random(seed).sample(recorded.moments, count))


def test_the_run_touches_every_kind_of_file_and_act(recorded: Recorded) -> None:
    """What the other tests cover: else they would show nothing."""
    kinds = {(act.kind, act.file) for act in recorded.acts}
    for name in ("a.db", "a.db-wal", "a.db-journal"):
        assert {("made", name), ("written", name), ("synced", name)} <= kinds
    assert {("removed", "a.db-wal"), ("cut", "a.db"), ("folder", "")} <= kinds
    checkpoints = [act for act in recorded.acts if (act.kind, act.file) == ("synced", "a.db")]
    assert len(checkpoints) > 5


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
async def test_what_was_acknowledged_outlives_a_power_loss_at_any_act(
    recorded: Recorded, tmp_path: pathlib.Path, seed: int
) -> None:
    failed = {}
    for moment in sample(recorded, 60, seed):
        problems = await judge(recorded, moment, after_power_loss(recorded, moment, seed, tmp_path))
        if problems:
            failed[moment] = problems
    assert failed == {}


@pytest.mark.parametrize("seed", [5, 6, 7, 8])
async def test_a_run_goes_on_after_a_power_loss_as_if_there_had_been_none(
    recorded: Recorded, tmp_path: pathlib.Path, seed: int
) -> None:
    failed = {}
    for moment in sample(recorded, 30, seed):
        url = after_power_loss(recorded, moment, seed, tmp_path)
        problems = await judge_resumed(recorded, moment, url)
        if problems:
            failed[moment] = problems
    assert failed == {}


@pytest.mark.parametrize("synchronous", ["OFF", "NORMAL"])
async def test_an_engine_that_commits_without_fsync_is_caught(
    tmp_path: pathlib.Path, synchronous: str
) -> None:
    (tmp_path / "first").mkdir()
    broken = await record(tmp_path / "first", synchronous)
    lost = [
        problem
        for moment in sample(broken, 20, 1)
        for problem in await judge(broken, moment, after_power_loss(broken, moment, 1, tmp_path))
    ]
    assert any("were acknowledged" in problem for problem in lost)


async def test_a_header_that_was_torn_amid_a_checkpoint_is_read_from_the_log(
    tmp_path: pathlib.Path,
) -> None:
    (tmp_path / "left").mkdir()
    async with Runtime(f"sqlite:///{tmp_path}/a.db") as runtime:
        await (await runtime.start(Desk().workflow(), 1, run_id="r")).wait()
        whole = await desk.look(runtime)
        for name in ("a.db", "a.db-wal"):
            (tmp_path / "left" / name).write_bytes((tmp_path / name).read_bytes())
    file = tmp_path / "left" / "a.db"
    file.write_bytes(b"torn" * 128 + file.read_bytes()[512:])
    async with Runtime(f"sqlite:///{file}") as runtime:
        assert await desk.look(runtime) == whole


async def test_a_file_that_is_no_database_is_refused_whatever_lies_beside_it(
    tmp_path: pathlib.Path,
) -> None:
    file = tmp_path / "diary.db"
    file.write_text("a diary, not a database, " * 300)
    before = file.read_bytes()
    for suffix in ("-wal", "-journal"):
        beside = file.with_name(file.name + suffix)
        beside.write_text("its index")
        with pytest.raises(errors.StoreRefused):
            await Runtime(f"sqlite:///{file}").store.open()
        assert file.read_bytes() == before
        beside.unlink(missing_ok=True)
