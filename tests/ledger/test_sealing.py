"""A run that is over stands as one packed value, and reads as it did before."""

import asyncio

import redis.asyncio

from ledger.codec import text
from ledger.connection import connect
from ledger.ledger import open_ledger
from ledger.runs import Runs
from ledger.sealing import is_sealed, sealed, unsealed
from ledger.timing import LedgerTiming
from tests.ledger.samples import NOON, REPOSITORY, RUN, effect, run, start
from triage.contract import Evidence, RunEffect, RunRecord, Status
from triage.identifiers import EffectKind, Family, effect_key

WINDOW_SUMMARY = effect_key(REPOSITORY, 0, Family.TRIAGE, EffectKind.SUMMARY, "2026-09-16")
ROLLING_SUMMARY = effect_key(REPOSITORY, 0, Family.TRIAGE, EffectKind.SUMMARY)


def _effects() -> tuple[RunEffect, ...]:
    """Comments and labels on 50 issues, and the summary of the window."""
    on_issues = [
        effect(kind, issue=number, evidence=Evidence.CONFIRMED, github_id=number * 7, when=NOON)
        for number in range(1, 51)
        for kind in (EffectKind.COMMENT, EffectKind.LABELS)
    ]
    return (*on_issues, _summary(WINDOW_SUMMARY))


def _summary(key: str) -> RunEffect:
    return RunEffect(
        effect_key=key,
        kind=EffectKind.SUMMARY,
        issue=60,
        issue_id=0,
        evidence=Evidence.CONFIRMED,
        url="https://github.com/acme/api/issues/60",
    )


def test_it_reads_as_it_was_packed() -> None:
    """Every field, keys included that do not follow from run and effect: of a rolling summary, and
    of one that an older version might have written."""
    others = (_summary(ROLLING_SUMMARY), _summary("f" * 64))
    whole = run(status=Status.COMPLETED, effects=(*_effects(), *others), reason="ünïcode")
    assert unsealed(text(sealed(whole))) == whole


def test_it_takes_a_fraction_of_the_room() -> None:
    """Keys that follow from the run are not packed at all: they would be half of it."""
    whole = run(status=Status.COMPLETED, effects=_effects())
    assert len(sealed(whole)) * 10 < len(whole.model_dump_json())


async def test_a_completed_run_is_sealed(redis_url: str) -> None:
    """No evidence is left beside the record, the shared records keep what they know, and whoever
    saves it again leaves it whole."""
    async with connect(redis_url) as client:
        ledger = open_ledger(client, LedgerTiming())
        await ledger.epochs.ensure(first=True)
        lease = await start(ledger)
        await ledger.runs.save_effects(lease, _effects())
        before = await ledger.effects.get([item.effect_key for item in _effects()])
        whole = run(status=Status.COMPLETED, effects=_effects())
        await ledger.runs.settle(lease, whole, {})
        assert is_sealed(text(await client.hget(f"run:{RUN}", "record")))
        assert await _evidence_fields(client) == []
        assert await ledger.runs.listed() == [whole]
        assert await ledger.effects.get([item.effect_key for item in _effects()]) == before
        again = await ledger.leases.acquire(RUN, "worker-2", "again")
        assert again is not None
        verified = whole.model_copy(update={"reason": "verified"})
        await ledger.runs.settle(again, verified, {})
        assert (await ledger.leases.view(RUN)).run == verified


class Slow(Runs):
    """Runs whose end is delayed between what is read for it and its script."""

    def __init__(self, client: redis.asyncio.Redis) -> None:
        super().__init__(client, LedgerTiming())
        self.has_read = asyncio.Event()
        self.may_write = asyncio.Event()

    async def _for_good(self, run: RunRecord) -> tuple[bytes, bytes, str]:
        kept = await super()._for_good(run)
        self.has_read.set()
        await self.may_write.wait()
        return kept


async def test_a_late_end_leaves_the_evidence(redis_url: str) -> None:
    """It read the run before another end of the same attempt sealed it, and comes after that."""
    async with connect(redis_url) as client:
        ledger, slow = open_ledger(client, LedgerTiming()), Slow(client)
        await ledger.epochs.ensure(first=True)
        lease = await start(ledger)
        await ledger.runs.save_effects(lease, _effects())
        whole = run(status=Status.COMPLETED, effects=_effects())
        late = asyncio.create_task(slow.save(lease, whole))
        await slow.has_read.wait()
        await ledger.runs.save(lease, whole)
        slow.may_write.set()
        await late
        assert (await ledger.leases.view(RUN)).run == whole


async def test_an_unfinished_run_is_not(redis_url: str) -> None:
    """Its evidence is written effect by effect."""
    async with connect(redis_url) as client:
        ledger = open_ledger(client, LedgerTiming())
        await ledger.epochs.ensure(first=True)
        lease = await start(ledger)
        await ledger.runs.save_effects(lease, _effects())
        await ledger.runs.settle(lease, run(status=Status.NEEDS_REVIEW, effects=_effects()), {})
        assert not is_sealed(text(await client.hget(f"run:{RUN}", "record")))
        assert len(await _evidence_fields(client)) == len(_effects())


async def _evidence_fields(client: redis.asyncio.Redis) -> list[str]:
    names = [text(name) for name in await client.hkeys(f"run:{RUN}")]
    return [name for name in names if name.startswith("e:")]
