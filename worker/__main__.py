"""The worker: takes jobs from the queue, one at a time, each in a work horse that dies with it."""

import os
import signal
import sys
from contextlib import suppress
from threading import Event
from typing import Final

from redis import Redis
from redis.exceptions import RedisError
from rq import Queue, Worker
from rq.exceptions import StopRequested
from rq.job import Job
from rq.serializers import JSONSerializer

from ledger.connection import connect_sync
from process.log import forward_libraries
from worker import jobs
from worker.settings import SettingsError
from worker.wiring import Wiring

QUEUE = "retriage"
"""The one queue: with several, RQ takes jobs in a way that a crash loses them."""

TTL_SECONDS: Final = 60
"""How long RQ believes in a silent worker; it waits a little less for a job, and for any reply. Its
own default is seven minutes: as long would a worker be deaf whose connection died silently."""

PAUSE_SECONDS: Final = 3.0
"""Before a worker that lost Redis starts anew."""


class TiedWorker(Worker):
    """A worker whose work horse is tied to it before it does anything.

    ``told`` is True once it was told to end: RQ also ends it where Redis fails at some moments, and
    says so in no other way.
    """

    told = False
    max_connection_wait_time = 5.0

    def main_work_horse(self, job: Job, queue: Queue) -> None:
        """In the child."""
        jobs.die_with_parent()
        super().main_work_horse(job, queue)

    def handle_warm_shutdown_request(self) -> None:
        """The first SIGTERM or SIGINT."""
        self.told = True
        # RQ's own method has no types.
        super().handle_warm_shutdown_request()  # type: ignore[no-untyped-call]

    def leave_no_horse(self) -> None:
        """End the work horse that this worker no longer watches."""
        if self.horse_pid:
            with suppress(ChildProcessError):
                if os.waitpid(self.horse_pid, os.WNOHANG) == (0, 0):
                    os.kill(self.horse_pid, signal.SIGKILL)
                    os.waitpid(self.horse_pid, 0)


def main(*, burst: bool = False) -> int:
    """Work until told to stop. 0, or 2 where the settings do not allow it.

    Raises RedisError where Redis is out of reach at the start; where it goes away later, the worker
    starts anew until it is back.
    """
    try:
        wiring = jobs.wiring()
    except SettingsError as error:
        sys.stderr.write("".join(f"{line}\n" for line in error.problems))
        return 2
    if not wiring.redis_url:
        sys.stderr.write("REDIS_URL is missing: web, worker and clock share one Redis\n")
        return 2
    forward_libraries(wiring.log, wiring.settings.log_level)
    redis = connect_sync(wiring.redis_url)
    redis.ping()
    while not _worked(redis, wiring, burst=burst):
        if _told_within(PAUSE_SECONDS):
            break
    return 0


def _worked(redis: Redis, wiring: Wiring, *, burst: bool) -> bool:
    """Be one worker of RQ until told to stop; False where Redis went away."""
    worker: TiedWorker | None = None
    reason = "Redis did not answer"
    try:
        queue = Queue(QUEUE, connection=redis, serializer=JSONSerializer)
        worker = TiedWorker(
            [queue], connection=redis, serializer=JSONSerializer, worker_ttl=TTL_SECONDS
        )
        wiring.log("WORKER-STARTED", name=worker.name)
        worker.work(burst=burst, logging_level="WARNING")
    except StopRequested:
        return True  # told while it was ending by itself
    except RedisError as error:
        reason = str(error)
    if burst or (worker is not None and worker.told):
        return True
    if worker is not None:
        worker.leave_no_horse()
    wiring.log("WORKER-RESTARTS", reason=reason)
    return False


def _told_within(seconds: float) -> bool:
    """Wait; True where SIGTERM or SIGINT comes meanwhile."""
    told = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: told.set())
    return told.wait(seconds)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RedisError as error:
        sys.exit(f"Redis cannot be reached at REDIS_URL: {error}")
