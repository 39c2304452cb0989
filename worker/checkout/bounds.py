"""How much of a repository is taken, and for how long it may take."""

from dataclasses import dataclass
from enum import StrEnum

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Bounds:
    """``file_bytes``, ``files`` (and as many folders) and ``tree_bytes``: what is beyond is left
    out. ``entries`` of the commit, ``pack_bytes``: what is beyond fails. ``wall_seconds`` for one
    fetch; ``wait_seconds`` for another one's. ``cpu_seconds`` and ``memory_bytes``: of one process.
    """

    file_bytes: int = _MIB
    files: int = 20_000
    tree_bytes: int = 256 * _MIB
    entries: int = 200_000
    pack_bytes: int = 256 * _MIB
    wall_seconds: float = 180
    wait_seconds: float = 240
    cpu_seconds: int = 120
    memory_bytes: int = 2048 * _MIB


class LeftOut(StrEnum):
    """Why an entry of the commit is not in the tree."""

    TOO_LARGE = "too-large"
    LINK = "link"
    SUBMODULE = "submodule"
    ODD_NAME = "odd-name"
    ENV_FILE = "env-file"
    OVER_LIMIT = "over-limit"


class Reason(StrEnum):
    """Why there is no tree."""

    NO_GIT = "no-git"
    NO_FOLDER = "no-folder"
    NO_TOKEN = "no-token"  # noqa: S105 - a word
    EMPTY = "empty"
    UNAUTHORISED = "unauthorised"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not-found"
    MOVED = "moved"
    LIMITED = "limited"
    COMMIT_GONE = "commit-gone"
    UNREACHABLE = "unreachable"
    TOO_LARGE = "too-large"
    TIMEOUT = "timeout"
    DISK_FULL = "disk-full"
    BUSY = "busy"
    BROKEN = "broken"


RETRYABLE = frozenset(
    {
        Reason.MOVED,  # a later window asks under the new name
        Reason.LIMITED,
        Reason.UNREACHABLE,
        Reason.TIMEOUT,
        Reason.DISK_FULL,
        Reason.BUSY,
        Reason.BROKEN,
    }
)
"""The rest is a person's move, or stays as it is."""


class Stopped(Exception):  # noqa: N818 - an outcome
    """There will be no tree. ``detail`` is one line for people."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
