"""Operating system locks beside a SQLite store: who is alive, and whose turn it is to write.

An owner is a process that holds the lock on a file of its own in `<store>-owners/` for life.
The kernel frees it at death, however the process dies; a stopped or hung process keeps it.
POSIX record locks are used because, unlike `flock`, a forked child does not inherit them.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import struct
import sys
from collections.abc import Generator

from ninelives import errors, ids

_NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "virtiofs"}
)
_FLOCK = "hhqqi4x"  # Linux's struct flock on 64-bit machines
# Closing any descriptor of a file drops this process's locks on it, so that a lock which this
# process itself holds must never be probed.
_held_here: set[tuple[str, str]] = set()


class OwnerLock:
    """This process's proof of life, for one store."""

    def __init__(self, store: pathlib.Path) -> None:
        self.token = ids.new_token()
        self._folder = _folder(store)
        self._folder.mkdir(exist_ok=True)
        self._path = self._folder / self.token
        self._pid = os.getpid()
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _held_here.add((str(self._folder), self.token))

    def release(self) -> None:
        """Count as dead from now on."""
        if self._file < 0:
            return
        _held_here.discard((str(self._folder), self.token))
        if os.getpid() == self._pid:
            self._path.unlink(missing_ok=True)
        os.close(self._file)
        self._file = -1


def alive(store: pathlib.Path, token: str) -> bool:
    """Whether the process behind `token` still lives. An empty token is nobody's."""
    folder = _folder(store)
    if not token:
        return False
    if (str(folder), token) in _held_here:
        return True
    try:
        file = os.open(folder / token, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        # A shared probe: two processes that ask at once must not see each other.
        fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    (folder / token).unlink(missing_ok=True)
    return False


def _folder(store: pathlib.Path) -> pathlib.Path:
    return store.with_name(store.name + "-owners")


class Turnstile:
    """Lets several processes commit to one file in a fair order.

    SQLite's own lock is taken by whoever polls at the right moment. Here a writer queues for
    the turn before it lets go of its place in the queue, so nobody overtakes more than once.
    """

    _QUEUE, _TURN = 0, 1

    def __init__(self, store: pathlib.Path) -> None:
        path = store.with_name(store.name + "-turn")
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    @contextlib.contextmanager
    def turn(self) -> Generator[None]:
        """Wait for the turn and hold it."""
        fcntl.lockf(self._file, fcntl.LOCK_EX, 1, self._QUEUE)
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX, 1, self._TURN)
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, self._QUEUE)
        try:
            yield
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, self._TURN)

    def holder(self) -> int:
        """The process that has the turn; 0 if nobody has it, or if the system does not tell."""
        if sys.platform != "linux":
            return 0
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, self._TURN, 1, 0)
        kind, _, _, _, pid = struct.unpack(_FLOCK, fcntl.fcntl(self._file, fcntl.F_GETLK, asked))
        return 0 if kind == fcntl.F_UNLCK else int(pid)

    def close(self) -> None:
        os.close(self._file)


def refuse_network_disk(store: pathlib.Path, url: str) -> None:
    """WAL needs shared memory and true locks, which network file systems do not give.

    Raises:
        StoreRefused: the file lies on one (as far as the kernel's mount table tells).
    """
    try:
        table = pathlib.Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape")
    except OSError:
        return  # no mount table (macOS): nothing is known
    mount, kind = mount_of(store.resolve(), table)
    if kind in _NETWORK or kind.startswith("fuse."):
        raise errors.StoreRefused(
            url,
            f"{mount} is a network file system ({kind}), on which SQLite corrupts files; put the "
            "store on a local disk, or add ?network=allow to the URL at your own risk",
        )


def mount_of(path: pathlib.Path, table: str) -> tuple[str, str]:
    """The mount point that a path lies on, and its kind, by a table as in proc(5) mountinfo."""
    best = ("/", "")
    for line in table.splitlines():
        fields, _, rest = line.partition(" - ")
        point = fields.split(" ")[4].replace("\\040", " ")
        if path.is_relative_to(point) and len(point) >= len(best[0]):
            best = (point, rest.split(" ")[0])
    return best
