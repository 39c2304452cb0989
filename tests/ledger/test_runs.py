"""Runs: written under the lease, frozen when they are over, found by their indexes."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from ledger.errors import FrozenRunError, LeaseLost, UnknownRunError
from ledger.records import Due, DueKind, Holding
from ledger.timing import LedgerTiming
from tests.ledger.places import AnyLedger, Place
from tests.ledger.samples import (
    NOON,
    OTHER_RUN,
    REPOSITORY,
    RUN,
    claimed,
    effect,
    run,
    snapshot,
    start,
)
from triage.contract import Evidence, RunEffect, Status
from triage.identifiers import JobKey
from triage.plan import Cost, Plan

ACKNOWLEDGED: dict[str, Any] = {"evidence": Evidence.UNSETTLED, "open": False}
CONFIRMED: dict[str, Any] = {"evidence": Evidence.CONFIRMED, "open": False}


async def test_a_run_comes_back_as_it_was_saved(ledger: AnyLedger) -> None:
    """Record and effects, effects in the order in which they were first saved."""
    lease = await start(ledger)
    effects = [effect(issue=number, reason='say "open":true') for number in range(30, 0, -1)]
    await ledger.runs.save_effects(lease, effects)
    later = [item.model_copy(update={"when": NOON, **CONFIRMED}) for item in reversed(effects)]
    await ledger.runs.save_effects(lease, later)
    saved = run(stage="effects", updated_at=NOON + timedelta(minutes=1))
    await ledger.runs.save(lease, saved)
    found = (await ledger.leases.view(RUN)).run
    assert found == saved.model_copy(update={"effects": tuple(reversed(later))})


async def test_snapshot_and_plan_are_written_once(ledger: AnyLedger) -> None:
    """The earlier one wins, and is given back."""
    lease = await start(ledger)
    assert await ledger.runs.save_snapshot(lease, snapshot(fence=1)) == snapshot(fence=1)
    assert await ledger.runs.save_snapshot(lease, snapshot(fence=2)) == snapshot(fence=1)
    assert await ledger.runs.snapshot(RUN) == snapshot(fence=1)
    dear, cheap = (Plan(decisions=(), held=(), cost=Cost(turns=turns)) for turns in (9, 1))
    assert await ledger.runs.save_plan(lease, dear) == dear
    assert await ledger.runs.save_plan(lease, cheap) == dear
    assert await ledger.runs.plan(RUN) == dear


async def test_settled_it_is_over(ledger: AnyLedger, place: Place) -> None:
    """Status, what falls due and the lease in one step; the snapshot keeps no bodies; all expires.

    The same lease may settle again: nothing is counted twice.
    """
    lease = await start(ledger)
    await ledger.runs.save_snapshot(lease, snapshot(body="a long text"))
    await ledger.runs.save_plan(lease, Plan(decisions=(), held=()))
    await ledger.runs.save_effects(lease, [effect(**CONFIRMED)])
    await ledger.due.add(Due(DueKind.CONTINUE, RUN), NOON)
    verify = Due(DueKind.VERIFY, effect().effect_key)
    ended = run(status=Status.COMPLETED, cost=Cost(estimated_usd=0.25, turns=3))
    for _ in range(2):
        await ledger.runs.settle(lease, ended, {verify: NOON})
    look = await ledger.leases.view(RUN)
    assert look.run == ended.model_copy(update={"effects": (effect(**CONFIRMED),)})
    assert not look.lease.live
    kept = await ledger.runs.snapshot(RUN)
    assert kept is not None
    assert kept.issues[0].body == ""
    assert kept.issues[0].content_digest == snapshot().issues[0].content_digest
    assert await ledger.due.upcoming() == [(verify, NOON)]
    for key in (f"run:{RUN}", f"snapshot:{RUN}", f"plan:{RUN}"):
        life = await place.life(key)
        assert life is not None
        assert timedelta(days=89) < life <= timedelta(days=90)
    counts = await ledger.counters.snapshot()
    assert counts.attempts == {"completed": 1}
    assert counts.effects["confirmed"] == 1
    assert counts.cost == {"estimated_usd": 0.25, "turns": 3}
    assert set(counts.completed) == {("acme/API", "daily-issue-triage")}


async def test_an_unfinished_run_never_expires(ledger: AnyLedger, place: Place) -> None:
    """It keeps its bodies too."""
    lease = await start(ledger)
    await ledger.runs.save_snapshot(lease, snapshot())
    await ledger.runs.settle(lease, run(status=Status.NEEDS_REVIEW), {})
    assert await place.life(f"run:{RUN}") is None
    assert await place.life(f"snapshot:{RUN}") is None
    assert await ledger.runs.snapshot(RUN) == snapshot()


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.NO_CHANGE])
async def test_what_is_over_stays(ledger: AnyLedger, status: Status) -> None:
    """Neither status nor evidence of a completed or no-change run changes, under any lease."""
    lease = await start(ledger)
    await ledger.runs.save_effects(lease, [effect(**CONFIRMED)])
    await ledger.runs.settle(lease, run(status=status), {})
    again = await ledger.leases.acquire(RUN, "worker-2", "again")
    assert again is not None
    with pytest.raises(FrozenRunError):
        await ledger.runs.save(again, run(status=Status.RUNNING))
    with pytest.raises(FrozenRunError):
        await ledger.runs.settle(again, run(status=Status.NEEDS_REVIEW), {})
    with pytest.raises(FrozenRunError):
        await ledger.runs.save_effects(again, [effect(evidence=Evidence.CONFLICT)])
    with pytest.raises(FrozenRunError):
        await claimed(ledger, again, effect())
    await ledger.runs.settle(again, run(status=status, reason="verified"), {})
    found = (await ledger.leases.view(RUN)).run
    assert found is not None
    assert (found.status, found.reason) == (status, "verified")
    assert found.effects == (effect(**CONFIRMED),)


async def test_a_late_acknowledgement_does_not_thaw_a_run(ledger: AnyLedger) -> None:
    """Evidence of a run that is over stays; the id is kept for all, and nobody holds the effect."""
    lease = await start(ledger)
    claim = await claimed(ledger, lease, effect())
    await ledger.runs.settle(lease, run(status=Status.COMPLETED), {})
    landed = claim.effect.model_copy(update={**CONFIRMED, "github_id": 5})
    await ledger.effects.acknowledge(claim, landed)
    found = (await ledger.leases.view(RUN)).run
    assert found is not None
    assert found.effects[0].evidence is Evidence.UNSETTLED
    shared = (await ledger.effects.get([effect().effect_key]))[effect().effect_key]
    assert (shared.github_id, shared.holder) == (5, "")


async def test_evidence_needs_a_run(ledger: AnyLedger) -> None:
    """Effects are not saved, nor claimed, for a run that was never saved."""
    lease = await ledger.leases.acquire(RUN, "worker-1", "token")
    assert lease is not None
    with pytest.raises(UnknownRunError):
        await ledger.runs.save_effects(lease, [effect()])
    with pytest.raises(UnknownRunError):
        await claimed(ledger, lease, effect())
    with pytest.raises(ValueError, match="the lease is for"):
        await ledger.runs.save(lease, run(OTHER_RUN))


@pytest.mark.parametrize(
    ("evidence", "holding"),
    [
        (Evidence.CONFIRMED, None),
        (Evidence.ABSENT, None),
        (Evidence.SKIPPED, None),
        (Evidence.UNSETTLED, Holding.UNSETTLED),
        (ACKNOWLEDGED, None),
        (Evidence.CONFLICT, Holding.REVIEW),
    ],
)
async def test_what_evidence_means_for_all_runs(
    ledger: AnyLedger, evidence: Evidence | dict[str, Any], holding: Holding | None
) -> None:
    """Only doubt and conflict keep the effect with its run; what GitHub acknowledged is written."""
    lease = await start(ledger)
    claim = await claimed(ledger, lease, effect())
    changed = evidence if isinstance(evidence, dict) else {"evidence": evidence}
    saved = claim.effect.model_copy(update=changed)
    await ledger.runs.save_effects(lease, [saved])
    shared = (await ledger.effects.get([saved.effect_key]))[saved.effect_key]
    assert shared.holding is holding
    assert shared.holder == (RUN if holding else "")
    assert (shared.repository_id, shared.issue_id, shared.issue) == (REPOSITORY, 1001, 1)
    wrote = evidence in (Evidence.CONFIRMED, ACKNOWLEDGED)
    assert (shared.writer, shared.digest) == ((RUN, saved.digest) if wrote else ("", ""))


async def test_what_was_sent_stays_sent(ledger: AnyLedger) -> None:
    """An older copy of an effect does not erase a send."""
    lease = await start(ledger)
    claim = await claimed(ledger, lease, effect())
    await ledger.runs.save_effects(lease, [effect()])
    found = (await ledger.leases.view(RUN)).run
    assert found is not None
    assert (found.effects[0].sends, found.effects[0].sent_at) == (1, claim.effect.sent_at)


async def test_another_runs_effect_is_not_taken(ledger: AnyLedger) -> None:
    """Evidence of one run does not end what another holds."""
    lease = await start(ledger)
    await claimed(ledger, lease, effect())
    other = await start(ledger, OTHER_RUN, "other")
    for evidence in Evidence:
        await ledger.runs.save_effects(other, [effect(evidence=evidence, open=True)])
        shared = (await ledger.effects.get([effect().effect_key]))[effect().effect_key]
        assert (shared.holder, shared.holding) == (RUN, Holding.CLAIMED)


@pytest.mark.parametrize(
    ("outcome", "delayed", "claimed_after"),
    [
        (CONFIRMED, False, False),
        ({"evidence": Evidence.ABSENT, "open": False}, False, False),
        (ACKNOWLEDGED, False, True),
        ({"reason": "no answer"}, False, True),
        (None, True, True),
    ],
)
async def test_a_clean_end_forgets_what_was_settled(
    ledger: AnyLedger, outcome: dict[str, Any] | None, delayed: bool, claimed_after: bool
) -> None:
    """The next attempt starts with what is still unsettled as claimed, and no more; only a claim
    whose outcome was never recorded keeps the lock delay."""
    lease = await start(ledger)
    claim = await claimed(ledger, lease, effect())
    if outcome is not None:
        await ledger.effects.acknowledge(claim, claim.effect.model_copy(update=outcome))
    assert await _claimed(ledger)
    await ledger.runs.settle(lease, run(status=Status.FAILED_AFTER_WRITE), {})
    assert await _claimed(ledger) is claimed_after
    assert (await ledger.leases.acquire(RUN, "worker-2", "next") is None) is delayed


async def _claimed(ledger: AnyLedger) -> bool:
    found = (await ledger.leases.view(RUN)).run
    assert found is not None
    return found.claimed


async def test_indexes_follow_the_status(ledger: AnyLedger) -> None:
    """By status, by repository (in any case), by window; newest or oldest first."""
    early, late = f"{RUN}:forced-1", f"{RUN}:forced-2"
    for key, minute in ((late, 2), (early, 1)):
        lease = await ledger.leases.acquire(key, "worker-1", key)
        assert lease is not None
        saved = run(key, created_at=NOON + timedelta(minutes=minute))
        await ledger.runs.save(lease, saved)
        if key == late:
            await ledger.runs.settle(lease, saved.model_copy(update={"status": Status.WAITING}), {})
    await start(ledger, OTHER_RUN, "other")

    async def keys(**given: object) -> list[str]:
        return [str(item.key) for item in await ledger.runs.listed(**given)]  # type: ignore[arg-type]

    assert await keys() == [late, early, OTHER_RUN]
    assert await keys(limit=1) == [late]
    assert await keys(status=Status.RUNNING) == [early, OTHER_RUN]
    assert await keys(status=Status.WAITING, repository="ACME/api") == [late]
    assert await keys(repository="acme/api") == [late, early, OTHER_RUN]
    assert await keys(repository="acme/web") == []
    assert await keys(job=JobKey.DAILY, limit=2) == [late, early]
    assert await keys(job=JobKey.DAILY, status=Status.WAITING) == [late]
    assert await keys(job=JobKey.REVIEW) == []
    window = await ledger.runs.of_window(REPOSITORY, JobKey.DAILY, "2026-09-16")
    assert [str(item.key) for item in window] == [early, late]


async def test_expired_runs_leave_the_indexes(place: Place, timing: LedgerTiming) -> None:
    """A run that is settled later sweeps them out."""
    brief = place.open(replace(timing, retention=timedelta(milliseconds=20)))
    await brief.epochs.ensure(first=True)
    lease = await start(brief)
    await brief.runs.settle(lease, run(status=Status.NO_CHANGE), {})
    await place.pass_time(0.03)
    assert await brief.runs.listed() == []
    other = await start(brief, OTHER_RUN, "other")
    await brief.runs.settle(other, run(OTHER_RUN, status=Status.WAITING), {})
    assert await place.indexes_of(RUN) == []
    with pytest.raises(KeyError):
        await place.life(f"lease:{RUN}")
    assert [str(item.key) for item in await brief.runs.listed()] == [OTHER_RUN]


async def test_a_status_needs_the_lease(ledger: AnyLedger) -> None:
    """Nobody else's lease, and not the one that was just settled."""
    lease = await start(ledger)
    await ledger.runs.settle(lease, run(status=Status.WAITING), {})
    with pytest.raises(LeaseLost):
        await ledger.runs.save(lease, run())
    found = (await ledger.leases.view(RUN)).run
    assert found is not None
    assert found.status is Status.WAITING


async def test_cost_is_counted_once(ledger: AnyLedger) -> None:
    """A run's cost grows over its attempts; the counters take the difference."""
    lease = await start(ledger)
    for turns in (2, 2, 5):
        await ledger.runs.save(lease, run(cost=Cost(turns=turns, estimated_usd=turns / 100)))
    cost = (await ledger.counters.snapshot()).cost
    assert cost["turns"] == 5
    assert cost["estimated_usd"] == pytest.approx(0.05)


async def test_an_outcome_costs_the_same_in_a_large_run(ledger: AnyLedger, place: Place) -> None:
    """A hundred effects, each its own field, none rewritten by the others."""
    lease = await start(ledger)
    await ledger.runs.save_effects(lease, [effect(issue=number) for number in range(1, 101)])
    claim = await claimed(ledger, lease, effect(issue=50))
    landed = claim.effect.model_copy(update={**CONFIRMED, "github_id": 5})
    await ledger.effects.acknowledge(claim, landed)
    found = (await ledger.leases.view(RUN)).run
    assert found is not None
    changed = [item for item in found.effects if item.evidence is not Evidence.ABSENT]
    assert changed == [found.effects[49]]
    assert isinstance(found.effects[49], RunEffect)
    assert found.effects[49].sent_at is not None
    assert abs(found.effects[49].sent_at - await place.now()) < timedelta(seconds=5)


@pytest.mark.parametrize("window", ["comment-5", "opened-5", "duplicate-5"])
async def test_a_window_that_somebody_asked_for_completes_nothing(
    ledger: AnyLedger, window: str
) -> None:
    """It says nothing of the schedule."""
    key = f"issue-retriage:R{REPOSITORY}:{window}:p0000000a"
    lease = await start(ledger, key)
    await ledger.runs.settle(lease, run(key, status=Status.COMPLETED), {})
    assert (await ledger.counters.snapshot()).completed == {}


async def test_what_falls_due_at_the_end_of_an_attempt(ledger: AnyLedger) -> None:
    """The run itself only where that is said; others are put there or moved, or stand."""
    here, there = Due(DueKind.CONTINUE, RUN), Due(DueKind.CONTINUE, OTHER_RUN)
    sample = Due(DueKind.SAMPLE, "a")
    for due in (here, there, sample):
        await ledger.due.add(due, NOON)
    lease = await start(ledger)
    later = NOON + timedelta(microseconds=1_499)
    await ledger.runs.settle(lease, run(status=Status.WAITING), {sample: later})
    moved = NOON + timedelta(milliseconds=1)
    assert await ledger.due.upcoming() == [(there, NOON), (sample, moved)]
    lease = await start(ledger, token="again")
    await ledger.runs.settle(lease, run(status=Status.WAITING), {here: later})
    assert dict(await ledger.due.upcoming()) == {there: NOON, sample: moved, here: moved}


async def test_a_renamed_repositorys_run_is_found_under_both_names(ledger: AnyLedger) -> None:
    """Under the new one since its status changed there; under the old one as it was."""
    lease = await start(ledger)
    inputs = run().inputs.model_copy(update={"repository": "acme/core"})
    for status in (Status.RUNNING, Status.WAITING):
        await ledger.runs.save(lease, run(status=status).model_copy(update={"inputs": inputs}))
    assert len(await ledger.runs.listed(repository="acme/api")) == 1
    assert len(await ledger.runs.listed(Status.RUNNING, "acme/api")) == 1
    assert await ledger.runs.listed(Status.RUNNING, "acme/core") == []
    assert len(await ledger.runs.listed(Status.WAITING, "acme/core")) == 1
    assert await ledger.runs.listed(repository="acme/core") == []
    assert await ledger.runs.listed(Status.RUNNING) == []


async def test_expired_it_may_begin_anew(place: Place, timing: LedgerTiming) -> None:
    """Nothing of it stands: neither plan nor snapshot nor what was claimed."""
    brief = place.open(replace(timing, retention=timedelta(milliseconds=30)))
    await brief.epochs.ensure(first=True)
    lease = await start(brief)
    await brief.runs.save_snapshot(lease, snapshot(fence=1))
    await brief.runs.save_plan(lease, Plan(decisions=(), held=()))
    await brief.runs.settle(lease, run(status=Status.COMPLETED), {})
    await place.pass_time(0.04)
    assert (await brief.leases.view(RUN)).run is None
    assert await brief.runs.of_window(REPOSITORY, JobKey.DAILY, "2026-09-16") == []
    assert await brief.runs.snapshot(RUN) is None
    assert await brief.runs.plan(RUN) is None
    lease = await start(brief, token="again")
    assert await brief.runs.save_snapshot(lease, snapshot(fence=2)) == snapshot(fence=2)
    found = await brief.runs.listed(Status.RUNNING)
    assert [str(item.key) for item in found] == [RUN]


async def test_ten_expired_runs_are_swept_at_once(place: Place, timing: LedgerTiming) -> None:
    """The oldest first; the rest at the next end of an attempt."""
    brief = place.open(replace(timing, retention=timedelta(milliseconds=20)))
    await brief.epochs.ensure(first=True)
    keys = [f"{RUN}:forced-{number:02}" for number in range(12)]
    leases = [await start(brief, key, key) for key in keys]
    for key, lease in zip(keys, leases, strict=True):
        await brief.runs.save(lease, run(key, status=Status.COMPLETED))
        await place.pass_time(0.002)
    await place.pass_time(0.03)
    other = await start(brief, OTHER_RUN, "other")
    for left in (keys[10:], []):
        await brief.runs.settle(other, run(OTHER_RUN, status=Status.WAITING), {})
        assert [key for key in keys if await place.indexes_of(key)] == left
        other = await start(brief, OTHER_RUN, "next")


async def test_no_run_is_completed_on_evidence_that_is_not_there(ledger: AnyLedger) -> None:
    """A replica that was promoted may know the lease, and lack what was saved last: nothing is
    frozen there, and nothing of the run changes."""
    lease = await start(ledger)
    seen = effect(**CONFIRMED)
    await ledger.runs.save_effects(lease, [seen.model_copy(update=ACKNOWLEDGED)])
    ended = run(status=Status.COMPLETED).model_copy(update={"effects": (seen,)})
    with pytest.raises(LeaseLost):
        await ledger.runs.settle(lease, ended, {})
    found = (await ledger.leases.view(RUN)).run
    assert found is not None
    assert found.status is Status.RUNNING
    await ledger.runs.save_effects(lease, [seen])
    await ledger.runs.settle(lease, ended, {})
    assert [item.key for item in await ledger.runs.listed(Status.COMPLETED)] == [ended.key]
