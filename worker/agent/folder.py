"""The folder of one session: everything that the CLI may call its own, removed afterwards.

A worker that is killed cannot remove anything, so each new session removes what such workers left:
folders whose owner's lock is free.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

PREFIX: Final = "retriage-agent-"


@contextmanager
def session_folder(parent: Path | None) -> Iterator[Path]:
    """A new folder (0700) with ``home``, ``config``, ``tmp`` and the empty ``work``."""
    parent = (parent or Path(tempfile.gettempdir())).resolve()
    sweep(parent)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    owner = -1
    try:
        owner = _owned(folder)
        for name in ("home", "config", "tmp", "work"):
            (folder / name).mkdir(mode=0o700)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if owner >= 0:
            os.close(owner)


def sweep(parent: Path) -> None:
    """Remove the folders of sessions whose worker is gone."""
    for mark in parent.glob(f"{PREFIX}*/owner"):
        with suppress(OSError):  # somebody else's, locked by its worker, or removed meanwhile
            file = os.open(mark, os.O_RDWR)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(mark.parent, ignore_errors=True)
            finally:
                os.close(file)


def _owned(folder: Path) -> int:
    """Lock a mark for as long as this process lives; it gets its name once it is locked."""
    file = os.open(folder / "owner.new", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(file, fcntl.LOCK_EX)
    (folder / "owner.new").rename(folder / "owner")
    return file
