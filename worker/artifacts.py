"""Reports as files for people, under the data folder. The ledger keeps the truth.

Invariant: a file is whole or not there, and no part of a name leads out of the folder.
"""

import contextlib
import os
import re
import tempfile
from pathlib import Path

from ledger.records import Report
from worker.ports import Log

_UNFIT = re.compile(r"[^\w.-]", re.ASCII)
_LONGEST_PART = 100
_MOST_PARTS = 8


class FileArtifacts:
    """``worker.ports.Artifacts`` in a folder: files 0600, folders 0700."""

    def __init__(self, folder: Path, log: Log) -> None:
        self._folder = folder
        self._log = log

    async def export(self, report: Report) -> str:
        """Write the file and give its path; an empty one where the disk refuses, which is logged
        and stops nothing: the ledger has the report."""
        path = self._folder.joinpath(*safe_parts(report.path))
        try:
            _make_folders(path.parent, self._folder)
            _replace(path, report.text.encode("utf-8", errors="replace"))
        except OSError as error:
            self._log("STATE-NOT-SAVED", path=path, error=error.strerror or type(error).__name__)
            return ""
        return str(path)

    async def standing(self, path: str) -> str | None:
        """The text of the file; None where there is none that can be read."""
        try:
            return self._folder.joinpath(*safe_parts(path)).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            return None


def safe_parts(path: str) -> list[str]:
    """The parts of a report's path, each a plain name: no separator, no hidden name, no ``..``."""
    parts = [_plain(part) for part in path.split("/") if part not in ("", ".")]
    return parts[:_MOST_PARTS] or ["report"]


def _plain(part: str) -> str:
    return _UNFIT.sub("_", part).lstrip(".")[:_LONGEST_PART] or "_"


def _make_folders(folder: Path, root: Path) -> None:
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    for part in reversed([folder, *folder.parents]):
        if part.is_relative_to(root) and part != root:
            part.mkdir(mode=0o700, exist_ok=True)


def _replace(path: Path, data: bytes) -> None:
    """The new file takes the old one's place in one step. ``mkstemp`` makes it 0600."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
