"""/cron: who may ring, what is asked, and that ringing twice is one job."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.clock import tick
from ledger.records import Due, RepositoryRecord
from ledger.server import EmbeddedServer
from tests.bot.receiver import CRON_SECRET, Receiver, called, queued, receiving, worked_off
from triage.identifiers import JobKey
from triage.policy import JobPolicy, Resource, ResourceKind, ReviewPolicy, WatchPolicy
from triage.window import Every

NOON = datetime(2026, 9, 16, 12, tzinfo=UTC)
DAILY = "daily-issue-triage"
REVIEW, WATCH = "nightly-repo-review", "resource-watch"
POLICY = JobPolicy(labels={"bug": "Something does not work"})
RELEASES = Resource(name="a", url="https://a.example/feed", kind=ResourceKind.FEED)
ENSURE = "worker.jobs.ensure_window"


async def know(receiver: Receiver, *records: RepositoryRecord) -> None:
    """Put repositories into the ledger, and set the time to noon."""
    receiver.now.at = NOON
    await receiver.link.ledger.epochs.ensure(first=True)
    for record in records:
        await receiver.link.ledger.repositories.save(record)


def repository(number: int, **changed: Any) -> RepositoryRecord:
    """A repository whose windows are days, due at nine."""
    given = {"full_name": f"acme/r{number}", "installation": "5", "policy": POLICY, **changed}
    return RepositoryRecord(id=number, **given)


async def test_every_repository_is_asked_for(receiver: Receiver, redis_url: str) -> None:
    """Those that were removed apart; one whose policy is not known yet, the worker looks at."""
    removed = repository(3, active=False)
    await know(receiver, repository(1), repository(2, policy=None), removed)
    answer = await receiver.ring(DAILY)
    assert answer.status_code == 202
    assert answer.json() == {"outcome": "accepted", "known": 2, "enqueued": 2}
    assert called(redis_url) == [(ENSURE, (DAILY, 1, None)), (ENSURE, (DAILY, 2, None))]
    assert receiver.lines() == ["CRON accepted job=daily-issue-triage known=2 enqueued=2"]


async def test_one_repository_and_one_window(receiver: Receiver, redis_url: str) -> None:
    """Named in the query, as people spell it."""
    await know(receiver, repository(1), repository(2))
    answer = await receiver.ring(f"{DAILY}?repository=Acme/R2&window=2026-09-15")
    assert answer.json() == {"outcome": "accepted", "known": 1, "enqueued": 1}
    assert called(redis_url) == [(ENSURE, (DAILY, 2, "2026-09-15"))]


async def test_ringing_twice_is_one_job(receiver: Receiver, redis_url: str) -> None:
    """At once, again while it waits, and again within the slot after it was worked off."""
    await know(receiver, repository(1))
    answers = await asyncio.gather(*(receiver.ring(DAILY) for _ in range(5)))
    assert sum(answer.json()["enqueued"] for answer in answers) == 1
    receiver.now.at = NOON + timedelta(minutes=30)
    assert (await receiver.ring(DAILY)).json()["enqueued"] == 0
    receiver.now.at = NOON
    worked_off(redis_url)
    assert (await receiver.ring(DAILY)).json()["enqueued"] == 0
    receiver.now.at = NOON + timedelta(minutes=1)
    assert (await receiver.ring(DAILY)).json()["enqueued"] == 1
    assert len(queued(redis_url)) == 1


async def test_clock_and_cron_at_once_are_one_job(receiver: Receiver, redis_url: str) -> None:
    """They ask for the same thing in the same slot."""
    await know(receiver, repository(1))
    await receiver.link.ledger.due.add(Due.window(JobKey.DAILY, 1), NOON)
    rung, ticked = await asyncio.gather(receiver.ring(DAILY), tick(receiver.link, NOON))
    assert rung.json()["enqueued"] + ticked == 1
    assert called(redis_url) == [(ENSURE, (DAILY, 1, None))]


async def test_a_named_window_is_another_job(receiver: Receiver, redis_url: str) -> None:
    """The newest one and a named one are two questions, though they may be one window."""
    await know(receiver, repository(1))
    await receiver.ring(DAILY)
    await receiver.ring(f"{DAILY}?window=2026-09-16")
    assert len(queued(redis_url)) == 2


@pytest.mark.parametrize(
    ("window", "reason"),
    [
        ("tomorrow", "a window looks like 2026-09-16, 2026-09-16T14 or 2026-W38"),
        ("2026-9-16", "a window looks like 2026-09-16, 2026-09-16T14 or 2026-W38"),
        ("", "a window looks like 2026-09-16, 2026-09-16T14 or 2026-W38"),
        ("2026-09-16%0a", "a window looks like 2026-09-16, 2026-09-16T14 or 2026-W38"),
        ("２０２６-09-16", "a window looks like 2026-09-16, 2026-09-16T14 or 2026-W38"),
        ("2026-W38", "'2026-W38'"),
        ("2026-02-30", "'2026-02-30' is no window of this schedule (daily)"),
        ("2026-09-17", "window 2026-09-17 is not due before 2026-09-17T09:00:00+00:00"),
    ],
)
async def test_a_window_that_is_none(
    receiver: Receiver, redis_url: str, window: str, reason: str
) -> None:
    """400 with the form of one; the future cannot be asked for."""
    await know(receiver, repository(1))
    answer = await receiver.ring(f"{DAILY}?window={window}")
    assert (answer.status_code, answer.json()["outcome"]) == (400, "refused")
    assert reason in answer.json()["reason"]
    assert queued(redis_url) == []


async def test_repositories_of_different_schedules(receiver: Receiver, redis_url: str) -> None:
    """A window is asked for where there is one of that name."""
    weekly = POLICY.model_copy(
        update={"schedule": POLICY.schedule.model_copy(update={"every": Every.WEEKLY})}
    )
    await know(receiver, repository(1), repository(2, policy=weekly))
    answer = await receiver.ring(f"{DAILY}?window=2026-09-15")
    assert answer.json() == {"outcome": "accepted", "known": 1, "enqueued": 1}
    assert called(redis_url) == [(ENSURE, (DAILY, 1, "2026-09-15"))]


async def test_each_job_has_windows_of_its_own(receiver: Receiver, redis_url: str) -> None:
    """By its own schedule; a repository where the job is not known yet, the worker looks at."""
    weekly = POLICY.schedule.model_copy(update={"every": Every.WEEKLY})
    hourly = POLICY.schedule.model_copy(update={"every": Every.HOURLY})
    watch = WatchPolicy(schedule=hourly, resources=(RELEASES,))
    await know(
        receiver,
        repository(1, policy=None, review=ReviewPolicy(schedule=weekly)),
        repository(2, watch=watch),
    )
    assert (await receiver.ring(REVIEW)).json() == {
        "outcome": "accepted",
        "known": 2,
        "enqueued": 2,
    }
    answer = await receiver.ring(f"{REVIEW}?repository=acme/r1&window=2026-W37")
    assert answer.json()["enqueued"] == 1
    answer = await receiver.ring(f"{WATCH}?repository=acme/r2&window=2026-09-16T11")
    assert answer.json()["enqueued"] == 1
    assert called(redis_url) == [
        (ENSURE, (REVIEW, 1, None)),
        (ENSURE, (REVIEW, 2, None)),
        (ENSURE, (REVIEW, 1, "2026-W37")),
        (ENSURE, (WATCH, 2, "2026-09-16T11")),
    ]
    for asked, wrong in (
        (f"{REVIEW}?repository=acme/r1", "2026-09-16"),
        (f"{WATCH}?repository=acme/r2", "2026-09-16T13"),
        (f"{DAILY}?repository=acme/r2", "2026-W37"),
    ):
        assert (await receiver.ring(f"{asked}&window={wrong}")).status_code == 400


@pytest.mark.parametrize("job", ["issue-retriage", "nonsense", "Daily-Issue-Triage"])
async def test_an_unknown_job(receiver: Receiver, job: str) -> None:
    """404, with those that there are; a command's job has no windows."""
    answer = await receiver.ring(job)
    assert answer.status_code == 404
    assert answer.json()["reason"] == (
        "no such job with windows; there is daily-issue-triage, nightly-repo-review, resource-watch"
    )


async def test_an_unknown_repository(receiver: Receiver) -> None:
    """404 for one that was never installed, or was removed."""
    await know(receiver, repository(3, active=False))
    for name in ("acme/nothing", "acme/r3", "%00"):
        assert (await receiver.ring(f"{DAILY}?repository={name}")).status_code == 404


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer wrong",
        f"Basic {CRON_SECRET}",
        CRON_SECRET,
        f"Bearer {CRON_SECRET}x",
        "Bearer é",
    ],
)
async def test_who_may_not_ring(
    receiver: Receiver, redis_url: str, authorization: str | None
) -> None:
    """401, before anything is said of jobs."""
    await know(receiver, repository(1))
    given = [] if authorization is None else [(b"authorization", authorization.encode())]
    answer = await receiver.client.post("/cron/nonsense", headers=given)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert CRON_SECRET not in receiver.written.getvalue()
    assert queued(redis_url) == []


async def test_without_a_secret_nobody_may(redis_url: str) -> None:
    """The way is closed, not open to all."""
    async with receiving(redis_url, cron_secret=None) as receiver:
        answer = await receiver.ring(DAILY, secret="None")
        assert answer.status_code == 401
        assert answer.json()["reason"] == "CRON_SECRET is not set: this way is closed"


async def test_redis_gone(tmp_path: Path) -> None:
    """503: ask again."""
    with EmbeddedServer(tmp_path) as server:
        async with receiving(server.url) as receiver:
            server.kill()
            answer = await receiver.ring(DAILY)
            assert (answer.status_code, answer.json()["outcome"]) == (503, "refused")
