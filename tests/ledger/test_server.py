"""The embedded server: its folder is its own, it dies with its parent, it forgets nothing."""

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from ledger.connection import connect_sync
from ledger.errors import DataFolderInUseError, ServerStartError
from ledger.server import EmbeddedServer

PARENT = """
import sys, time
from pathlib import Path
from ledger.server import EmbeddedServer

with EmbeddedServer(Path(sys.argv[1]), watchdog=sys.argv[2] == "watchdog") as server:
    print(server.pid, flush=True)
    time.sleep(60)
"""


def until(true: Callable[[], bool], seconds: float = 5) -> bool:
    """Whether it becomes true in time."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def is_gone(pid: int) -> bool:
    """No process of this id runs: it may wait to be reaped by whoever adopted it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"
    except FileNotFoundError:
        return True


def test_it_is_a_durable_server(tmp_path: Path) -> None:
    """Each write is on disk before it is acknowledged, none is ever evicted; no port is open."""
    with EmbeddedServer(tmp_path / "data") as server, connect_sync(server.url) as client:
        wanted = {
            "appendonly": "yes",
            "appendfsync": "always",
            "maxmemory-policy": "noeviction",
            "port": "0",
        }
        found: Any = client.config_get(*wanted)
        assert found == wanted
        assert stat.S_IMODE((tmp_path / "data" / "ledger" / "valkey.log").stat().st_mode) == 0o600


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_it_finds_its_data_again(tmp_path: Path, how: str) -> None:
    """Stopped in order or killed."""
    with EmbeddedServer(tmp_path) as server:
        with connect_sync(server.url) as client:
            client.set("key", "value")
        if how == "killed":
            server.kill()
    with EmbeddedServer(tmp_path) as server, connect_sync(server.url) as client:
        assert client.get("key") == b"value"


def test_a_folder_has_one_user(tmp_path: Path) -> None:
    """In this process or in another one; afterwards it is free."""
    with EmbeddedServer(tmp_path) as server:
        with pytest.raises(DataFolderInUseError) as caught, EmbeddedServer(tmp_path):
            pass
        assert caught.value.folder == str(tmp_path)
        other = subprocess.run(
            [sys.executable, "-c", PARENT, str(tmp_path), "kernel"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert "DataFolderInUseError" in other.stderr
        with connect_sync(server.url) as client:
            assert client.ping()
    with EmbeddedServer(tmp_path):
        pass


@pytest.mark.parametrize(
    "tie",
    [
        pytest.param(
            "kernel", marks=pytest.mark.skipif(sys.platform != "linux", reason="Linux alone")
        ),
        "watchdog",
    ],
)
def test_it_dies_with_its_parent(tmp_path: Path, tie: str) -> None:
    """Even by SIGKILL; the folder is free then."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path), tie], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert not is_gone(pid)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    gone = until(lambda: is_gone(pid))
    if not gone:
        os.kill(pid, signal.SIGKILL)
    assert gone
    with EmbeddedServer(tmp_path):
        pass


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_server_without_parent_keeps_its_folder(tmp_path: Path) -> None:
    """Should parent and watchdog both be killed, the lock is the server's own."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path), "watchdog"], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        threads = Path(f"/proc/{parent.pid}/task").iterdir()
        children = {int(child) for t in threads for child in (t / "children").read_text().split()}
        for other in (*(children - {pid}), parent.pid):
            os.kill(other, signal.SIGKILL)
        parent.wait()
    try:
        assert not is_gone(pid)
        with pytest.raises(DataFolderInUseError), EmbeddedServer(tmp_path):
            pass
    finally:
        os.kill(pid, signal.SIGKILL)
    assert until(lambda: is_gone(pid))
    with EmbeddedServer(tmp_path):
        pass


@pytest.mark.parametrize("watchdog", [False, True])
def test_stopped_it_is_gone(tmp_path: Path, watchdog: bool) -> None:
    """And its watchdog with it."""
    with EmbeddedServer(tmp_path, watchdog=watchdog) as server:
        pid = server.pid
    assert is_gone(pid)
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    if children.exists():
        started = [Path(f"/proc/{child}/cmdline") for child in children.read_text().split()]
        lines = [item.read_bytes() for item in started if item.exists()]
        assert not any(str(pid).encode() in line.split(b"\0") for line in lines)


def test_it_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    """The kernel would tie it to that thread; only the process counts."""
    server = EmbeddedServer(tmp_path)
    thread = threading.Thread(target=server.__enter__)
    thread.start()
    thread.join()
    time.sleep(0.1)
    with connect_sync(server.url) as client:
        assert client.ping()
    server.__exit__(None, None, None)


def test_a_long_path_is_no_obstacle(tmp_path: Path) -> None:
    """A socket's path has about a hundred bytes; blanks and other letters are fine too."""
    folder = tmp_path / ("a very long name " * 6) / "字?#%"
    with EmbeddedServer(folder) as server, connect_sync(server.url) as client:
        assert client.set("key", "value")
        assert (folder / "ledger" / "appendonlydir").is_dir()


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    """With the end of its log, and the folder is free again."""
    (tmp_path / "ledger" / "appendonlydir").mkdir(parents=True)
    broken = tmp_path / "ledger" / "appendonlydir" / "appendonly.aof.manifest"
    broken.write_text("nonsense\n")
    with pytest.raises(ServerStartError) as caught, EmbeddedServer(tmp_path):
        pass
    assert "manifest" in caught.value.log
    broken.unlink()
    with EmbeddedServer(tmp_path):
        pass


def test_a_stranger_cannot_connect(tmp_path: Path) -> None:
    """The socket is the owner's alone."""
    with EmbeddedServer(tmp_path):
        mode = (tmp_path / "ledger" / "valkey.sock").stat().st_mode
        assert stat.S_IMODE(mode) & 0o077 == 0


def test_it_is_not_there_outside_its_block(tmp_path: Path) -> None:
    """Asked for its process it says so."""
    with pytest.raises(ServerStartError):
        _ = EmbeddedServer(tmp_path).pid
    with EmbeddedServer(tmp_path) as server:
        url = server.url
    with connect_sync(url) as client, pytest.raises(redis.exceptions.ConnectionError):
        client.ping()
