"""Health, readiness and metrics over real HTTP."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from bot.enqueue import SAFE_SETTINGS
from bot.health import LedgerMetrics
from ledger.connection import connect_sync
from ledger.counters import Counts
from ledger.server import EmbeddedServer
from tests.bot.receiver import Receiver, command, receiving
from triage.contract import Status

Samples = dict[tuple[str, ...], float]


def samples_of(text: str) -> Samples:
    """Name and label values of each sample, as Prometheus reads them."""
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def metrics(receiver: Receiver) -> Samples:
    """What Prometheus gets."""
    answer = await receiver.client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return samples_of(answer.text)


async def test_alive_and_ready(receiver: Receiver) -> None:
    """With what waits in the queue."""
    assert (await receiver.client.get("/healthz")).json() == {"alive": True}
    assert (await receiver.client.get("/readyz")).json() == {"ready": True, "waiting": 0}
    await receiver.deliver(command())
    assert (await receiver.client.get("/readyz")).json() == {"ready": True, "waiting": 1}


@pytest.mark.parametrize(
    ("name", "value"),
    [("appendonly", "no"), ("appendfsync", "everysec"), ("maxmemory-policy", "allkeys-lru")],
)
async def test_a_redis_that_may_lose_writes(receiver: Receiver, name: str, value: str) -> None:
    """503, naming the setting and what it should be."""
    safe = SAFE_SETTINGS[name]
    with connect_sync(receiver.redis_url) as client:
        client.config_set(name, value)
        try:
            answer = await receiver.client.get("/readyz")
        finally:
            client.config_set(name, safe)
    assert answer.status_code == 503
    assert answer.json() == {"ready": False, "problems": [f"{name} is {value!r}, not {safe!r}"]}
    assert (await receiver.client.get("/readyz")).status_code == 200


async def test_a_redis_that_hides_its_settings(tmp_path: Path) -> None:
    """As hosted ones do: what it tells elsewhere is looked at."""
    with EmbeddedServer(tmp_path) as server, connect_sync(server.url) as client:
        client.acl_setuser(
            "app", enabled=True, passwords=["+pw"], keys=["*"], commands=["+@all", "-config"]
        )
        async with receiving(server.url.replace("unix://", "unix://app:pw@")) as receiver:
            assert (await receiver.client.get("/readyz")).status_code == 200
            client.config_set("maxmemory-policy", "volatile-ttl")
            answer = await receiver.client.get("/readyz")
            assert answer.json()["problems"] == [
                "maxmemory-policy is 'volatile-ttl', not 'noeviction'"
            ]


async def test_redis_gone(tmp_path: Path) -> None:
    """Alive, not ready; the metrics say which."""
    with EmbeddedServer(tmp_path) as server:
        async with receiving(server.url) as receiver:
            server.kill()
            assert (await receiver.client.get("/healthz")).status_code == 200
            answer = await receiver.client.get("/readyz")
            assert answer.status_code == 503
            assert answer.json() == {"ready": False, "problems": ["Redis is out of reach"]}
            await receiver.deliver(command())
            samples = await metrics(receiver)
            assert samples["retriage_ledger_up",] == 0
            assert samples["retriage_deliveries_total", "refused"] == 1
            assert ("retriage_queue_jobs",) not in samples


def test_what_is_counted() -> None:
    """Everything that an alert or a bill hangs on."""
    at = datetime(2026, 9, 16, 1, 2, 3, tzinfo=UTC)
    counts = Counts(
        runs_now={Status.COMPLETED: 5, Status.NEEDS_REVIEW: 1},
        attempts={"completed": 6},
        effects={"confirmed": 30, "skipped": 2},
        requests={"read": 70, "write": 30},
        incidents={"duplicate-comment": 1},
        cost={"estimated_usd": 0.31, "turns": 9},
        completed={("acme/api", "daily-issue-triage"): at},
        due=4,
        recalled={("acme/api", "nightly-repo-review"): 0.75},
        broken_links=2,
        denials=3,
    )
    registry = CollectorRegistry()
    registry.register(LedgerMetrics(counts, waiting=3))
    job = ("daily-issue-triage", "acme/api")
    assert samples_of(generate_latest(registry).decode()) == {
        ("retriage_ledger_up",): 1,
        ("retriage_runs", "completed"): 5,
        ("retriage_runs", "needs-review"): 1,
        ("retriage_attempts_total", "completed"): 6,
        ("retriage_effects_total", "confirmed"): 30,
        ("retriage_effects_total", "skipped"): 2,
        ("retriage_incidents_total", "duplicate-comment"): 1,
        ("retriage_github_requests_total", "read"): 70,
        ("retriage_github_requests_total", "write"): 30,
        ("retriage_model_cost_estimated_usd_total",): 0.31,
        ("retriage_model_usage_total", "turns"): 9,
        ("retriage_review_recall_ratio", "nightly-repo-review", "acme/api"): 0.75,
        ("retriage_resume_link_broken_total",): 2,
        ("retriage_agent_denials_total",): 3,
        ("retriage_queue_jobs",): 3,
        ("retriage_due",): 4,
        ("retriage_last_completed_window_timestamp", *job): at.timestamp(),
    }


async def test_what_the_ledger_counts_is_shown(receiver: Receiver) -> None:
    """Read anew for each request."""
    await receiver.link.ledger.counters.requests("read", 7)
    await receiver.link.ledger.counters.incident("duplicate-comment", "issue 1")
    await receiver.deliver(command())
    samples = await metrics(receiver)
    assert samples["retriage_ledger_up",] == 1
    assert samples["retriage_github_requests_total", "read"] == 7
    assert samples["retriage_incidents_total", "duplicate-comment"] == 1
    assert samples["retriage_queue_jobs",] == 1
    assert samples["retriage_deliveries_total", "accepted"] >= 1


async def test_each_runs_status_is_there_from_the_start(receiver: Receiver) -> None:
    """Zero is a number to alert on; nothing is not."""
    samples = await metrics(receiver)
    assert {key[1] for key in samples if key[0] == "retriage_runs"} == {
        "queued",
        "running",
        "waiting",
        "completed",
        "no-change",
        "failed-before-write",
        "failed-after-write",
        "needs-review",
    }
