"""A world for stories: the sandbox GitHub, a ledger in memory, and workers in it.

A worker here is the real pipeline, and its GitHub adapters are the real ones; only the sockets and
the model are left out, the ledger is the one of ``tests.simulation.memory``, and time is virtual.
Whoever shall die at a named instant dies by ``Killed``: nothing after it runs.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields
from datetime import timedelta
from functools import partial
from typing import Any

import githubkit
from githubkit.auth.app import AppAuth
from githubkit.cache import MemCacheStrategy

from ledger.errors import FrozenRunError
from ledger.records import LEDGER, Due, DueKind, RepositoryRecord
from ledger.timing import LedgerTiming
from sandbox.github import GitHub, new_private_key
from sandbox.github.clock import real_now
from sandbox.github.seen import SeenComment
from sandbox.github.webhooks import Delivery
from tests.simulation.checkouts import SandboxCheckouts
from tests.simulation.memory.deliveries import Transaction
from tests.simulation.memory.ledger import MemoryLedger, MemoryServer, memory_ledger
from tests.simulation.points import Faults as Faults  # noqa: PLC0414 - given on to the stories
from tests.simulation.points import Faulty
from tests.simulation.points import Killed as Killed  # noqa: PLC0414
from tests.simulation.stand_ins import MemoryArtifacts, MemoryWeb, RuleAgent
from tests.simulation.transport import SandboxTransport
from tests.simulation.virtual import START, VirtualClock, VirtualLoop
from triage.asks import Installed, parse_ask
from triage.contract import RunRecord
from triage.delivery import Ignored, interpret, meaning
from triage.identifiers import JobKey
from triage.marker import Marker, MarkerKey, MarkerKeys, Signature, read
from triage.window import Window
from worker import commands, recovery, windows
from worker.github.auth import AppCredentials, Authority
from worker.github.connection import Connection
from worker.github.reader import RestReader
from worker.github.reads import Reads
from worker.github.writer import RestWriter
from worker.pipeline import execute
from worker.ports import (
    LeaseLost,
    LedgerPorts,
    LedgerUnavailableError,
    Place,
    Ports,
    ReadFailed,
    Timing,
)
from worker.recovery import remember_place
from worker.stages.settling import RunReport

REPOSITORY = "acme/api"
REPOSITORY_ID = 1296269
BOT = "retriage[bot]"
PRIVATE_KEY = new_private_key()
KEYS = MarkerKeys((MarkerKey("k1", b"0123456789abcdef"),))
SECOND = timedelta(seconds=1)

TIMING = Timing(refresh=SECOND * 0)
"""The bounds of the program; but what GitHub shows of labels and issues is read before each write.
"""
SOON, START_SOON, ENDS = 12, 1.5, 60
"""In absence windows: what falls due later than that is another story, and so is a window that
starts later; within the last a run must be over."""

POLICY = """\
jobs:
  daily-issue-triage:
    schedule: {every: daily, at: "00:00", timezone: UTC}
    mode: comment
    labels: {bug: It does not work, enhancement: Something new, question: Asks how}
    exclusive: [[bug, enhancement, question]]
    backlog: full
    summary: daily
"""


def policy_file(**settings: object) -> str:
    """A policy file like POLICY, with these settings instead, whose window fell due some hours ago:
    it does not change while a story is told."""
    due = START - timedelta(hours=6)
    job = {
        "schedule": {"every": "daily", "at": f"{due:%H}:00", "timezone": "UTC"},
        "mode": "comment",
        "labels": {"bug": "It does not work", "enhancement": "New", "question": "Asks how"},
        "exclusive": [["bug", "enhancement", "question"]],
        "backlog": "full",
        "summary": "daily",
        **settings,
    }
    return json.dumps({"jobs": {"daily-issue-triage": job}})


@dataclass
class World:
    """One organisation with one repository, its ledger, and its workers. ``job`` is the one whose
    windows are asked for."""

    github: GitHub
    ledger: MemoryLedger
    server: MemoryServer
    timing: Timing
    connection: Connection
    authority: Authority
    installation: str
    clock: VirtualClock
    checkouts: SandboxCheckouts
    agent: RuleAgent = field(default_factory=RuleAgent)
    artifacts: MemoryArtifacts = field(default_factory=MemoryArtifacts)
    web: MemoryWeb = field(default_factory=MemoryWeb)
    lines: list[str] = field(default_factory=list)
    queue: list[Due] = field(default_factory=list)
    keys: MarkerKeys = KEYS
    job: JobKey = JobKey.DAILY

    def log(self, word: str, /, **pairs: object) -> None:
        """The lines that alerts hang on."""
        self.lines.append(" ".join([word, *(f"{key}={value}" for key, value in pairs.items())]))

    def ports(self, owner: str = "worker-1", faults: Faults | None = None) -> Ports:
        """A worker's ports; with ``faults``, each call of a port can be met."""
        met = faults or Faults()

        def port(name: str, real: object) -> Any:
            return Faulty(real, name, met) if faults is not None else real

        parts = [part.name for part in fields(LedgerPorts)]
        ledger = LedgerPorts(**{name: port(name, getattr(self.ledger, name)) for name in parts})
        reads = Reads(self.connection, self.authority, self.clock)
        return Ports(
            ledger=ledger,
            reader=port("reader", RestReader(reads, self.authority)),
            writer=port("writer", RestWriter(self.connection, self.authority, self.clock)),
            agent=port("agent", self.agent),
            checkouts=self.checkouts,
            artifacts=self.artifacts,
            fetcher=port("fetcher", self.web),
            clock=self.clock,
            keys=self.keys,
            log=self.log,
            timing=self.timing,
            owner=owner,
        )

    @property
    def place(self) -> Place:
        """The repository."""
        return Place(REPOSITORY_ID, REPOSITORY, self.installation)

    async def record(self) -> RepositoryRecord:
        """The repository's record with its present policy."""
        ports = self.ports()
        await ports.ledger.repositories.add_bot_id(await ports.reader.bot_user_id())
        return await windows.refreshed(await remember_place(self.place, ports), ports)

    async def run(
        self,
        ask: windows.Ask | None = None,
        *,
        faults: Faults | None = None,
        owner: str = "worker-1",
    ) -> RunReport:
        """The due window, once, by hand. Raises Killed where the worker dies."""
        record = await self.record()
        policy = record.policy_of(self.job)
        assert policy is not None
        ports = self.ports(owner, faults)
        slot = windows.slot_of(policy, None, self.clock.now())
        wanted = ask or windows.Ask(by="hand")
        inputs = await windows.inputs_of(record, self.job, slot, wanted, ports)
        return await execute(inputs, ports, by_hand=True)

    async def runs(self) -> list[RunRecord]:
        """All runs, oldest first."""
        return (await self.ledger.runs.listed(limit=1000))[::-1]

    # What the bot's deliveries, the clock and people bring about

    async def install(self) -> None:
        """The App is installed: its repositories are remembered, and fall due."""
        await commands.handle(Installed(installation=self.installation), self.ports())

    async def deliver(
        self, *, faults: Faults | None = None, owner: str = "worker-1"
    ) -> list[RunReport]:
        """Every webhook that waits, and those that come of them; what runs came of it."""
        reports: list[RunReport] = []
        while (delivery := self.github.outbox.take()) is not None:
            await self.receive(delivery)
            reports += await self.work(faults=faults, owner=owner)
        return reports

    async def receive(self, delivery: Delivery) -> bool | None:
        """What the receiver does with a delivery: record it, once, and enqueue what it asks for,
        which stays due until it is done. False for a duplicate, None for what asks for nothing."""
        content = json.loads(delivery.body)
        bots = await self.ledger.repositories.bot_ids()
        asked = interpret(delivery.event, content, bot_ids=bots, keys=self.keys)
        if isinstance(asked, Ignored):
            return None
        again_at = self.clock.now() + self.timing.lock_delay

        def enqueue(transaction: Transaction) -> None:
            for index, ask in enumerate(asked):
                due = Due.ask(delivery.guid, index)
                text = ask.model_dump_json()
                self.ledger.deliveries.keep(transaction, due, text, again_at)
                transaction.add(partial(self.queue.append, due))

        same = meaning(delivery.event, content) or ""
        return self.ledger.deliveries.accept(delivery.guid, same, enqueue)

    async def work(
        self, *, faults: Faults | None = None, owner: str = "worker-1"
    ) -> list[RunReport]:
        """A worker does what is in the queue; what runs came of it. A job that it took and did not
        end is lost in the queue, and comes again as due."""
        reports: list[RunReport] = []
        while self.queue:
            report = await self.act_on(self.queue.pop(0), self.ports(owner, faults))
            reports += [report] if report is not None else []
        return reports

    async def say(self, login: str, number: int, text: str) -> list[RunReport]:
        """Somebody comments, and the webhook of it arrives."""
        self.github.as_user(login).comment(REPOSITORY, number, text)
        return await self.deliver()

    async def window(
        self, key: str | None = None, *, faults: Faults | None = None, owner: str = "worker-1"
    ) -> RunReport | None:
        """The clock, or who asks for this window by name, has it ensured."""
        ports = self.ports(owner, faults)
        return await windows.ensure_window(self.job, REPOSITORY_ID, ports, window=key)

    async def again(self) -> RunReport | None:
        """The clock goes on with the newest run."""
        run = (await self.runs())[-1]
        return await recovery.continue_run(run.inputs.dedupe_key, self.ports())

    async def tick(
        self, *, faults: Faults | None = None, owner: str = "worker-1"
    ) -> list[RunReport]:
        """What is due is done, as the clock has it done: each by its own function. A ledger without
        an epoch was lost."""
        taken = await self.ledger.due.take(self.clock.now(), 100, self.timing.lock_delay)
        if not self.server.has_epoch:
            taken.insert(0, Due(DueKind.RECOVER, LEDGER))
        done = [await self.act_on(due, self.ports(owner, faults)) for due in taken]
        return [report for report in done if report is not None]

    async def act_on(self, due: Due, ports: Ports) -> RunReport | None:
        """Do one thing that is due, as its job does it."""
        try:
            match due.kind:
                case DueKind.START:
                    job, _, repository = due.name.partition(":R")
                    return await windows.ensure_window(JobKey(job), int(repository), ports)
                case DueKind.CONTINUE:
                    return await recovery.continue_run(due.name, ports)
                case DueKind.SAMPLE:
                    await recovery.sample(due.name, ports)
                case DueKind.VERIFY:
                    await recovery.verify(due.name, ports)
                case DueKind.RECOVER:
                    await recovery.recover(due.name, ports)
                case DueKind.ASK:
                    return await self._answer(due, ports)
        except (LeaseLost, LedgerUnavailableError, ReadFailed, FrozenRunError) as error:
            self.log("JOB-FAILED", reason=str(error))
        return None

    async def _answer(self, due: Due, ports: Ports) -> RunReport | None:
        """Do what a delivery asked for, unless it was tried long enough."""
        kept = self.ledger.deliveries.asks([due]).get(due)
        if kept is None:
            return None
        return await commands.handle_due(parse_ask(json.loads(kept)), due, ports)

    async def settle(self) -> list[RunReport]:
        """The clock ticks until nothing falls due any more before long. Fails where that does not
        end (I7)."""
        reports: list[RunReport] = []
        end = self.clock.monotonic() + ENDS * self.timing.absence_window.total_seconds()
        while (pause := await self.next_due()) is not None:
            assert self.clock.monotonic() < end, f"I7: due: {await self.ledger.due.upcoming()}"
            await asyncio.sleep(pause)
            reports += await self.tick()
        return reports

    async def next_due(self) -> float | None:
        """Seconds until something falls due; None where that is a window still to come, or not
        before long."""
        window = self.timing.absence_window
        for due, at in await self.ledger.due.upcoming():
            left = at - self.clock.now()
            if left <= (START_SOON if due.kind is DueKind.START else SOON) * window:
                return max(0.0, left.total_seconds()) + 0.01
        return None

    async def stand_still(self, span: timedelta) -> None:
        """The whole process of this worker stands still, its heartbeat too, as SIGSTOP has it."""
        self._jump(span)

    def move(self, **span: float) -> None:
        """Time passes while nobody works."""
        self._jump(timedelta(**span))

    def _jump(self, span: timedelta) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.jump(span.total_seconds())

    async def lose_ledger(self) -> None:
        """The server comes back empty."""
        self.server.wipe()
        self.queue.clear()

    async def slot(self) -> Window:
        """The window that is due."""
        policy = (await self.record()).policy_of(self.job)
        assert policy is not None
        return windows.slot_of(policy, None, self.clock.now())

    def put_policy(self, text: str | None) -> None:
        """Commit another policy file; None removes it."""
        self.github.put_file(REPOSITORY, ".github/retriage.yml", text)

    async def lapse(self) -> None:
        """Wait until a dead worker's lease and the lock delay are over."""
        await asyncio.sleep((self.timing.lease + self.timing.lock_delay).total_seconds() + 0.05)

    def bot_comments(self, number: int) -> list[str]:
        """The bodies of the bot's live comments on an issue."""
        comments = self.github.comments(REPOSITORY, number)
        return [item.body for item in comments if item.author == BOT]

    def own_comments(self, number: int) -> list[SeenComment]:
        """The bot's live comments on an issue."""
        return [item for item in self.github.comments(REPOSITORY, number) if item.author == BOT]

    def reactions(self, number: int) -> list[str]:
        """The bot's reactions to the last comment of a person on an issue."""
        comments = [item for item in self.github.comments(REPOSITORY, number) if item.author != BOT]
        found = [reaction.split(" ") for reaction in comments[-1].reactions]
        return [content for content, login in found if login == BOT]

    def summaries(self) -> list[str]:
        """The bodies of the bot's issues."""
        return [issue.body for issue in self.github.issues(REPOSITORY) if issue.author == BOT]

    def live_markers(self) -> list[str]:
        """The effect keys of all valid markers on GitHub, one for each live comment or issue."""
        return [marker.effect_key for marker in self.markers()]

    def markers(self) -> list[Marker]:
        """All valid markers on GitHub, one for each live comment or issue of the bot."""
        bodies = []
        for issue in self.github.issues(REPOSITORY):
            if issue.author == BOT:
                bodies.append(issue.body)
            bodies += self.bot_comments(issue.number)
        readings = [read(body, self.keys) for body in bodies]
        return [r.marker for r in readings if r.signature is Signature.VALID and r.marker]


@asynccontextmanager
async def world(
    issues: Sequence[str] = ("Bug: it crashes",),
    *,
    policy: str | None = POLICY,
    timing: Timing = TIMING,
    write_interval: timedelta = timedelta(0),
    pacing_scale: float = 10_000,
    opened: timedelta = timedelta(0),
    job: JobKey = JobKey.DAILY,
) -> AsyncIterator[World]:
    """A world with these issues, opened so long ago; their first word is the label that fits."""
    clock = VirtualClock()
    github = GitHub(now=clock.world_now, signers_now=real_now, seed=1)
    github.add_organization("acme")
    github.add_repository(REPOSITORY, id=REPOSITORY_ID)
    for label in ("bug", "enhancement", "question"):
        github.as_user("maintainer").create_label(REPOSITORY, label)
    github.put_file(REPOSITORY, ".github/retriage.yml", policy)
    github.add_app("retriage", 42, private_key=PRIVATE_KEY)
    installation = str(github.install("retriage", "acme", [REPOSITORY]))
    github.set_hook("retriage", "http://127.0.0.1:1/", "")
    created = f"{clock.now() - opened:%Y-%m-%dT%H:%M:%SZ}"
    for title in issues:
        reporter = github.as_user("reporter")
        reporter.open_issue(REPOSITORY, title, "As the title says.", created_at=created)
    transport = SandboxTransport(github)
    connection = Connection(
        clock=clock, timing=timing, api_url="http://127.0.0.1:1", transport=transport
    )
    ledger_timing = LedgerTiming(
        lease=timing.lease,
        lock_delay=timing.lock_delay,
        absence_window=timing.absence_window,
        request=timing.request,
        margin=timing.margin,
        write_interval=write_interval,
        pacing_scale=pacing_scale,
    )
    server = MemoryServer(clock.world_now)
    ledger = memory_ledger(server, ledger_timing, monotonic=clock.monotonic)
    async with connection:
        made = World(
            github=github,
            ledger=ledger,
            job=job,
            agent=RuleAgent(sessions=ledger.sessions),
            server=server,
            timing=timing,
            connection=connection,
            authority=Authority(AppCredentials("42", PRIVATE_KEY), connection, clock),
            installation=installation,
            clock=clock,
            checkouts=SandboxCheckouts(github),
        )
        await _share_signature(connection)
        await made.ledger.epochs.ensure(first=True)
        yield made


_SIGNER = AppAuth(githubkit.GitHub(cache_strategy=MemCacheStrategy()), "42", PRIVATE_KEY)
"""Signs for the App once for many worlds: a signature takes longer than a story."""


async def _share_signature(connection: Connection) -> None:
    """What the signer has made is in the connection's own cache too."""
    cache = await connection.github.config.cache_strategy.get_async_cache_storage()
    name = AppAuth.JWT_CACHE_KEY.format(issuer="42")
    await cache.aset(name, await _SIGNER.aget_jwt(), timedelta(minutes=1))
