"""The worker: takes jobs from the queue, one at a time, each in a work horse that dies with it."""

import sys

from redis.exceptions import RedisError
from rq import Queue, Worker
from rq.job import Job
from rq.serializers import JSONSerializer

from ledger.connection import connect_sync
from process.log import forward_libraries
from worker import jobs
from worker.settings import SettingsError

QUEUE = "retriage"
"""The one queue: with several, RQ takes jobs in a way that a crash loses them."""


class TiedWorker(Worker):
    """A worker whose work horse is tied to it before it does anything."""

    def main_work_horse(self, job: Job, queue: Queue) -> None:
        """In the child."""
        jobs.die_with_parent()
        super().main_work_horse(job, queue)


def main(*, burst: bool = False) -> int:
    """Work until told to stop. 0; 1 where Redis is out of reach; 2 where the
    settings do not allow it."""
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
    queue = Queue(QUEUE, connection=redis, serializer=JSONSerializer)
    worker = TiedWorker([queue], connection=redis, serializer=JSONSerializer)
    wiring.log("WORKER-STARTED", name=worker.name)
    try:
        worker.work(burst=burst, logging_level="WARNING")
    except RedisError as error:
        sys.stderr.write(f"Redis cannot be reached at REDIS_URL: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
