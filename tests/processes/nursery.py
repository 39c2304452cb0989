"""Workers and commands as processes of their own, forked from one that has imported everything.

To import the program costs 0.8 s of CPU, which a round of two workers and a command would pay three
times; forked from a nursery, a process is there in 20 ms. It is a process like any other: its own
session, environment, log and work horses, killed by real signals. That ``python -m cli worker``
starts the same is tested in ``test_main_job.py``.

The nursery reads lines of JSON (what to fork), and writes some (what was forked, what ended). It
ends when its input does, and everything that it forked with it.
"""

import contextlib
import ctypes
import gc
import importlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

FORK_SECONDS = 60.0
"""How long a fork is waited for: the imports of the first one are in it."""


class Child:
    """A forked process. ``code`` is its exit code, below zero the signal, None while it lives."""

    def __init__(self) -> None:
        self.pid = 0
        self.code: int | None = None
        self.forked = threading.Event()
        self.ended = threading.Event()

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return not self.ended.is_set()

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send it a signal, if it lives."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


class Nursery:
    """A process that forks others. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._children: dict[int, Child] = {}
        self._asked: dict[int, Child] = {}
        self._numbers = 0

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.processes.nursery"],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._listener = threading.Thread(target=self._listen, name="nursery", daemon=True)
        self._listener.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._listener.join()

    def fork(self, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> Child:
        """``retriage`` with these arguments; what it says is added to ``log``, its standard output
        to the same with ``.out`` in the end."""
        child, wanted = Child(), {"arguments": list(arguments), "log": str(log)}
        assert self._process.stdin is not None
        with self._lock:
            self._numbers += 1
            self._asked[self._numbers] = child
            line = {**wanted, "number": self._numbers, "environment": dict(environment)}
            self._process.stdin.write(json.dumps(line) + "\n")
            self._process.stdin.flush()
        if not child.forked.wait(FORK_SECONDS):
            raise TimeoutError(f"the nursery forked nothing in {FORK_SECONDS} s")
        return child

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                told = json.loads(line)
                if "forked" in told:
                    child = self._asked.pop(told["number"])
                    child.pid = told["forked"]
                    self._children[child.pid] = child
                    child.forked.set()
                else:
                    child = self._children.pop(told["ended"])
                    child.code = told["code"]
                    child.ended.set()


def main() -> None:
    """Be the nursery."""
    _import_everything()
    gc.freeze()
    woken, wakes = os.pipe()
    for end in (woken, wakes):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wakes)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # from the keyboard: whoever started it ends it
    living: set[int] = set()
    with selectors.DefaultSelector() as selector:
        selector.register(sys.stdin.buffer.fileno(), selectors.EVENT_READ)
        selector.register(woken, selectors.EVENT_READ)
        rest = b""
        while True:
            ready = {key.fd for key, _ in selector.select()}
            if woken in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(woken, 4096)
                _tell_of_ends(living)
            if sys.stdin.buffer.fileno() not in ready:
                continue
            given = os.read(sys.stdin.buffer.fileno(), 1 << 20)
            if not given:
                break
            *lines, rest = (rest + given).split(b"\n")
            for line in lines:
                wanted = json.loads(line)
                pid = _forked(wanted)
                living.add(pid)
                _tell(forked=pid, number=wanted["number"])
    for pid in living:
        os.kill(pid, signal.SIGKILL)


def _import_everything() -> None:
    """All that a worker and a command need, so that no fork imports it again."""
    for name in ("cli.__main__", "cli.running", "cli.serving", "worker.__main__"):
        importlib.import_module(name)
    assert threading.active_count() == 1, "a fork copies one thread alone"


def _tell(**told: int) -> None:
    os.write(1, json.dumps(told).encode() + b"\n")


def _tell_of_ends(living: set[int]) -> None:
    while living:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        living.discard(pid)
        _tell(ended=pid, code=os.waitstatus_to_exitcode(status))


def _forked(wanted: Mapping[str, Any]) -> int:
    """The pid of a child that leads its session already: whoever hears of it may stop it."""
    told, tells = os.pipe()
    pid = os.fork()
    if pid:
        os.close(tells)
        os.read(told, 1)
        os.close(told)
        return pid
    try:
        _become(wanted, tells)
    finally:
        os._exit(70)  # whatever happens, no child goes on as a nursery


def _become(wanted: Mapping[str, Any], tells: int) -> NoReturn:
    """In the child: a process of its own, which dies with the nursery."""
    os.setsid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
    os.close(tells)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    os.dup2(os.open(f"{wanted['log']}.out", flags, 0o600), 1)
    os.dup2(os.open(wanted["log"], flags, 0o600), 2)
    os.closerange(3, 256)
    os.environ.clear()
    os.environ.update(wanted["environment"])
    tempfile.tempdir = None
    sys.argv = ["retriage", *wanted["arguments"]]

    code = 0
    try:
        importlib.import_module("cli.__main__").main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
