"""Repositories, decisions, the bot's ids, reports."""

from dataclasses import replace
from datetime import timedelta

import pytest
import redis.asyncio

from ledger.errors import LedgerCorruptError
from ledger.ledger import open_ledger
from ledger.records import Report, RepositoryRecord
from ledger.timing import LedgerTiming
from tests.ledger.places import AnyLedger, Place
from tests.ledger.samples import NOON
from triage.policy import JobPolicy


async def test_a_repository_comes_back_as_it_was_saved(ledger: AnyLedger) -> None:
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


async def test_a_save_keeps_what_others_changed(ledger: AnyLedger) -> None:
    """Two read the same record and each changes its own field: both changes stand."""
    was = RepositoryRecord(id=7, full_name="acme/api", installation="1")
    await ledger.repositories.save(was)
    await ledger.repositories.save(was.model_copy(update={"last_window": "2026-09-16"}), was)
    await ledger.repositories.save(was.model_copy(update={"active": False}), was)
    both = was.model_copy(update={"last_window": "2026-09-16", "active": False})
    assert await ledger.repositories.get(7) == both


async def test_nothing_is_known_of_an_empty_ledger(ledger: AnyLedger) -> None:
    """And nothing fails."""
    assert await ledger.repositories.all() == []
    assert await ledger.repositories.named("acme/api") is None
    assert await ledger.repositories.settled(7, "p1", [1]) == {}
    assert await ledger.repositories.bot_ids() == frozenset()
    assert await ledger.repositories.report("nowhere") is None


async def test_decided_contents_are_remembered(ledger: AnyLedger, place: Place) -> None:
    """By repository and input version, the newest digest, for one retention."""
    await ledger.repositories.settle(7, "p1", {})
    await ledger.repositories.settle(7, "p1", {1: "aa", 2: "bb"})
    await ledger.repositories.settle(7, "p1", {2: "cc"})
    assert await ledger.repositories.settled(7, "p1", [1, 2, 3]) == {1: "aa", 2: "cc"}
    assert await ledger.repositories.settled(7, "p1", []) == {}
    assert await ledger.repositories.settled(7, "p2", [1]) == {}
    assert await ledger.repositories.settled(8, "p1", [1]) == {}
    life = await place.life("decisions:7:p1")
    assert life is not None
    assert timedelta(days=89) < life <= timedelta(days=90)


async def test_the_bots_ids_are_collected(ledger: AnyLedger) -> None:
    """Those it has and those it had."""
    for id_ in (41, 42, 42):
        await ledger.repositories.add_bot_id(id_)
    assert await ledger.repositories.bot_ids() == {41, 42}


async def test_a_report_is_kept_by_its_path(ledger: AnyLedger) -> None:
    """The same window's report takes the place of the one that was read, and of no other: of two
    that read the same one, the second is told. Asked again after a lost reply it is kept."""
    path = "reports/acme/api/daily-issue-triage/2026-09-16.md"
    first, second = Report(path, "first", "run"), Report(path, "second\n字", "another")
    assert await ledger.repositories.save_report(first)
    assert await ledger.repositories.save_report(first)
    assert not await ledger.repositories.save_report(second)
    assert await ledger.repositories.report(path) == first
    assert await ledger.repositories.save_report(second, first)
    assert not await ledger.repositories.save_report(Report(path, "third", "run"), first)
    assert await ledger.repositories.report(path) == second


async def test_a_part_of_a_record_is_no_record(ledger: AnyLedger) -> None:
    """Who saves a change of what was lost meanwhile leaves a part: it cannot be read, until the
    whole is saved."""
    was = RepositoryRecord(id=7, full_name="acme/api", installation="1")
    changed = was.model_copy(update={"last_window": "2026-09-16"})
    await ledger.repositories.save(was, was)
    assert await ledger.repositories.get(7) is None
    await ledger.repositories.save(changed, was)
    for read in (ledger.repositories.get(7), ledger.repositories.named("acme/api")):
        with pytest.raises(LedgerCorruptError):
            await read
    with pytest.raises(LedgerCorruptError):
        await ledger.repositories.all()
    await ledger.repositories.save(was)
    assert await ledger.repositories.get(7) == was


async def test_a_name_leads_to_who_was_last_saved_under_it(ledger: AnyLedger) -> None:
    """Another repository took the name of one that was renamed."""
    old = RepositoryRecord(id=7, full_name="acme/api", installation="1")
    new = RepositoryRecord(id=10, full_name="Acme/API", installation="1")
    await ledger.repositories.save(old)
    await ledger.repositories.save(old.model_copy(update={"full_name": "acme/old"}), old)
    await ledger.repositories.save(new)
    assert await ledger.repositories.named("acme/api") == new
    assert await ledger.repositories.of_installation("1") == [10, 7]


async def test_what_a_report_and_a_decision_are_kept_for(
    ledger: AnyLedger, place: Place, timing: LedgerTiming
) -> None:
    """One retention after the last was saved; then they are not known."""
    short = place.open(replace(timing, retention=timedelta(milliseconds=500))).repositories
    await short.save_report(Report("path", "text", "run"))
    await short.settle(7, "p1", {1: "aa"})
    assert await short.report("path") is not None
    assert await short.settled(7, "p1", [1]) == {1: "aa"}
    await place.pass_time(0.51)
    assert await short.report("path") is None
    assert await short.settled(7, "p1", [1]) == {}
    await ledger.repositories.save_report(Report("path", "text", "run"))
    life = await place.life("report:path")
    assert life is not None
    assert timedelta(days=89) < life <= timedelta(days=90)


async def test_a_decision_may_stand_as_digits(client: redis.asyncio.Redis) -> None:
    """As 64 digits and as 32 bytes, beside each other: both are known."""
    repositories = open_ledger(client, LedgerTiming()).repositories
    await client.hset("decisions:7:p1", "1", "ab" * 32)
    await repositories.settle(7, "p1", {2: "cd" * 32})
    assert await repositories.settled(7, "p1", [1, 2, 3]) == {1: "ab" * 32, 2: "cd" * 32}
