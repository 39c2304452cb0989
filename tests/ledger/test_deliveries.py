"""Deliveries: in the queue once, together with their job or not at all."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis
from redis.client import Pipeline
from rq import Queue

from ledger.connection import connect_sync
from ledger.deliveries import Deliveries


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    """A client of an empty database that is not async."""
    with connect_sync(redis_url) as client:
        yield client


@pytest.fixture
def queue(client: redis.Redis) -> Queue:
    """A queue in the same database."""
    return Queue("retriage", connection=client)


@pytest.fixture
def deliveries(client: redis.Redis) -> Deliveries:
    """The deliveries of that database."""
    return Deliveries(client)


def accept(deliveries: Deliveries, queue: Queue, guid: str, meaning: str) -> bool:
    """Accept a delivery whose job only has a name."""

    def enqueue(pipeline: Pipeline) -> None:
        queue.enqueue("worker.jobs.nothing", guid, pipeline=pipeline)

    return deliveries.accept(guid, meaning, enqueue)


def test_a_delivery_and_its_job_stand_together(
    deliveries: Deliveries, queue: Queue, client: redis.Redis
) -> None:
    """The job is in the queue, the GUID and the meaning are known for thirty days."""
    assert not deliveries.accepted("guid-1")
    assert accept(deliveries, queue, "guid-1", "command 5")
    assert deliveries.accepted("guid-1")
    assert [job.args for job in queue.jobs] == [("guid-1",)]
    kept = [client.ttl(key) for key in client.keys("delivery:*") + client.keys("meaning:*")]
    assert kept == [2_592_000, 2_592_000]


def test_a_redelivery_makes_no_second_job(deliveries: Deliveries, queue: Queue) -> None:
    """The same GUID, or another one that means the same; no meaning is like no other."""
    assert accept(deliveries, queue, "guid-1", "command 5")
    assert not accept(deliveries, queue, "guid-1", "command 5")
    assert not accept(deliveries, queue, "guid-1", "")
    assert not accept(deliveries, queue, "guid-2", "command 5")
    assert accept(deliveries, queue, "guid-3", "")
    assert accept(deliveries, queue, "guid-4", "")
    assert [job.args[0] for job in queue.jobs] == ["guid-1", "guid-3", "guid-4"]


def test_of_sixteen_at_once_one_is_accepted(
    deliveries: Deliveries, queue: Queue, redis_url: str
) -> None:
    """From threads with clients of their own."""

    def one(number: int) -> bool:
        with connect_sync(redis_url) as own:
            own_queue = Queue("retriage", connection=own)
            return accept(Deliveries(own), own_queue, f"guid-{number % 4}", "command 5")

    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(one, range(16)))
    assert answers.count(True) == 1
    assert len(queue.jobs) == 1


def test_a_job_that_cannot_be_made_leaves_nothing(
    deliveries: Deliveries, queue: Queue, client: redis.Redis
) -> None:
    """The delivery may come again."""

    def fail(pipeline: Pipeline) -> None:
        raise RuntimeError("no job")

    with pytest.raises(RuntimeError):
        deliveries.accept("guid-1", "command 5", fail)
    assert client.dbsize() == 0
    assert accept(deliveries, queue, "guid-1", "command 5")
