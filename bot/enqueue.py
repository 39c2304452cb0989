"""The queue: which jobs there are, what they are called, and how one is put there exactly once.

Jobs are named by path, so that nothing of ``worker`` is imported; their arguments are JSON, and so
is their form in Redis (``SERIALIZER``: a worker must read with the same). An id is a hash of what
the job is about plus the slot of time that it belongs to: two clocks, and a clock and a request,
make one job. Ids are never used again: a slot passes but once.

RQ's records are never the truth about a run; that is the ledger. A job that comes twice is
harmless, and one that is lost is enqueued again from what is due.
"""

import asyncio
import hashlib
import json
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from anyio import to_thread
from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from redis.client import Pipeline
from redis.exceptions import ResponseError, WatchError
from rq import Queue
from rq.exceptions import DuplicateJobError
from rq.job import Job
from rq.serializers import JSONSerializer

from ledger.arrivals import Arrival, Arrivals, AskedJob, JobPattern, Standing
from ledger.codec import text
from ledger.connection import answered, connect, connect_sync
from ledger.deliveries import Deliveries
from ledger.epoch import KEY as EPOCH
from ledger.errors import LedgerUnavailableError
from ledger.groups import Groups
from ledger.ledger import Ledger, open_ledger
from ledger.records import Due, DueKind
from ledger.timing import LedgerTiming
from triage.asks import Ask
from triage.delivery import Ignored

QUEUE: Final = "retriage"
REDIS_TIMEOUT: Final = timedelta(seconds=2)
"""For connecting and for each reply: GitHub waits ten seconds for an answer."""
SERIALIZER: Final = JSONSerializer
JOB_TIMEOUT_SECONDS: Final = 2 * 60 * 60
"""RQ's own limit; a run's deadline is 40 minutes, and a job stops itself long before this."""
RESULT_TTL_SECONDS: Final = 60 * 60
FAILURE_TTL_SECONDS: Final = 7 * 24 * 60 * 60

AGAIN_TICKS: Final = 5
"""What was enqueued and is still not done with after as many ticks is enqueued again."""

MOST_IN_GROUP: Final = 64
"""Deliveries that are accepted in one round trip."""
PATTERN_SECONDS: Final = 1
"""A job is like the one that RQ wrote last, so long ago at most: it says when it was enqueued."""
GROUPS_AT_ONCE: Final = 2
"""Of these, under way: one alone would wait for the disk each time, and all the others with it;
more are smaller, and each costs a round trip."""
_MOST_READINGS: Final = 5
"""Of one delivery, each with other user ids of the bot: there is one more once in a bot's life."""

LITTLE_BYTES: Final = 1000
"""The data of a job that is not larger is not compressed."""
_PACKER: Final = zlib.compressobj(level=0, wbits=9, memLevel=1)

SAFE_SETTINGS: Final = {
    "appendonly": "yes",
    "appendfsync": "always",
    "maxmemory-policy": "noeviction",
}
"""What the server must be set to: an acknowledged write is on disk, and nothing is evicted."""

_FUNCTIONS: Final = {
    DueKind.START: "worker.jobs.ensure_window",
    DueKind.CONTINUE: "worker.jobs.continue_run",
    DueKind.SAMPLE: "worker.jobs.sample",
    DueKind.VERIFY: "worker.jobs.verify",
    DueKind.RECOVER: "worker.jobs.recover",
    DueKind.ASK: "worker.jobs.handle",
}


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """One job: a function by its path, its JSON arguments, and what makes it this job.

    ``about`` is the same for all jobs about one thing, ``slot`` tells them apart.
    """

    function: str
    arguments: tuple[object, ...]
    about: str
    slot: str

    @property
    def subject(self) -> str:
        """The part of the id that all jobs about the same thing share."""
        kind = self.function.rpartition(".")[2].replace("_", "-")
        return f"{kind}-{hashlib.sha256(self.about.encode()).hexdigest()[:24]}"

    @property
    def id(self) -> str:
        """Letters, digits and ``-`` only: RQ allows no more."""
        return f"{self.subject}-{self.slot}"

    @property
    def data(self) -> bytes:
        """What is called, and with what, as RQ keeps it."""
        called: tuple[object, ...] = (self.function, None, self.arguments, {})
        return zlib.compress(json.dumps(called).encode())


def ask_job(ask: Mapping[str, object], guid: str, index: int, slot: str = "0") -> QueuedJob:
    """``worker.jobs.handle(ask: dict, guid: str, index: int)``; ``index`` counts the asks of one
    delivery."""
    return QueuedJob(_FUNCTIONS[DueKind.ASK], (ask, guid, index), f"{guid}:{index}", slot)


def window_job(
    job: str, repository_id: int, window: str | None, *, now: datetime, slot_seconds: int
) -> QueuedJob:
    """``worker.jobs.ensure_window(job: str, repository_id: int, window: str | None)``.

    None means: the newest window that is due.
    """
    about = f"{job}:R{repository_id}" + (f":{window}" if window else "")
    slot = _slot(now, slot_seconds)
    return QueuedJob(_FUNCTIONS[DueKind.START], (job, repository_id, window), about, slot)


def due_job(due: Due, *, now: datetime, slot_seconds: int, ask: str = "{}") -> QueuedJob:
    """The job for what fell due: ``ensure_window``, ``handle`` with the ``ask`` that was kept, or
    one that takes the due thing's name.

    Raises ValueError where the name of a START or of an ASK is none.
    """
    if due.kind is DueKind.START:
        job, _, repository = due.name.rpartition(":R")
        return window_job(job, int(repository), None, now=now, slot_seconds=slot_seconds)
    slot = _slot(now, slot_seconds)
    if due.kind is DueKind.ASK:
        guid, _, index = due.name.rpartition(":")
        return ask_job(json.loads(ask), guid, int(index), slot)
    return QueuedJob(_FUNCTIONS[due.kind], (due.name,), due.name, slot)


def _slot(now: datetime, slot_seconds: int) -> str:
    return str(int(now.timestamp()) // slot_seconds)


class JobQueue:
    """The one queue. Every method raises LedgerUnavailableError where Redis does not answer."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._queue = Queue(
            QUEUE, connection=redis, serializer=SERIALIZER, default_timeout=JOB_TIMEOUT_SECONDS
        )

    def put(self, jobs: Iterable[QueuedJob]) -> int:
        """Enqueue what is not there yet, all in one transaction; how many were new.

        What still waits for a worker is not enqueued again, whatever its slot: a queue that is
        behind must not grow by what it has not yet done.
        """
        with answered():
            waiting = {job_id.rpartition("-")[0] for job_id in self._queue.job_ids}
            wanted = {job.id: job for job in jobs if job.subject not in waiting}
            try:
                return self._put_together(list(wanted.values()))
            except WatchError:  # somebody was faster with one of them, or the connection was lost
                return sum(self._put_once(job) for job in wanted.values())

    def pattern(self) -> JobPattern:
        """One job as RQ writes it now, for others that differ in their ids and data alone."""
        job = ask_job({}, "any", 0)
        with answered(), self._redis.pipeline() as pipeline:  # which is never executed
            self._enqueue(job, pipeline=pipeline)
            commands = [command for command, _ in pipeline.command_stack]
        return JobPattern(commands, job.id, job.data)

    def depth(self) -> int:
        """How many jobs wait."""
        with answered():
            return len(self._queue)

    def _put_together(self, jobs: Sequence[QueuedJob]) -> int:
        """Raises WatchError, and has then put nothing."""
        keys = [Job.key_for(job.id) for job in jobs]
        if not keys:
            return 0
        with (
            self._redis.pipeline() as writes,
            self._redis.pipeline(transaction=False) as reads,
        ):
            # redis-py's own method has no types.
            writes.watch(*keys)  # type: ignore[no-untyped-call]
            for key in keys:
                reads.exists(key)
            there = reads.execute()
            writes.multi()
            new = [job for job, is_there in zip(jobs, there, strict=True) if not is_there]
            for job in new:
                self._enqueue(job, pipeline=writes)
            writes.execute()
        return len(new)

    def _put_once(self, job: QueuedJob) -> bool:
        try:
            self._enqueue(job, unique=True)
        except DuplicateJobError:
            return False
        return True

    def _enqueue(
        self, job: QueuedJob, *, pipeline: Pipeline | None = None, unique: bool = False
    ) -> None:
        self._queue.enqueue_call(
            job.function,
            args=job.arguments,
            job_id=job.id,
            description=job.id,
            result_ttl=RESULT_TTL_SECONDS,
            failure_ttl=FAILURE_TTL_SECONDS,
            pipeline=pipeline,
            unique=unique,
        )


@dataclass(frozen=True, slots=True)
class Taken:
    """What a delivery asks for, or why for nothing; ``is_new``: it was not known before."""

    asked: Sequence[Ask] | Ignored
    is_new: bool


_Reader = Callable[[frozenset[int]], Sequence[Ask] | Ignored]


@dataclass(frozen=True, slots=True)
class _Reading:
    """A delivery as it was read while the bot's user ids were those of ``arrival``."""

    ask: _Reader
    asked: Sequence[Ask] | Ignored
    arrival: Arrival


class Link:
    """All that the receiver and the clock have of Redis. All but ``ledger`` and what is async
    blocks."""

    def __init__(self, redis: AsyncRedis, blocking: Redis) -> None:
        self._redis = redis
        self._deliveries = Deliveries(blocking)
        self._arrivals = Arrivals(redis)
        self._groups = Groups(self._accept, most=MOST_IN_GROUP, at_once=GROUPS_AT_ONCE)
        self._known_pattern: JobPattern | None = None
        self._pattern_made_at = 0.0
        self.ledger: Ledger = open_ledger(redis, LedgerTiming())
        self.queue = JobQueue(blocking)

    def take(
        self,
        guid: str,
        meaning: str,
        ask: _Reader,
        *,
        again_at: datetime,
    ) -> "asyncio.Future[Taken]":
        """Record a delivery and enqueue what it asks for, all or nothing, together with those that
        have arrived meanwhile. ``ask`` is told the user ids of the bot.

        What is not done at ``again_at`` is enqueued again. Where LedgerUnavailableError is raised
        it may have happened: asking again tells.
        """
        bot_ids = self._arrivals.bot_ids
        return self._groups.join(_read(guid, meaning, ask, bot_ids, again_at))

    async def _accept(self, group: Sequence[_Reading]) -> list[Taken]:
        pattern = await self._pattern()
        for _ in range(_MOST_READINGS):
            group = [_read_again(one, self._arrivals.bot_ids) for one in group]
            found = await self._arrivals.accept([one.arrival for one in group], pattern)
            if Standing.MISREAD not in found:  # all or none: they were read with the same ids
                pairs = zip(group, found, strict=True)
                return [Taken(one.asked, standing is Standing.NEW) for one, standing in pairs]
        raise LedgerUnavailableError("the user ids of the bot changed again and again")

    async def _pattern(self) -> JobPattern:
        now = time.monotonic()
        if self._known_pattern is None or now - self._pattern_made_at >= PATTERN_SECONDS:
            # RQ asks the server for its version before its first job, and blocks meanwhile.
            self._known_pattern = await to_thread.run_sync(self.queue.pattern)
            self._pattern_made_at = now
        return self._known_pattern

    def asks(self, dues: Iterable[Due]) -> dict[Due, str]:
        """What the ASKs among them ask for, as JSON; without those that were tried long enough."""
        return self._deliveries.asks(dues)

    async def has_epoch(self) -> bool:
        """False for a ledger that was never used, or was lost."""
        with answered():
            return bool(await self._redis.exists(EPOCH))

    async def unsafe_settings(self) -> list[str]:
        """What of the server's settings breaks the promise, in words. A server that hides a
        setting is given the benefit of the doubt: the ledger then takes each restart for a loss."""
        shown = await self._settings()
        return [
            f"{name} is {shown[name]!r}, not {wanted!r}"
            for name, wanted in SAFE_SETTINGS.items()
            if shown.get(name, wanted) != wanted
        ]

    async def _settings(self) -> dict[str, str]:
        with answered():
            with suppress(ResponseError):  # not for everybody
                found = await self._redis.config_get(*SAFE_SETTINGS)
                return {text(name): text(value) for name, value in found.items()}
            with suppress(ResponseError):
                told = await self._redis.info()
                appendonly = "yes" if told.get("aof_enabled") else "no"
                policy = str(told.get("maxmemory_policy"))
                return {"appendonly": appendonly, "maxmemory-policy": policy}
        return {}


def _read(
    guid: str, meaning: str, ask: _Reader, bot_ids: frozenset[int], again_at: datetime
) -> _Reading:
    asked = ask(bot_ids)
    jobs = () if isinstance(asked, Ignored) else _asked_jobs(asked, guid)
    return _Reading(ask, asked, Arrival(guid, meaning, bot_ids, jobs, again_at))


def _read_again(one: _Reading, bot_ids: frozenset[int]) -> _Reading:
    old = one.arrival
    if old.bot_ids == bot_ids:
        return one
    return _read(old.guid, old.meaning, one.ask, bot_ids, old.again_at)


def _asked_jobs(asks: Sequence[Ask], guid: str) -> tuple[AskedJob, ...]:
    return tuple(_asked_job(ask, guid, index) for index, ask in enumerate(asks))


def _asked_job(ask: Ask, guid: str, index: int) -> AskedJob:
    due, kept = Due.ask(guid, index), ask.model_dump_json()
    job = ask_job({}, guid, index)
    called = f'["{job.function}", null, [{kept}, "{guid}", {index}], {{}}]'
    return AskedJob(due, kept, job.id, _packed(called.encode()))


def _packed(data: bytes) -> bytes:
    """In the form of zlib, which RQ reads. Little data is not compressed: it would hardly be
    smaller, and a compressor's own room costs as much as all else that is done for a job."""
    if len(data) > LITTLE_BYTES:
        return zlib.compress(data, 1)
    packer = _PACKER.copy()
    return packer.compress(data) + packer.flush()


@asynccontextmanager
async def linked(url: str) -> AsyncIterator[Link]:
    """Clients of one Redis, closed at the end. Nothing is connected yet."""
    with connect_sync(url, timeout=REDIS_TIMEOUT) as blocking:
        async with connect(url, timeout=REDIS_TIMEOUT) as redis:
            yield Link(redis, blocking)
