"""Writes a tree: regular files in folders that are made here, none of them writable in the end."""

import errno
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from worker.checkout.bounds import LeftOut
from worker.checkout.listing import Choice, Chosen

FILE_MODE: Final = 0o400
FOLDER_MODE: Final = 0o500
TREE: Final = "tree"
MANIFEST: Final = "manifest.json"
_NO_NAME: Final = frozenset({errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL})
"""What a file system says of a name that it cannot hold: their limits and letters differ."""


def write_tree(folder: Path, commit: str, choice: Choice, contents: Iterable[bytes]) -> None:
    """Make ``folder`` with the tree and its manifest. Raises OSError where the disk refuses."""
    folder.mkdir(mode=0o700)
    root = folder / TREE
    root.mkdir(mode=0o700)
    made = {"": root}
    written = []
    for each, data in zip(choice.files, contents, strict=True):
        if _write(root, made, each, data):
            written.append(each)
        else:
            choice.left_out[LeftOut.ODD_NAME] += 1
    for path in sorted(made.values(), reverse=True):
        path.chmod(FOLDER_MODE)
    manifest = {
        "commit": commit,
        "files": sorted([each.path, each.size, each.oid] for each in written),
        "left_out": dict(sorted(choice.left_out.items())),
    }
    (folder / MANIFEST).write_text(json.dumps(manifest))


def _write(root: Path, made: dict[str, Path], file: Chosen, data: bytes) -> bool:
    """False where the file system takes the name for one that is there already: in another case,
    in another spelling, or as a folder; or cannot hold it."""
    folder, _, _ = file.path.rpartition("/")
    try:
        _make(made, folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        handle = os.open(root / file.path, flags, FILE_MODE)
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        return False
    except OSError as error:
        if error.errno in _NO_NAME:
            return False
        raise
    with os.fdopen(handle, "wb") as out:
        out.write(data)
    return True


def _make(made: dict[str, Path], folder: str) -> Path:
    known = made.get(folder)
    if known is not None:
        return known
    parent, _, name = folder.rpartition("/")
    path = _make(made, parent) / name
    path.mkdir(mode=0o700)
    made[folder] = path
    return path
