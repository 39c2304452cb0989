"""Which processes of a round are left: told by their session and by a mark, never by their names.

A forked worker leads a session, and its work horse is in it. The agent's CLI leads one of its own,
but was started with a HOME in the round's folder, as the server was with its data there: the
folder's path, which no other round has, stands in the environment or the arguments of both.
"""

import os
import signal
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PAUSE_SECONDS = 0.05
LOOKS = 2


@dataclass(frozen=True, slots=True)
class Process:
    """One that lives: its parent, its session, and how it was called."""

    pid: int
    parent: int
    session: int
    command: str


def living(sessions: Collection[int], mark: str) -> list[Process]:
    """Everything that lives, of these sessions or with this mark. What is only not yet waited for
    does not live."""
    sought, own = mark.encode(), os.getpid()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == own:
            continue
        with suppress(OSError):  # it has ended meanwhile, or is somebody else's
            state, parent, session = _stat(entry)
            if state in "ZX":
                continue
            command = (entry / "cmdline").read_bytes()
            marked = session in sessions or sought in command
            if marked or sought in (entry / "environ").read_bytes():
                words = command.replace(b"\0", b" ").decode("utf-8", "replace")[:200]
                found.append(Process(int(entry.name), parent, session, words))
    return found


def left_over(sessions: Collection[int], mark: str, *, patience_seconds: float) -> list[Process]:
    """What still lives when all should have ended, and does so after some patience. It is ended.

    Twice nothing must be found: for an instant in which it becomes another program, a process has
    neither arguments nor an environment.
    """
    until, empty = time.monotonic() + patience_seconds, 0
    while empty < LOOKS:
        found = living(sessions, mark)
        empty = 0 if found else empty + 1
        if found and time.monotonic() >= until:
            for process in found:
                with suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
            return found
        time.sleep(PAUSE_SECONDS)
    return []


def horses_of(worker: int) -> list[int]:
    """The work horses of a worker: its children. None where it has ended."""
    try:
        text = Path(f"/proc/{worker}/task/{worker}/children").read_text(encoding="ascii")
    except OSError:
        return []
    return [int(word) for word in text.split()]


def _stat(entry: Path) -> tuple[str, int, int]:
    """State, parent and session. The name before them may hold anything."""
    fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
    return fields[0].decode("ascii"), int(fields[1]), int(fields[3])
