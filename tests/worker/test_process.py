"""The worker as a platform sees it: it outlives Redis, and ends when it is told."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from redis import Redis
from rq import Queue
from rq.job import Job
from rq.serializers import JSONSerializer

from ledger.connection import connect_sync
from ledger.server import EmbeddedServer
from sandbox.github import new_private_key
from worker.__main__ import QUEUE


def start_worker(url: str, log: Path) -> "subprocess.Popen[bytes]":
    """A worker that can reach Redis, and has no reason to ask GitHub."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(log.parent),
        "REDIS_URL": url,
        "APP_ID": "42",
        "PRIVATE_KEY": new_private_key(),
        "MARKER_KEYS": "k1:" + "5a" * 32,
        "ANTHROPIC_API_KEY": "any",
    }
    with log.open("wb") as written:
        return subprocess.Popen(
            [sys.executable, "-m", "worker"], env=environment, stdout=written, stderr=written
        )


def until(true: Callable[[], object], log: Path) -> None:
    """Wait for it, or fail with what the worker said."""
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.02)


def put(client: Redis, function: str, *arguments: object) -> Job:
    """A job of RQ."""
    queue = Queue(QUEUE, connection=client, serializer=JSONSerializer)
    return queue.enqueue_call(function, args=arguments)


def test_a_worker_outlives_redis(tmp_path: Path) -> None:
    """Redis dies in the middle of a job, where RQ's worker would end: it starts anew, its horse is
    gone, the next job is done, and it ends with 0 when it is told."""
    log = tmp_path / "worker.log"
    with ExitStack() as stack:
        first = stack.enter_context(ExitStack())
        server = first.enter_context(EmbeddedServer(tmp_path / "data"))
        worker = start_worker(server.url, log)
        stack.callback(worker.kill)
        horses = Path(f"/proc/{worker.pid}/task/{worker.pid}/children")
        with connect_sync(server.url) as client:
            put(client, "time.sleep", 1)
            until(horses.read_text, log)
        server.kill()
        until(lambda: "WORKER-RESTARTS" in log.read_text(), log)
        assert horses.read_text() == ""
        first.close()
        again = stack.enter_context(EmbeddedServer(tmp_path / "data"))
        with connect_sync(again.url) as client:
            job = put(client, "json.dumps", {})
            until(lambda: job.get_status(refresh=True) == "finished", log)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(10) == 0
    assert "Traceback" not in log.read_text()


def test_a_worker_without_redis_says_so(tmp_path: Path) -> None:
    """At the start it does not wait: one line, and 1."""
    log = tmp_path / "worker.log"
    worker = start_worker("redis://127.0.0.1:1", log)
    assert worker.wait(20) == 1
    assert log.read_text().startswith("Redis cannot be reached at REDIS_URL: ")
    assert log.read_text().count("\n") == 1
