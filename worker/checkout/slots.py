"""Which trees of one repository are kept on this machine, and who uses them.

``R<id>/lock``: held by whoever makes or removes a tree, and by the processes that it started.
``R<id>/1`` and so on: a tree with its manifest. ``R<id>/1.lock``: shared by those who use it.
A slot keeps its path whatever commit is in it: a session that is resumed finds the files where
it read them. So the lowest that nobody uses is taken, and usually there is only the first.

Invariant: a slot is changed only with both locks, and used only with its own, shared.

Invariant: locks belong to open files, so they end with the process that held them.
"""

import fcntl
import json
import os
import shutil
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from worker.checkout.writing import MANIFEST, TREE
from worker.ports import Checkout

MOST_SLOTS: Final = 4
KEPT_SLOTS: Final = 2
"""What is beyond is removed once nobody uses it."""
IDLE_SECONDS: Final = 14 * 86_400
_MAKING, _LOCK = "new-", "lock"


@dataclass(slots=True)
class Lock:
    """A lock that is held until it is closed."""

    file: int

    def share(self) -> None:
        """Only use it from here on. Between the two the lock is nobody's: hold the other one."""
        fcntl.flock(self.file, fcntl.LOCK_SH | fcntl.LOCK_NB)

    def close(self) -> None:
        """Give it up, as far as no child holds the file open. Safe to do twice."""
        file, self.file = self.file, -1
        if file >= 0:
            os.close(file)


def try_lock(path: Path, *, shared: bool = False) -> Lock | None:
    """The lock, or None while somebody else holds it. Raises OSError."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    return Lock(file)


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for one tree, with its lock."""

    folder: Path
    lock: Lock = field(compare=False)

    def put(self, made: Path) -> None:
        """A whole tree takes the place of what was there, which is then beside where it was made.
        With the lock alone."""
        with suppress(FileNotFoundError):
            self.folder.rename(made.with_name("old"))
        made.rename(self.folder)

    def checkout(self, commit: str) -> Checkout | None:
        """The tree, if it is there, of this commit, and whole: each file has its size. (After a
        power cut a file may have its name and nothing in it.)"""
        try:
            manifest = json.loads((self.folder / MANIFEST).read_bytes())
            sizes = {str(path): int(size) for path, size, _ in manifest["files"]}
            files = {str(path): str(oid) for path, _, oid in manifest["files"]}
            root = self.folder / TREE
            if manifest["commit"] != commit or not _is_whole(root, sizes):
                return None
            left_out = {str(reason): int(n) for reason, n in manifest["left_out"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        return Checkout(root, commit, files, sum(sizes.values()), left_out)


def _is_whole(root: Path, sizes: dict[str, int]) -> bool:
    return root.is_dir() and all(
        (root / path).stat(follow_symlinks=False).st_size == size for path, size in sizes.items()
    )


class Shelf:
    """The slots of one repository. All but ``lock`` need its lock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def lock(self) -> Lock | None:
        """Try to take the repository's lock. Raises OSError where the folder cannot be made."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return try_lock(self.folder / _LOCK)

    def mark_used(self) -> None:
        """It is no idle one."""
        os.utime(self.folder / _LOCK)

    def find(self, commit: str) -> tuple[Slot, Checkout] | None:
        """A whole tree of this commit, with its slot's lock, shared."""
        for number in range(1, MOST_SLOTS + 1):
            lock = try_lock(self._lock_of(number), shared=True)
            if lock is None:
                continue
            slot = Slot(self.folder / str(number), lock)
            checkout = slot.checkout(commit)
            if checkout is not None:
                return slot, checkout
            lock.close()
        return None

    def free(self) -> Slot | None:
        """The lowest slot that nobody uses, with its lock, alone."""
        for number in range(1, MOST_SLOTS + 1):
            lock = try_lock(self._lock_of(number))
            if lock is not None:
                return Slot(self.folder / str(number), lock)
        return None

    def workshop(self) -> Path:
        """A new folder to make a tree in."""
        return Path(tempfile.mkdtemp(prefix=_MAKING, dir=self.folder))

    def sweep(self, keep: int = KEPT_SLOTS) -> None:
        """Remove what a worker that died left behind, and slots that are not needed any more."""
        for left in self.folder.glob(f"{_MAKING}*"):
            remove(left)
        for number in range(keep + 1, MOST_SLOTS + 1):
            folder = self.folder / str(number)
            lock = try_lock(self._lock_of(number)) if folder.exists() else None
            if lock is not None:
                remove(folder)
                lock.close()

    def _lock_of(self, number: int) -> Path:
        return self.folder / f"{number}.lock"


def shelf_of(folder: Path, repository_id: int) -> Shelf:
    """A repository's place under the checkout folder, whatever it is called now."""
    return Shelf(folder / f"R{repository_id}")


def sweep_idle(folder: Path, idle_seconds: float = IDLE_SECONDS) -> None:
    """Remove the trees of repositories that nobody has asked for in so long."""
    for lock_file in folder.glob(f"R*/{_LOCK}"):
        with suppress(OSError):  # somebody else's: it is none of this run's
            if lock_file.stat().st_mtime < time.time() - idle_seconds:
                _sweep_all(Shelf(lock_file.parent))


def _sweep_all(shelf: Shelf) -> None:
    lock = shelf.lock()
    if lock is not None:
        shelf.sweep(keep=0)
        lock.close()


def remove(folder: Path) -> None:
    """Remove a tree that is not writable. What cannot be removed is left for the next sweep."""
    for path, folders, _ in os.walk(folder):
        for name in folders:
            with suppress(OSError):
                Path(path, name).chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
