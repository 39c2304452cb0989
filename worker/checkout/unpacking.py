"""Starts the child that turns a pack into a tree, and ends it for certain."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO, Final, cast

import worker
from worker.checkout.bounds import Reason, Stopped
from worker.checkout.child import Work

_SOURCE: Final = str(Path(worker.__file__).parent.parent)
_START: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]); from worker.checkout.child import main; main()"
)
MOST_ANSWER_BYTES: Final = 10_000


async def unpack(work: Work, lock: int) -> None:
    """Make the tree. Raises Stopped. However this ends, the child and its children are dead.

    They hold the file ``lock`` open: while one of them lives, a worker that died included, nobody
    else takes the repository's lock.
    """
    child = _started(lock)
    try:
        said = await asyncio.to_thread(_ask, child, work.to_json())
    finally:
        _end(child)
    try:
        answer: dict[str, str] = json.loads(said)
    except ValueError:
        detail = f"the process that writes the tree ended with {child.returncode}"
        raise Stopped(Reason.BROKEN, detail) from None
    if answer:
        raise Stopped(Reason(answer["reason"]), answer["detail"])


def _started(lock: int) -> subprocess.Popen[bytes]:
    """A leader of a process group of its own, with nothing of the worker's environment."""
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _START, _SOURCE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
        cwd="/",
        start_new_session=True,
        pass_fds=(lock,),
    )


def _ask(child: subprocess.Popen[bytes], work: bytes) -> bytes:
    """In a thread; it comes back when the child ends, which a cancellation sees to."""
    stdin, stdout = cast("IO[bytes]", child.stdin), cast("IO[bytes]", child.stdout)
    try:
        stdin.write(work)
        stdin.close()
        return stdout.read(MOST_ANSWER_BYTES)
    except (BrokenPipeError, ValueError):  # it is dead, or was ended before it was asked
        return b""


def _end(child: subprocess.Popen[bytes]) -> None:
    """Its pid is its group's, and nobody else's: it is not waited for before."""
    with suppress(ProcessLookupError, PermissionError):  # it has ended, and is not waited for yet
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()
