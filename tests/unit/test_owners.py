"""Who is alive is told by the kernel's locks, in other processes and in forked ones."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

from ninelives import errors
from ninelives.store import owners

HOLD = """
import pathlib, sys
from ninelives.store import owners
lock = owners.OwnerLock(pathlib.Path(sys.argv[1]))
print(lock.token, flush=True)
sys.stdin.read()
"""


def hold(store: pathlib.Path) -> tuple[subprocess.Popen[str], str]:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(store)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    return child, child.stdout.readline().strip()


def end(child: subprocess.Popen[str]) -> None:
    child.kill()
    child.communicate()


def test_an_owner_in_another_process_is_alive_until_it_is_killed(tmp_path: pathlib.Path) -> None:
    store = tmp_path / "a.db"
    child, token = hold(store)
    assert owners.alive(store, token)
    assert owners.alive(store, token)  # asking does not take the lock away
    end(child)
    assert not owners.alive(store, token)


def test_a_forked_child_does_not_keep_a_dead_owner_alive(tmp_path: pathlib.Path) -> None:
    store = tmp_path / "a.db"
    script = HOLD.replace("print", "import os, signal\nif not os.fork(): signal.pause()\nprint")
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(store)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert child.stdout is not None
    token = child.stdout.readline().strip()
    try:
        assert owners.alive(store, token)
        child.kill()
        child.wait()
        assert not owners.alive(store, token)
    finally:
        with child:
            os.killpg(child.pid, 9)


def test_this_process_is_alive_and_probing_does_not_free_its_lock(tmp_path: pathlib.Path) -> None:
    store = tmp_path / "a.db"
    lock = owners.OwnerLock(store)
    assert owners.alive(store, lock.token)
    probe = (
        "import pathlib,sys; from ninelives.store import owners; "
        "sys.exit(not owners.alive(pathlib.Path(sys.argv[1]), sys.argv[2]))"
    )
    command = [sys.executable, "-c", probe, str(store), lock.token]
    assert subprocess.run(command, check=False).returncode == 0
    lock.release()
    assert subprocess.run(command, check=False).returncode == 1


def test_a_lock_file_with_foreign_content_changes_nothing(tmp_path: pathlib.Path) -> None:
    store = tmp_path / "a.db"
    child, token = hold(store)
    (tmp_path / "a.db-owners" / token).write_text(str(os.getpid()))
    assert owners.alive(store, token)
    end(child)
    assert not owners.alive(store, token)


def test_nobody_is_not_alive(tmp_path: pathlib.Path) -> None:
    assert not owners.alive(tmp_path / "a.db", "")
    assert not owners.alive(tmp_path / "a.db", "never-held")


MOUNTS = """\
22 1 8:1 / / rw - ext4 /dev/vda rw
30 22 0:40 / /mnt/share rw - nfs4 server:/share rw
31 22 0:41 / /mnt/with\\040space rw - 9p host rw
32 30 8:2 / /mnt/share/local rw - xfs /dev/vdb rw
"""


@pytest.mark.parametrize(
    ("path", "mount"),
    [
        ("/var/a.db", ("/", "ext4")),
        ("/mnt/share/a.db", ("/mnt/share", "nfs4")),
        ("/mnt/shared/a.db", ("/", "ext4")),
        ("/mnt/with space/a.db", ("/mnt/with space", "9p")),
        ("/mnt/share/local/a.db", ("/mnt/share/local", "xfs")),
    ],
)
def test_the_mount_that_a_store_lies_on_is_found(path: str, mount: tuple[str, str]) -> None:
    assert owners.mount_of(pathlib.Path(path), MOUNTS) == mount


def test_a_network_file_system_is_refused_by_name() -> None:
    kinds = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
    network = [line.split(" ")[4] for line in kinds if " - nfs" in line or " - fuse." in line]
    for mount in network:
        with pytest.raises(errors.StoreRefused, match="network file system"):
            owners.refuse_network_disk(pathlib.Path(mount, "a.db"), "sqlite:///a.db")
    owners.refuse_network_disk(pathlib.Path("/tmp/a.db"), "sqlite:///a.db")
