"""What a round plays on: GitHub, the model, the server, proxies between them, and real workers.

Real: the server's process, RQ workers with their work horses and the agent's CLI, ``retriage run``,
and every byte between them on TCP. The receiver's application and the clock's tick are the real
ones, called in this process: they write nothing to GitHub, and a process each would cost a second
of CPU a round.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha1
from io import StringIO
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from redis.exceptions import RedisError

from bot.app import make_app
from bot.clock import tick
from bot.enqueue import Link, linked
from bot.settings import WebSettings, read_settings
from ledger.connection import connect
from ledger.effect_scripts import ACKNOWLEDGE, CLAIM
from ledger.errors import LedgerUnavailableError
from ledger.lease import _ACQUIRE
from ledger.ledger import open_ledger
from ledger.run_scripts import SAVE, SAVE_EFFECTS, SAVE_PLAN, WRITE_ONCE
from ledger.scripts import PRELUDE
from ledger.timing import LedgerTiming
from process.log import LineLog
from sandbox.github import GitHub
from sandbox.github.server import GitHubServer
from sandbox.model.server import ModelServer
from tests.processes.fleet import (
    CRON_SECRET,
    PRIVATE_KEY,
    REPOSITORY,
    REPOSITORY_ID,
    WEBHOOK_SECRET,
)
from tests.processes.keeper import Keeper
from tests.processes.nursery import Child, Nursery
from tests.processes.orphans import horses_of
from tests.processes.proxies import HttpProxy, RedisProxy, Server, Wire, listening, tcp, unix
from triage.marker import MarkerKeys

MARKER_KEYS = "k1:" + "5a" * 32
KEYS = MarkerKeys.parse(MARKER_KEYS)

BOUNDS = {
    "RETRIAGE_LEASE_SECONDS": "3",
    "RETRIAGE_LOCK_DELAY_SECONDS": "2",
    "RETRIAGE_ABSENCE_WINDOW_SECONDS": "2",
    "RETRIAGE_REQUEST_TIMEOUT_SECONDS": "1.5",
    "RETRIAGE_WRITE_INTERVAL_SECONDS": "0",
    "RETRIAGE_PACING_SCALE": "1000",
}
"""The shortest that keep their distance from each other on a machine that is slow by three."""

SCRIPTS = {
    "ACQUIRE": _ACQUIRE,
    "WRITE_ONCE": WRITE_ONCE,
    "SAVE_PLAN": SAVE_PLAN,
    "CLAIM": CLAIM,
    "ACKNOWLEDGE": ACKNOWLEDGE,
    "SAVE_EFFECTS": SAVE_EFFECTS,
    "SAVE": SAVE,
}

ISSUES = (
    ("Crash on an empty file", "It crashes with a traceback: IndexError, expected no error."),
    ("Add a dark theme", "Please add support for a dark theme, it would be nice to have."),
)

UNREACHABLE = (LedgerUnavailableError, RedisError, OSError)
TICK_SECONDS = 1


@dataclass
class Stage:
    """One installation with one repository, and all that serves it."""

    github: GitHub
    model: ModelServer
    keeper: Keeper
    wire: Wire
    redis: RedisProxy
    nursery: Nursery
    folder: Path
    environment: Mapping[str, str]
    link: Link
    receiver: httpx.AsyncClient
    children: list[Child] = field(default_factory=list)
    workers: list[Child] = field(default_factory=list)
    ticked: int = 0

    async def work(self) -> Child:
        """One worker more."""
        worker = await self._fork("worker")
        self.workers.append(worker)
        return worker

    async def by_hand(self) -> Child:
        """A person asks: ``retriage run``, which works by itself."""
        return await self._fork("run", REPOSITORY, "--json")

    async def cron(self) -> dict[str, object]:
        """A scheduler rings: what it is answered."""
        answer = await self.receiver.post(
            "/cron/daily-issue-triage", headers={"authorization": f"Bearer {CRON_SECRET}"}
        )
        return {**answer.json(), "status": answer.status_code}

    async def deliver(self) -> list[int]:
        """Every webhook that waits, as GitHub sends it: the statuses of the answers."""
        return [
            (
                await self.receiver.post(
                    "/api/github/webhooks", content=delivery.body, headers=delivery.headers
                )
            ).status_code
            for delivery in self.github.outbox.drain()
        ]

    async def redeliver(self) -> list[int]:
        """GitHub sends the first webhook again."""
        self.github.webhooks.redeliver(self.github.webhooks.deliveries[0].guid)
        return await self.deliver()

    async def tick(self) -> None:
        """The clock, once in a second. A server that is away is asked again."""
        now = datetime.now(UTC)
        if int(now.timestamp()) == self.ticked:
            return
        self.ticked = int(now.timestamp())
        with suppress(*UNREACHABLE):
            await tick(self.link, now, tick_seconds=TICK_SECONDS)

    def busy(self) -> list[Child]:
        """The workers that have a work horse."""
        return [worker for worker in self.workers if worker.alive and horses_of(worker.pid)]

    async def ended(self, child: Child, seconds: float) -> int | None:
        """A process's exit code, None where it does not end in time."""
        until = time.monotonic() + seconds
        while child.alive:
            if time.monotonic() >= until:
                break
            await asyncio.sleep(0.02)
        return child.code

    def said(self) -> str:
        """Everything that the processes said."""
        logs = sorted(self.folder.glob("*.log*"), key=lambda path: path.stat().st_ctime)
        return "\n".join(f"--- {path.name}\n{path.read_text()}" for path in logs)

    async def _fork(self, *arguments: str) -> Child:
        log = self.folder / f"{len(self.children):02d}-{arguments[0]}.log"
        child = await asyncio.to_thread(self.nursery.fork, arguments, self.environment, log)
        self.children.append(child)
        return child


@asynccontextmanager
async def stage(
    folder: Path,
    nursery: Nursery,
    *,
    issues: int,
    settings: Mapping[str, str],
    replica: bool = False,
) -> AsyncIterator[Stage]:
    """A world with so many issues, without a worker yet; it ends with the block.

    ``settings`` are the server's; ``replica``: it has one from the beginning.
    """
    github = _github(issues)
    async with AsyncExitStack() as stack:
        world = stack.enter_context(GitHubServer(github))
        model = stack.enter_context(ModelServer())
        keeper = await stack.enter_async_context(Keeper(folder, settings, replica=replica))
        names = await _begin(keeper.url)
        wire = Wire()
        redis = RedisProxy(wire, unix(keeper.socket), names)
        ways = [HttpProxy(wire, _at(world.url), "github"), HttpProxy(wire, _at(model.url), "model")]
        await stack.enter_async_context(listening(redis, *ways))
        url = f"redis://127.0.0.1:{redis.port}/0"
        link = await stack.enter_async_context(linked(url))
        receiver = await stack.enter_async_context(_receiver(url, link))
        temporary = folder / "tmp"
        temporary.mkdir()
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "TMPDIR": str(temporary),
            "APP_ID": "42",
            "PRIVATE_KEY": PRIVATE_KEY,
            "WEBHOOK_SECRET": WEBHOOK_SECRET,
            "MARKER_KEYS": MARKER_KEYS,
            "REDIS_URL": url,
            "GITHUB_API_URL": f"http://127.0.0.1:{ways[0].port}",
            "ANTHROPIC_API_KEY": "any",
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{ways[1].port}",
            "RETRIAGE_DATA_DIR": str(folder / "data"),
            **BOUNDS,
        }
        yield Stage(
            github, model, keeper, wire, redis, nursery, folder, environment, link, receiver
        )


def _github(issues: int) -> GitHub:
    github = GitHub()
    github.outbox.held = True
    github.add_organization("acme")
    github.add_repository(REPOSITORY, id=REPOSITORY_ID)
    for label in ("bug", "enhancement", "question"):
        github.as_user("maintainer").create_label(REPOSITORY, label)
    github.put_file(REPOSITORY, ".github/retriage.yml", _policy())
    github.add_app("retriage", 42, private_key=PRIVATE_KEY)
    github.set_hook("retriage", "http://127.0.0.1:9/api/github/webhooks", WEBHOOK_SECRET)
    for title, body in ISSUES[:issues]:
        github.add_issue(
            REPOSITORY, title, body, author="reporter", created_at="2026-01-02T03:04:05Z"
        )
    return github


def _policy() -> str:
    """A window that fell due some hours ago: it does not change while a round lasts."""
    due = datetime.now(UTC) - timedelta(hours=6)
    return f"""\
jobs:
  daily-issue-triage:
    schedule: {{every: daily, at: "{due:%H}:00", timezone: UTC}}
    mode: comment
    labels:
      bug: Something that should work does not
      enhancement: A request for something new
      question: Asks how, reports no fault
    exclusive: [[bug, enhancement, question]]
    min_confidence: 0.3
    backlog: full
"""


async def _begin(url: str) -> dict[str, str]:
    """A first ledger, which knows the scripts already: what each is called by, and its name."""
    async with connect(url) as client:
        await open_ledger(client, LedgerTiming()).epochs.ensure(first=True)
        for body in SCRIPTS.values():
            await client.script_load(PRELUDE + body)
    return {sha1((PRELUDE + body).encode()).hexdigest(): name for name, body in SCRIPTS.items()}


@asynccontextmanager
async def _receiver(url: str, link: Link) -> AsyncIterator[httpx.AsyncClient]:
    settings = read_settings(
        WebSettings,
        redis_url=url,
        webhook_secret=WEBHOOK_SECRET,
        marker_keys=MARKER_KEYS,
        cron_secret=CRON_SECRET,
        retriage_tick_seconds=TICK_SECONDS,
    )
    app = make_app(settings, link, LineLog(StringIO()))
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://receiver") as client:
        yield client


def _at(url: str) -> Server:
    parts = urlsplit(url)
    return tcp(parts.hostname or "", parts.port or 0)
