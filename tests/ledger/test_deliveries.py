"""Deliveries: in the queue once, together with their job or not at all."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis
from redis.client import Pipeline
from rq import Queue

from ledger.codec import moment
from ledger.connection import connect_sync
from ledger.deliveries import ASK_KEPT, KEPT, Deliveries
from ledger.records import Due, DueKind
from tests.ledger.samples import NOON
from tests.simulation.memory.deliveries import MemoryDeliveries, Transaction
from tests.simulation.memory.rows import State
from tests.simulation.memory.server import MemoryServer

ASK = Due.ask("guid-1", 0)


class Door(ABC):
    """Where deliveries come in, with its queue."""

    deliveries: Deliveries | MemoryDeliveries

    @abstractmethod
    def accept(self, guid: str, meaning: str) -> bool:
        """Accept a delivery whose job only has a name."""

    @abstractmethod
    def accept_and_keep(self, guid: str, due: Due, ask: str) -> bool:
        """The same, and what it asks for comes again at NOON."""

    @abstractmethod
    def fail(self, guid: str, meaning: str) -> None:
        """Accept a delivery whose job cannot be made. Raises RuntimeError."""

    @abstractmethod
    def jobs(self) -> list[str]:
        """What is in the queue, oldest first."""

    @abstractmethod
    def lives(self) -> list[timedelta]:
        """How long each GUID, meaning and ask still stands."""

    @abstractmethod
    def due(self) -> dict[str, datetime]:
        """What falls due, and when."""

    @abstractmethod
    def empty(self) -> bool:
        """Whether nothing stands there at all."""


class ValkeyDoor(Door):
    """On the real server, with the queue of the program."""

    deliveries: Deliveries

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._queue = Queue("retriage", connection=client)
        self.deliveries = Deliveries(client)

    def accept(self, guid: str, meaning: str) -> bool:
        def enqueue(pipeline: Pipeline) -> None:
            self._queue.enqueue("worker.jobs.nothing", guid, pipeline=pipeline)

        return self.deliveries.accept(guid, meaning, enqueue)

    def accept_and_keep(self, guid: str, due: Due, ask: str) -> bool:
        deliveries = self.deliveries
        return deliveries.accept(guid, "", lambda pipe: deliveries.keep(pipe, due, ask, NOON))

    def fail(self, guid: str, meaning: str) -> None:
        def enqueue(pipeline: Pipeline) -> None:
            pipeline.set("half", "done")
            raise RuntimeError("no job")

        self.deliveries.accept(guid, meaning, enqueue)

    def jobs(self) -> list[str]:
        return [str(job.args[0]) for job in self._queue.jobs]

    def lives(self) -> list[timedelta]:
        names = [
            name
            for kind in ("delivery", "meaning", "ask")
            for name in self._client.keys(f"{kind}:*")
        ]
        return [timedelta(milliseconds=self._client.pttl(name)) for name in names]

    def due(self) -> dict[str, datetime]:
        found: Any = self._client.zrange("window:due", 0, -1, withscores=True)
        return {name.decode(): moment(score) for name, score in found}

    def empty(self) -> bool:
        return self._client.dbsize() == 0


class MemoryDoor(Door):
    """In memory, where the queue is a list and time stands still."""

    deliveries: MemoryDeliveries

    def __init__(self) -> None:
        self.time = datetime(2026, 3, 4, 12, tzinfo=UTC)
        self._server = MemoryServer(lambda: self.time)
        self._jobs: list[str] = []
        self.deliveries = MemoryDeliveries(self._server)

    def accept(self, guid: str, meaning: str) -> bool:
        def enqueue(transaction: Transaction) -> None:
            transaction.add(lambda: self._jobs.append(guid))

        return self.deliveries.accept(guid, meaning, enqueue)

    def accept_and_keep(self, guid: str, due: Due, ask: str) -> bool:
        deliveries = self.deliveries
        return deliveries.accept(guid, "", lambda deeds: deliveries.keep(deeds, due, ask, NOON))

    def fail(self, guid: str, meaning: str) -> None:
        def enqueue(transaction: Transaction) -> None:
            transaction.add(lambda: self._jobs.append(guid))
            raise RuntimeError("no job")

        self.deliveries.accept(guid, meaning, enqueue)

    def jobs(self) -> list[str]:
        return list(self._jobs)

    def lives(self) -> list[timedelta]:
        state = self._server.copy()
        kept = [*state.deliveries.values(), *state.asks.values()]
        return [
            timedelta(milliseconds=item.expires - self._server.millis)
            for item in kept
            if item.expires is not None
        ]

    def due(self) -> dict[str, datetime]:
        return {name: moment(at) for name, at in self._server.copy().due.items()}

    def empty(self) -> bool:
        return self._server.copy() == State() and not self._jobs


@pytest.fixture(params=["valkey", "memory"])
def door(request: pytest.FixtureRequest) -> Iterator[Door]:
    """An empty ledger with an empty queue."""
    if request.param == "memory":
        yield MemoryDoor()
    else:
        client: redis.Redis
        with connect_sync(request.getfixturevalue("redis_url")) as client:
            yield ValkeyDoor(client)


def test_a_delivery_and_its_job_stand_together(door: Door) -> None:
    """The job is in the queue, the GUID and the meaning are known for thirty days."""
    assert not door.deliveries.accepted("guid-1")
    assert door.accept("guid-1", "command 5")
    assert door.deliveries.accepted("guid-1")
    assert door.jobs() == ["guid-1"]
    lives = door.lives()
    assert len(lives) == 2
    assert all(KEPT - timedelta(seconds=5) < life <= KEPT for life in lives)


def test_a_redelivery_makes_no_second_job(door: Door) -> None:
    """The same GUID, or another one that means the same; no meaning is like no other. What was not
    accepted is not known."""
    assert door.accept("guid-1", "command 5")
    assert not door.accept("guid-1", "command 5")
    assert not door.accept("guid-1", "")
    assert not door.accept("guid-2", "command 5")
    assert not door.deliveries.accepted("guid-2")
    assert door.accept("guid-3", "")
    assert door.accept("guid-4", "")
    assert door.jobs() == ["guid-1", "guid-3", "guid-4"]


def test_of_sixteen_at_once_one_is_accepted(redis_url: str) -> None:
    """From threads with clients of their own: the real server's."""

    def one(number: int) -> bool:
        own: redis.Redis
        with connect_sync(redis_url) as own:
            return ValkeyDoor(own).accept(f"guid-{number % 4}", "command 5")

    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(one, range(16)))
    assert answers.count(True) == 1
    client: redis.Redis
    with connect_sync(redis_url) as client:
        assert len(ValkeyDoor(client).jobs()) == 1


def test_a_job_that_cannot_be_made_leaves_nothing(door: Door) -> None:
    """The delivery may come again."""
    with pytest.raises(RuntimeError):
        door.fail("guid-1", "command 5")
    assert door.empty()
    assert door.accept("guid-1", "command 5")
    assert door.jobs() == ["guid-1"]


def test_what_is_asked_for_is_kept_with_its_delivery(door: Door) -> None:
    """For a day, and due until it is done; a redelivery changes neither."""
    assert door.accept_and_keep("guid-1", ASK, "first")
    assert not door.accept_and_keep("guid-1", Due.ask("guid-1", 1), "second")
    assert door.due() == {"ask guid-1:0": NOON}
    assert ASK_KEPT - timedelta(seconds=5) < min(door.lives()) <= ASK_KEPT
    others = [Due(DueKind.CONTINUE, "guid-1:0"), Due.ask("guid-1", 1)]
    assert door.deliveries.asks([ASK, *others]) == {ASK: "first"}
    assert door.deliveries.asks(others) == {}
    assert door.deliveries.asks([]) == {}


def test_in_memory_it_is_forgotten_when_its_time_is_over() -> None:
    """The ask after a day, the delivery and its meaning after thirty; the server does it by its own
    clock."""
    door = MemoryDoor()
    assert door.accept_and_keep("guid-1", ASK, "first")
    assert door.accept("guid-2", "command 5")
    door.time += ASK_KEPT + timedelta(seconds=1)
    assert door.deliveries.asks([ASK]) == {}
    assert door.deliveries.accepted("guid-1")
    assert not door.accept("guid-3", "command 5")
    door.time += KEPT
    assert not door.deliveries.accepted("guid-1")
    assert door.accept("guid-3", "command 5")
