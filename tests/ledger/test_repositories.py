"""Repositories, decisions, the bot's ids, reports."""

from datetime import timedelta

import redis.asyncio

from ledger.ledger import Ledger
from ledger.records import Report, RepositoryRecord
from tests.ledger.samples import NOON
from triage.policy import JobPolicy


async def test_a_repository_comes_back_as_it_was_saved(ledger: Ledger) -> None:
    """By id, by its present name in any case, by installation, and among all."""
    policy = JobPolicy(labels={"bug": "broken"})
    api = RepositoryRecord(
        id=7, full_name="acme/API", installation="1", policy=policy, backlog_until=NOON
    )
    web = RepositoryRecord(id=8, full_name="acme/Web", installation="2", active=False)
    for record in (web, api):
        await ledger.repositories.save(record)
    assert await ledger.repositories.get(7) == api
    assert await ledger.repositories.get(9) is None
    assert await ledger.repositories.named("ACME/api") == api
    assert await ledger.repositories.all() == [api, web]
    assert await ledger.repositories.of_installation("2") == [8]
    renamed = api.model_copy(update={"full_name": "acme/core"})
    await ledger.repositories.save(renamed)
    assert await ledger.repositories.named("acme/api") is None
    assert await ledger.repositories.named("acme/core") == renamed
    assert await ledger.repositories.all() == [renamed, web]


async def test_a_save_keeps_what_others_changed(ledger: Ledger) -> None:
    """Two read the same record and each changes its own field: both changes stand."""
    was = RepositoryRecord(id=7, full_name="acme/api", installation="1")
    await ledger.repositories.save(was)
    await ledger.repositories.save(was.model_copy(update={"last_window": "2026-09-16"}), was)
    await ledger.repositories.save(was.model_copy(update={"active": False}), was)
    both = was.model_copy(update={"last_window": "2026-09-16", "active": False})
    assert await ledger.repositories.get(7) == both


async def test_nothing_is_known_of_an_empty_ledger(ledger: Ledger) -> None:
    """And nothing fails."""
    assert await ledger.repositories.all() == []
    assert await ledger.repositories.named("acme/api") is None
    assert await ledger.repositories.settled(7, "p1", [1]) == {}
    assert await ledger.repositories.bot_ids() == frozenset()
    assert await ledger.repositories.report("nowhere") is None


async def test_decided_contents_are_remembered(ledger: Ledger, client: redis.asyncio.Redis) -> None:
    """By repository and input version, the newest digest, for one retention."""
    await ledger.repositories.settle(7, "p1", {})
    await ledger.repositories.settle(7, "p1", {1: "a", 2: "b"})
    await ledger.repositories.settle(7, "p1", {2: "c"})
    assert await ledger.repositories.settled(7, "p1", [1, 2, 3]) == {1: "a", 2: "c"}
    assert await ledger.repositories.settled(7, "p1", []) == {}
    assert await ledger.repositories.settled(7, "p2", [1]) == {}
    assert await ledger.repositories.settled(8, "p1", [1]) == {}
    assert await client.ttl("decisions:7:p1") > timedelta(days=89).total_seconds()


async def test_the_bots_ids_are_collected(ledger: Ledger) -> None:
    """Those it has and those it had."""
    for id_ in (41, 42, 42):
        await ledger.repositories.add_bot_id(id_)
    assert await ledger.repositories.bot_ids() == {41, 42}


async def test_a_report_is_kept_by_its_path(ledger: Ledger) -> None:
    """The same window's report replaces it."""
    path = "reports/acme/api/daily-issue-triage/2026-09-16.md"
    for text in ("first", "second\n字"):
        await ledger.repositories.save_report(Report(path, text, "run"))
    assert await ledger.repositories.report(path) == Report(path, "second\n字", "run")
