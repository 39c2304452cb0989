"""Several who put the same jobs at the same time make each of them once."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Barrier

from bot.enqueue import JobQueue, QueuedJob
from ledger.connection import connect_sync


def test_of_four_at_once_each_job_is_put_by_one(redis_url: str) -> None:
    """Whoever finds that another was faster with one of them puts the rest one by one."""
    clocks, rounds = 4, 10
    with ExitStack() as stack, ThreadPoolExecutor(clocks) as threads:
        queues = [JobQueue(stack.enter_context(connect_sync(redis_url))) for _ in range(clocks)]
        for number in range(rounds):
            together = Barrier(clocks)
            jobs = [QueuedJob("json.dumps", ({},), f"{number}:{job}", "0") for job in range(30)]

            def put(queue: JobQueue, given: list[QueuedJob], start: Barrier) -> int:
                start.wait()
                return queue.put(given)

            put_by = list(threads.map(put, queues, [jobs] * clocks, [together] * clocks))
            assert sum(put_by) == len(jobs)
            assert queues[0].depth() == (number + 1) * len(jobs)
