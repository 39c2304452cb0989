"""Turns a pack into a tree, in a process of its own: what strangers wrote is parsed here, within
limits, without a secret, and the worker can end it at any instant.

It reads one JSON object, writes ``slot`` under ``folder``, and answers with one JSON object: empty,
or the reason why there is no tree.
"""

import ctypes
import errno
import json
import os
import resource
import signal
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from worker.checkout.bounds import Bounds, Reason, Stopped
from worker.checkout.listing import choose
from worker.checkout.objects import Objects
from worker.checkout.writing import write_tree

PR_SET_PDEATHSIG: Final = 1
SLOT: Final = "slot"
PACK: Final = "pack"
NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


@dataclass(frozen=True, slots=True)
class Work:
    """What the child is asked for. ``folder`` holds the pack; ``worker`` is the parent's pid."""

    git: str
    folder: str
    commit: str
    bounds: Bounds
    worker: int

    def to_json(self) -> bytes:
        """For the child's input."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, text: bytes) -> "Work":
        """From it."""
        content: dict[str, Any] = json.loads(text)
        return cls(**{**content, "bounds": Bounds(**content["bounds"])})


def main() -> None:
    """Do what the input says, and answer."""
    work = Work.from_json(sys.stdin.buffer.read())
    die_with(work.worker)
    limit(work.bounds)
    try:
        make_tree(work)
    except Stopped as stopped:
        answer = {"reason": stopped.reason, "detail": stopped.detail}
    except OSError as error:
        full = error.errno in NO_SPACE
        reason = Reason.DISK_FULL if full else Reason.NO_FOLDER
        words = error.strerror or type(error).__name__
        answer = {"reason": reason, "detail": f"the tree cannot be written: {words}"}
    else:
        answer = {}
    sys.stdout.write(json.dumps(answer))


def make_tree(work: Work) -> None:
    """The pack becomes ``slot``. Raises Stopped and OSError."""
    folder = Path(work.folder)
    objects = Objects(work.git, folder)
    objects.take(folder / PACK)
    choice = choose(objects.entries(work.commit), objects.sizes, work.bounds)
    contents = objects.contents([each.oid for each in choice.files])
    write_tree(folder / SLOT, work.commit, choice, contents)


def die_with(worker: int) -> None:
    """End with the worker, and git with us. (Elsewhere than on Linux the limits end both.)"""
    signal.signal(signal.SIGTERM, lambda _number, _frame: os.killpg(0, signal.SIGKILL))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != worker:
        sys.exit("the worker is gone")


def limit(bounds: Bounds) -> None:
    """For this process and what it starts."""
    for kind, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, bounds.cpu_seconds),
        (resource.RLIMIT_FSIZE, max(bounds.pack_bytes, bounds.tree_bytes)),
        (resource.RLIMIT_AS, bounds.memory_bytes),
    ):
        _, hardest = resource.getrlimit(kind)
        wanted = most if hardest == resource.RLIM_INFINITY else min(most, hardest)
        try:
            resource.setrlimit(kind, (wanted, wanted))
        except (OSError, ValueError):  # macOS knows no limit of address space
            continue
