"""The clock: each minute it enqueues what is due. It never runs anything, and any number may tick.

RQ's ``CronScheduler`` is the ticker. As it comes it would not do: its step puts a job into the
queue, so a tick would wait behind the runs that it is to wake, under an id drawn at random; and a
Redis that is gone ends it. So here that one step is ``tick``, and what needs Redis is guarded. What
is kept of it: the interval, the signals, and the entry in Redis that shows which clocks live.

It has no lock and remembers nothing, and needs neither: what is due stands in the ledger, and is
taken there by one clock at a time. A tick costs what is due, not what is installed; what fell due
while no clock ran is due at the next tick.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from anyio import to_thread
from anyio.from_thread import start_blocking_portal
from redis import Redis
from redis.client import Pipeline
from redis.exceptions import RedisError
from rq.cron import CronJob, CronScheduler
from rq.exceptions import SchedulerNotFound, StopRequested

from bot.enqueue import AGAIN_TICKS, QUEUE, REDIS_TIMEOUT, Link, due_job, linked
from bot.settings import ClockSettings
from ledger.connection import connect_sync
from ledger.errors import LedgerUnavailableError
from ledger.records import Due, DueKind
from process.log import Log

BATCH: Final = 200
MOST_BATCHES: Final = 50
"""Of one tick: what is still due then, the next one takes."""


async def tick(link: Link, now: datetime, *, tick_seconds: int = 60) -> int:
    """Enqueue a job for everything that is due at ``now``; how many were new.

    A ledger without an epoch was never used or was lost: what is installed has to be asked for
    (again), whatever a worker that did not know of the loss has put into it since, or nothing would
    fall due in time.

    Raises LedgerUnavailableError; whatever was taken by then comes again by itself.
    """
    again_in = timedelta(seconds=AGAIN_TICKS * tick_seconds)
    enqueued = 0
    if not await link.has_epoch():
        enqueued += await _put(link, [Due(DueKind.RECOVER, "ledger")], now, tick_seconds)
    for _ in range(MOST_BATCHES):
        taken = await link.ledger.due.take(now, BATCH, again_in)
        enqueued += await _put(link, taken, now, tick_seconds)
        if len(taken) < BATCH:
            break
    return enqueued


async def _put(link: Link, dues: Sequence[Due], now: datetime, slot_seconds: int) -> int:
    if not dues:
        return 0
    asks = await to_thread.run_sync(link.asks, dues)
    jobs = []
    for due in dues:
        if due.kind is DueKind.ASK and due not in asks:
            await link.ledger.due.remove(due)
        else:
            ask = asks.get(due, "{}")
            jobs.append(due_job(due, now=now, slot_seconds=slot_seconds, ask=ask))
    return await to_thread.run_sync(link.queue.put, jobs)


class Ticker(CronScheduler):
    """RQ's scheduler with ``beat`` as its one step, called in this process every few seconds.

    Its entry in Redis is a courtesy: it may fail, the beat goes on.
    """

    def __init__(self, redis: Redis, beat: Callable[[], None], seconds: int, log: Log) -> None:
        super().__init__(redis)
        self._beat = beat
        self._say_born = partial(log, "CLOCK-STARTED", seconds=seconds)
        self.register(beat, QUEUE, interval=seconds)

    def enqueue_jobs(self) -> list[CronJob]:
        """Beat where it is time. Nothing is enqueued by RQ's own hand."""
        due = [job for job in self.get_jobs() if job.should_run()]
        for job in due:
            job.set_enqueue_time(datetime.now(UTC))
            self._beat()
        return due

    def register_birth(self) -> None:
        """Show that this clock lives, and that it can be told to end."""
        self._say_born()
        with suppress(RedisError):
            super().register_birth()

    def heartbeat(self) -> None:
        """Show that it still lives."""
        with suppress(RedisError):
            super().heartbeat()

    def save(self, pipeline: Pipeline | None = None) -> None:
        """Show when it beat."""
        with suppress(RedisError):
            super().save(pipeline)

    def register_death(self, pipeline: Pipeline | None = None) -> None:
        """Show that it is gone; where Redis was away all along, it was never shown."""
        with suppress(RedisError, SchedulerNotFound):
            super().register_death(pipeline)


def run_clock(settings: ClockSettings, log: Log) -> None:
    """Tick until SIGTERM or SIGINT. Redis out of reach is a line in the log, and the next tick.

    The loop runs in a thread of its own: a signal raises in the main one, where RQ waits for it,
    never in the middle of asyncio, which would swallow it. A tick under way is cut short.
    """
    url = settings.redis_url.get_secret_value()
    seconds = settings.retriage_tick_seconds
    with connect_sync(url, timeout=REDIS_TIMEOUT) as redis, start_blocking_portal() as portal:

        def beat() -> None:
            beating = portal.start_task_soon(_beat, url, seconds, log)
            try:
                beating.result()
            except StopRequested:
                beating.cancel()
                raise

        with suppress(StopRequested):  # which RQ itself lets through while a clock is born
            # RQ's own method has no types.
            Ticker(redis, beat, seconds, log).start()  # type: ignore[no-untyped-call]
    log("CLOCK-STOPPED")


async def _beat(url: str, seconds: int, log: Log) -> None:
    try:
        async with linked(url) as link:
            enqueued = await tick(link, datetime.now(UTC), tick_seconds=seconds)
    except (LedgerUnavailableError, RedisError, ValueError) as error:
        log("TICK-FAILED", reason=str(error))
        return
    if enqueued:
        log("TICK", enqueued=enqueued)
