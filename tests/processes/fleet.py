"""Real processes: receiver, clock and workers around a real server and the sandbox on loopback."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import anyio

from ledger.connection import connect
from ledger.ledger import open_ledger
from ledger.server import EmbeddedServer
from ledger.timing import LedgerTiming
from sandbox.github import GitHub, new_private_key
from sandbox.github.server import GitHubServer
from sandbox.model.server import ModelServer
from triage.contract import RunRecord

REPOSITORY = "acme/api"
REPOSITORY_ID = 1296269
BOT = "retriage[bot]"
PRIVATE_KEY = new_private_key()
WEBHOOK_SECRET, CRON_SECRET = "hook-secret-of-the-test", "cron-secret-of-the-test"

POLICY = """\
jobs:
  daily-issue-triage:
    schedule: {every: daily, at: "00:00", timezone: UTC}
    mode: comment
    labels:
      bug: Something that should work does not
      enhancement: A request for something new
      question: Asks how, reports no fault
    exclusive: [[bug, enhancement, question]]
    min_confidence: 0.3
    backlog: full
"""

BOUNDS = {
    "RETRIAGE_LEASE_SECONDS": "3",
    "RETRIAGE_LOCK_DELAY_SECONDS": "1.5",
    "RETRIAGE_ABSENCE_WINDOW_SECONDS": "2",
    "RETRIAGE_REQUEST_TIMEOUT_SECONDS": "1",
    "RETRIAGE_WRITE_INTERVAL_SECONDS": "0",
    "RETRIAGE_PACING_SCALE": "1000",
    "RETRIAGE_TICK_SECONDS": "1",
}


@dataclass
class Fleet:
    """One installation with one repository, and the processes that serve it."""

    github: GitHub
    model: ModelServer
    server: EmbeddedServer
    environment: dict[str, str]
    folder: Path
    stack: ExitStack
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, name: str, **changes: str) -> subprocess.Popen[bytes]:
        """``web``, ``clock`` or ``worker``; its output goes to a file of its own."""
        log: IO[bytes] = (self.folder / f"{name}-{len(self.processes)}.log").open("wb")
        self.stack.callback(log.close)
        process = subprocess.Popen(
            [sys.executable, "-m", "cli", name],
            env={**self.environment, **changes},
            stdout=log,
            stderr=log,
        )
        self.processes.append(process)
        self.stack.callback(_end, process)
        return process

    def log(self) -> str:
        """Everything that the processes said."""
        return "\n".join(path.read_text() for path in sorted(self.folder.glob("*.log")))

    def receiver(self) -> str:
        """The receiver's address, once it listens."""
        found: list[str] = []

        def listening() -> bool:
            found[:] = re.findall(r"LISTENING.*?(http://[\w.:]+)", self.log())
            return bool(found)

        self.until(listening, "the receiver listens")
        return found[-1]

    def run_once(self, *arguments: str) -> tuple[int, dict[str, object]]:
        """``retriage run`` in a process of its own: exit code and its JSON."""
        done = subprocess.run(
            [sys.executable, "-m", "cli", "run", REPOSITORY, "--json", *arguments],
            env=self.environment,
            capture_output=True,
            check=False,
            timeout=50,
        )
        (self.folder / f"run-{time.monotonic_ns()}.log").write_bytes(done.stderr)
        return done.returncode, json.loads(done.stdout or b"{}")

    def runs(self) -> list[RunRecord]:
        """All runs, oldest first."""

        async def read() -> list[RunRecord]:
            async with connect(self.server.url) as client:
                return await open_ledger(client, LedgerTiming()).runs.listed(limit=100)

        return anyio.run(read)[::-1]

    def incidents(self) -> int:
        """How many incidents were counted."""

        async def read() -> int:
            async with connect(self.server.url) as client:
                counts = await open_ledger(client, LedgerTiming()).counters.snapshot()
                return sum(counts.incidents.values())

        return anyio.run(read)

    def until(self, true: Callable[[], bool], what: str, *, seconds: float = 40) -> None:
        """Wait for it, or fail with what the processes said."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if true():
                return
            time.sleep(0.05)
        raise AssertionError(f"not within {seconds} s: {what}\n{self.log()[-6000:]}")

    def bot_comments(self, number: int) -> int:
        """How many comments of the bot an issue has."""
        return sum(item.author == BOT for item in self.github.comments(REPOSITORY, number))


@contextmanager
def fleet(issues: list[tuple[str, str]]) -> Iterator[Fleet]:
    """The world and an environment for its processes; they end with the block."""
    github = GitHub()
    github.add_organization("acme")
    github.add_repository(REPOSITORY, id=REPOSITORY_ID)
    for label in ("bug", "enhancement", "question"):
        github.as_user("maintainer").create_label(REPOSITORY, label)
    github.add_collaborator(REPOSITORY, "maintainer", "maintain")
    github.put_file(REPOSITORY, ".github/retriage.yml", POLICY)
    github.add_app("retriage", 42, private_key=PRIVATE_KEY)
    for title, body in issues:
        github.add_issue(
            REPOSITORY, title, body, author="reporter", created_at="2026-01-02T03:04:05Z"
        )
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(EmbeddedServer(folder / "data"))
        world = stack.enter_context(GitHubServer(github))
        model = stack.enter_context(ModelServer())
        anyio.run(_first_ledger, server.url)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "APP_ID": "42",
            "PRIVATE_KEY": PRIVATE_KEY,
            "WEBHOOK_SECRET": WEBHOOK_SECRET,
            "CRON_SECRET": CRON_SECRET,
            "MARKER_KEYS": "k1:" + "5a" * 32,
            "REDIS_URL": server.url,
            "GITHUB_API_URL": world.url,
            "ANTHROPIC_API_KEY": "any",
            "ANTHROPIC_BASE_URL": model.url,
            "RETRIAGE_DATA_DIR": str(folder / "data"),
            "PORT": "0",
            **BOUNDS,
        }
        yield Fleet(github, model, server, environment, folder, stack)


async def _first_ledger(url: str) -> None:
    async with connect(url) as client:
        await open_ledger(client, LedgerTiming()).epochs.ensure(first=True)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process that was started here: politely, then for certain."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
