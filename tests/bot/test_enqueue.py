"""Jobs: their names and ids, and that a worker of RQ can read and run them."""

import importlib
import json
import re
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import redis
from rq import Queue, SimpleWorker
from rq.job import Job

from bot.enqueue import (
    QUEUE,
    SERIALIZER,
    JobQueue,
    QueuedJob,
    ask_job,
    due_job,
    linked,
    window_job,
)
from ledger.connection import connect_sync
from ledger.records import Due, DueKind
from triage.asks import Installed, Repository

NOON = datetime(2026, 9, 16, 12, tzinfo=UTC)
NAMES = {
    DueKind.START: "daily-issue-triage:R42",
    DueKind.CONTINUE: "daily-issue-triage:R42:2026-09-16:p3f2a91c0:forced-77",
    DueKind.SAMPLE: "a" * 64,
    DueKind.VERIFY: "a" * 64,
    DueKind.RECOVER: "R42:1",
    DueKind.ASK: "d-1:0",
}
INSTALLED = Installed(installation="5").model_dump(mode="json")


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    """A client of an empty database."""
    with connect_sync(redis_url) as client:
        yield client


def job_of(kind: DueKind, now: datetime = NOON) -> QueuedJob:
    """The job of one kind."""
    return due_job(Due(kind, NAMES[kind]), now=now, slot_seconds=60)


@pytest.mark.parametrize("kind", DueKind)
def test_an_id_fits_rq(kind: DueKind) -> None:
    """Letters, digits and dashes; RQ refuses the colons of our keys."""
    assert re.fullmatch(r"[a-z0-9-]{1,80}", job_of(kind).id)


@pytest.mark.parametrize("kind", DueKind)
def test_an_id_is_that_of_its_slot(kind: DueKind) -> None:
    """The same within a minute, another one after it, and about the same thing."""
    late, later = NOON + timedelta(seconds=59), NOON + timedelta(seconds=60)
    assert job_of(kind).id == job_of(kind, late).id != job_of(kind, later).id
    assert job_of(kind).subject == job_of(kind, later).subject


def test_ids_tell_things_apart() -> None:
    """Kinds with the same name, repositories, windows, and the parts of one delivery."""
    jobs = [
        *(job_of(kind) for kind in DueKind),
        window_job("daily-issue-triage", 43, None, now=NOON, slot_seconds=60),
        window_job("daily-issue-triage", 42, "2026-09-16", now=NOON, slot_seconds=60),
        *(ask_job(INSTALLED, guid, index) for guid in ("d-1", "d-2") for index in (0, 1)),
    ]
    assert len({job.id for job in jobs}) == len(jobs)


def test_every_job_name_resolves() -> None:
    """A typing mistake would otherwise be found by the first delivery."""
    jobs = [*(job_of(kind) for kind in DueKind), ask_job(INSTALLED, "d-1", 0)]
    for job in jobs:
        module, _, name = job.function.rpartition(".")
        assert callable(getattr(importlib.import_module(module), name))


def test_a_worker_runs_it(client: redis.Redis) -> None:
    """RQ's own, with the same serializer: the arguments arrive as JSON has them."""
    asked = {"kind": "command", "arguments": ["--force"], "login": "añ✓"}
    job = QueuedJob("json.dumps", (asked,), "a thing", "0")
    assert JobQueue(client).put([job]) == 1
    queue = Queue(QUEUE, connection=client, serializer=SERIALIZER)
    SimpleWorker([queue], connection=client, serializer=SERIALIZER).work(burst=True)
    done = Job.fetch(job.id, connection=client, serializer=SERIALIZER)
    assert done.is_finished
    assert done.return_value() == (
        '{"kind": "command", "arguments": ["--force"], "login": "a\\u00f1\\u2713"}'
    )
    assert JobQueue(client).depth() == 0


def test_an_id_is_never_used_again(client: redis.Redis) -> None:
    """Not while it waits, and not once it is done."""
    job = QueuedJob("json.dumps", ({},), "a thing", "0")
    queue = JobQueue(client)
    assert queue.put([job, job]) == 1
    assert queue.put([job]) == 0
    listened = Queue(QUEUE, connection=client, serializer=SERIALIZER)
    SimpleWorker([listened], connection=client, serializer=SERIALIZER).work(burst=True)
    assert queue.put([job]) == 0
    assert queue.put([QueuedJob("json.dumps", ({},), "a thing", "1")]) == 1


async def test_a_job_of_a_group_is_as_rq_writes_it(client: redis.Redis, redis_url: str) -> None:
    """Field by field what ``Queue.enqueue_call`` writes, its moments apart; a worker reads it."""
    many = tuple(Repository(id=number, full_name=f"acme/{number}") for number in range(1, 201))
    asks = (
        Installed(installation="5 añ✓"),
        Installed(installation="6"),
        Installed(installation="7", repositories=many),  # as it is packed when it is large
    )
    async with linked(redis_url) as link:
        await link.take("d-1", "", lambda _: asks, again_at=NOON)
    ours = Queue(QUEUE, connection=client, serializer=SERIALIZER).jobs
    by_rq = Queue("other", connection=client, serializer=SERIALIZER, default_timeout=7200)
    for index, (ask, job) in enumerate(zip(asks, ours, strict=True)):
        twin = by_rq.enqueue_call(
            "worker.jobs.handle",
            args=(ask.model_dump(mode="json"), "d-1", index),
            job_id=f"twin-{index}",
            description=job.id,
            result_ttl=3600,
            failure_ttl=7 * 24 * 3600,
        )
        assert job.id == ask_job({}, "d-1", index).id
        assert (job.func_name, job.args, job.kwargs) == (twin.func_name, list(twin.args), {})
        assert set(job.to_dict()) == set(twin.to_dict())
        assert written(client, job) == written(client, twin) | {"origin": b"retriage"}
        assert job.enqueued_at is not None
        assert twin.enqueued_at is not None
        assert abs(job.enqueued_at - twin.enqueued_at) < timedelta(minutes=1)
    large = client.hstrlen(ours[2].key, "data")
    assert large < len(asks[2].model_dump_json()) / 4
    assert client.smembers("rq:queues") == {b"rq:queue:retriage", b"rq:queue:other"}


def written(client: redis.Redis, job: Job) -> dict[str, object]:
    """The hash of a job, without moments; its data as they are read."""
    found: dict[bytes, bytes] = client.hgetall(job.key)  # type: ignore[assignment]
    assert found.pop(b"created_at").endswith(b"Z")
    assert found.pop(b"enqueued_at").endswith(b"Z")
    fields: dict[str, object] = {name.decode(): value for name, value in found.items()}
    return {**fields, "data": json.loads(zlib.decompress(found[b"data"]))}
