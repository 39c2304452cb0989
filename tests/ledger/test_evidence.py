"""What evidence means for the record that all runs share, rule by rule."""

import contextlib
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from ledger.errors import LeaseLost
from ledger.records import Claim, EffectRecord, Holding, Lease, Unclaimed
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
from triage.identifiers import EffectKind

COMMENT = effect()
LABELS = effect(EffectKind.LABELS)
UNLABEL = effect(EffectKind.UNLABEL)
ACKNOWLEDGED: dict[str, Any] = {"evidence": Evidence.UNSETTLED, "open": False}
CONFIRMED: dict[str, Any] = {"evidence": Evidence.CONFIRMED, "open": False}


async def shared(ledger: AnyLedger, what: RunEffect = COMMENT) -> EffectRecord:
    """The record of an effect that must be known."""
    return (await ledger.effects.get([what.effect_key]))[what.effect_key]


async def in_run(ledger: AnyLedger, what: RunEffect = COMMENT, key: str = RUN) -> RunEffect | None:
    """The effect as a run holds it."""
    found = (await ledger.leases.view(key)).run
    assert found is not None
    return {item.effect_key: item for item in found.effects}.get(what.effect_key)


async def save(ledger: AnyLedger, lease: Lease, what: RunEffect = COMMENT, **fields: Any) -> None:
    """Save an effect with these fields."""
    await ledger.runs.save_effects(lease, [what.model_copy(update=fields)])


@pytest.mark.parametrize(
    ("fields", "holding"),
    [
        ({"evidence": Evidence.CONFLICT}, Holding.REVIEW),
        ({"evidence": Evidence.UNSETTLED, "open": True}, Holding.UNSETTLED),
        (ACKNOWLEDGED, None),
    ],
)
async def test_doubt_holds_what_nobody_held(
    ledger: AnyLedger, fields: dict[str, Any], holding: Holding | None
) -> None:
    """Without a claim, too; and no other run takes it over."""
    lease = await start(ledger)
    await save(ledger, lease, **fields)
    record = await shared(ledger)
    assert (record.holding, record.holder) == (holding, RUN if holding else "")
    other = await start(ledger, OTHER_RUN, "other")
    await save(ledger, other, evidence=Evidence.CONFLICT)
    record = await shared(ledger)
    if holding is None:
        assert (record.holding, record.holder) == (Holding.REVIEW, OTHER_RUN)
    else:
        assert (record.holding, record.holder) == (holding, RUN)


async def test_a_conflict_closes_its_claim_and_a_doubt_leaves_it_open(ledger: AnyLedger) -> None:
    """A doubt may still be ended by whoever sent it."""
    lease = await start(ledger)
    claim = await claimed(ledger, lease, COMMENT)
    await save(ledger, lease, claim.effect)
    assert await ledger.effects.stands(COMMENT.effect_key, "op-1")
    await save(ledger, lease, claim.effect, evidence=Evidence.CONFLICT, open=False)
    assert not await ledger.effects.stands(COMMENT.effect_key, "op-1")
    await ledger.effects.acknowledge(claim, claim.effect.model_copy(update=CONFIRMED))
    assert (await shared(ledger)).holding is Holding.REVIEW


async def test_a_persons_decision_starts_sends_anew(ledger: AnyLedger) -> None:
    """The reason resolved writes what it says; any other keeps what was sent."""
    lease = await start(ledger)
    claim = await claimed(ledger, lease, COMMENT)
    await save(ledger, lease, COMMENT, evidence=Evidence.ABSENT)
    kept = await in_run(ledger)
    assert kept is not None
    assert (kept.sends, kept.sent_at) == (1, claim.effect.sent_at)
    for number in range(2):
        await ledger.effects.add_sample(COMMENT.effect_key, NOON + timedelta(seconds=number))
    await save(ledger, lease, COMMENT, evidence=Evidence.ABSENT, reason="resolved")
    anew = await in_run(ledger)
    assert anew is not None
    assert (anew.sends, anew.sent_at) == (0, None)
    assert (await shared(ledger)).samples == ()
    assert (await claimed(ledger, lease, COMMENT, "op-2")).effect.sends == 1


async def test_a_second_send_keeps_the_time_of_the_first(ledger: AnyLedger, place: Place) -> None:
    """The twenty-four hours of a doubt run from there."""
    lease = await start(ledger)
    first = await claimed(ledger, lease, LABELS)
    await place.pass_time(0.005)
    second = await claimed(ledger, lease, LABELS, "op-2", resend=True)
    assert (second.effect.sends, second.effect.sent_at) == (2, first.effect.sent_at)
    record = await shared(ledger, LABELS)
    assert record.claimed_at is not None
    assert first.effect.sent_at is not None
    assert record.claimed_at > first.effect.sent_at


async def test_what_is_there_without_a_send_has_no_writer(ledger: AnyLedger) -> None:
    """Its digest is kept, an empty one is none; so is its issue, and 0 is none."""
    lease = await start(ledger)
    await save(ledger, lease, github_id=5, url="u", **CONFIRMED)
    record = await shared(ledger)
    assert (record.digest, record.writer, record.writer_fence) == (COMMENT.digest, "", 0)
    await save(ledger, lease, digest="", issue=0, **CONFIRMED)
    record = await shared(ledger)
    assert (record.digest, record.issue, record.github_id) == (COMMENT.digest, 1, 5)
    await save(ledger, lease, digest="", evidence=Evidence.ABSENT)
    assert (await shared(ledger)).digest == COMMENT.digest


async def test_an_address_belongs_to_its_id(ledger: AnyLedger) -> None:
    """The same id may have another address, an empty one is none; a higher id changes nothing."""
    lease = await start(ledger)
    for github_id, url in ((5, "a"), (5, "b"), (5, ""), (9, "c")):
        await save(ledger, lease, github_id=github_id, url=url, **CONFIRMED)
    assert ((await shared(ledger)).github_id, (await shared(ledger)).url) == (5, "b")
    await ledger.effects.note_hit(COMMENT.effect_key, 5, "d", "")
    record = await shared(ledger)
    assert (record.url, record.digest, record.issue) == ("d", COMMENT.digest, 1)
    await ledger.effects.note_hit(COMMENT.effect_key, 4, "", "", issue=3)
    record = await shared(ledger)
    assert (record.github_id, record.url, record.issue) == (4, "", 3)


async def test_a_hit_of_an_unknown_effect_is_kept(ledger: AnyLedger) -> None:
    """Its id does not lead to it until its repository is known."""
    await ledger.effects.note_hit(COMMENT.effect_key, 5, "u", "x")
    assert await shared(ledger) == EffectRecord(
        effect_key=COMMENT.effect_key, github_id=5, url="u", digest="x"
    )
    assert await ledger.effects.by_github_id(REPOSITORY, 5) is None


async def test_a_label_of_an_unknown_effect_is_taken_off_nothing(ledger: AnyLedger) -> None:
    """No record of it comes of that."""
    lease = await start(ledger)
    claim = await claimed(ledger, lease, UNLABEL)
    await ledger.effects.acknowledge(claim, claim.effect.model_copy(update=ACKNOWLEDGED))
    assert list(await ledger.effects.get([LABELS.effect_key, UNLABEL.effect_key])) == [
        UNLABEL.effect_key
    ]


async def test_an_outcome_of_an_expired_run_frees_its_effect(
    place: Place, timing: LedgerTiming
) -> None:
    """Acknowledged: the id is kept. Withdrawn: it is as before. Nobody holds it."""
    brief = place.open(replace(timing, retention=timedelta(milliseconds=30)))
    await brief.epochs.ensure(first=True)
    lease = await start(brief)
    landed = await claimed(brief, lease, COMMENT)
    unsent = await claimed(brief, lease, LABELS, "op-2")
    await brief.runs.settle(lease, run(status=Status.COMPLETED), {})
    await place.pass_time(0.04)
    done = landed.effect.model_copy(update={**CONFIRMED, "github_id": 5})
    await brief.effects.acknowledge(landed, done)
    await brief.effects.withdraw(unsent)
    assert (await brief.leases.view(RUN)).run is None
    comment, labels = await shared(brief), await shared(brief, LABELS)
    assert (comment.holder, comment.github_id, comment.sends, comment.writer) == ("", 5, 1, "")
    assert (labels.holder, labels.sends) == ("", 0)
    assert not await brief.effects.stands(COMMENT.effect_key, "op-1")


async def test_withdrawn_after_the_end_it_is_undone(ledger: AnyLedger) -> None:
    """The next attempt has nothing claimed, and the lease no delay of it."""
    lease = await start(ledger)
    claim = await claimed(ledger, lease, COMMENT)
    await ledger.runs.settle(lease, run(status=Status.FAILED_AFTER_WRITE), {})
    assert await ledger.leases.acquire(RUN, "worker-2", "next") is None
    await ledger.effects.withdraw(claim)
    found = (await ledger.leases.view(RUN)).run
    assert found is not None
    assert (found.claimed, found.effects) == (False, ())
    assert await ledger.leases.acquire(RUN, "worker-2", "next") is not None


async def test_a_withdrawn_claim_of_a_removed_label_takes_only_its_own(ledger: AnyLedger) -> None:
    """What was removed besides stays removed; a forced claim makes the others free."""
    for label in ("bug", "question"):
        await ledger.effects.note_removed_label(LABELS.effect_key, label)
    forced = await start(ledger, f"{RUN}:forced-1", "forced", force=True)
    claim = await claimed(ledger, forced, LABELS)
    assert (await shared(ledger, LABELS)).removed_labels == ("question",)
    await ledger.effects.withdraw(claim)
    assert (await shared(ledger, LABELS)).removed_labels == ("bug", "question")


async def test_a_snapshot_of_the_same_fence_is_not_superseded(ledger: AnyLedger) -> None:
    """Only one with a higher fence is later."""
    lease = await start(ledger)
    claim = await claimed(ledger, lease, LABELS, snapshot_fence=5)
    await ledger.effects.acknowledge(claim, claim.effect.model_copy(update=ACKNOWLEDGED))
    assert (await shared(ledger, LABELS)).writer_fence == 5
    asked = [
        await ledger.effects.claim(
            lease, LABELS, snapshot_fence=fence, resend=False, operation=f"op-{fence}"
        )
        for fence in (4, 5)
    ]
    assert asked[0] is Unclaimed.SUPERSEDED
    assert isinstance(asked[1], Claim)


async def test_what_a_claim_wrote_is_known_to_a_rebuilt_record(ledger: AnyLedger) -> None:
    """A tombstone that a claim took away does not come back from GitHub, nor do samples."""
    lease = await start(ledger)
    claim = await claimed(ledger, lease, COMMENT)
    rebuilt = EffectRecord(
        effect_key=COMMENT.effect_key,
        repository_id=REPOSITORY + 1,
        kind=EffectKind.SUMMARY,
        samples=(NOON,),
        sends=7,
        writer=OTHER_RUN,
        writer_fence=3,
        tombstone=True,
        own_labels=("bug",),
        removed_labels=("question",),
    )
    await ledger.effects.adopt(rebuilt)
    record = await shared(ledger)
    assert (record.tombstone, record.samples, record.sends) == (False, (), 1)
    assert (record.repository_id, record.kind) == (REPOSITORY, EffectKind.COMMENT)
    assert (record.writer, record.writer_fence) == (OTHER_RUN, 3)
    assert (record.own_labels, record.removed_labels) == (("bug",), ("question",))
    assert await ledger.effects.stands(COMMENT.effect_key, claim.operation)


async def test_nothing_is_looked_up_without_an_epoch(place: Place, timing: LedgerTiming) -> None:
    """There is nothing that it could hold for."""
    ledger = place.open(timing)
    rebuilt = EffectRecord(effect_key=COMMENT.effect_key, samples=(NOON,), looked_up=True)
    await ledger.effects.adopt(rebuilt)
    assert await shared(ledger) == rebuilt.model_copy(update={"looked_up": False})


async def test_an_empty_read_of_an_unknown_effect_is_kept(ledger: AnyLedger) -> None:
    """In whole milliseconds, as all times of sends and reads are."""
    sharp = NOON + timedelta(microseconds=1_500)
    rounded = NOON + timedelta(milliseconds=2)
    assert await ledger.effects.add_sample(COMMENT.effect_key, sharp) == (rounded,)
    assert await shared(ledger) == EffectRecord(effect_key=COMMENT.effect_key, samples=(rounded,))
    lease = await start(ledger)
    await save(ledger, lease, LABELS, sent_at=sharp, when=sharp)
    saved = await in_run(ledger, LABELS)
    assert saved is not None
    assert (saved.sent_at, saved.when) == (rounded, sharp)


async def test_nothing_that_was_given_or_taken_can_be_changed(ledger: AnyLedger) -> None:
    """A table inside a model is the ledger's own: neither the giver's nor the reader's."""
    lease = await start(ledger)
    given = run()
    await ledger.runs.save(lease, given)
    await ledger.runs.save_snapshot(lease, snapshot())
    given.inputs.triage.labels["mine"] = "changed"
    found, kept = (await ledger.leases.view(RUN)).run, await ledger.runs.snapshot(RUN)
    assert found is not None
    assert kept is not None
    assert found == run()
    with contextlib.suppress(TypeError):
        found.inputs.triage.labels["yours"] = "changed"
    with contextlib.suppress(TypeError):
        kept.passed_over["yours"] = 1
    assert (await ledger.leases.view(RUN)).run == run()
    assert await ledger.runs.snapshot(RUN) == snapshot()


async def test_a_run_is_over_only_with_all_its_evidence(ledger: AnyLedger) -> None:
    """A server that was set back may have the lease and lack what was saved: whoever ends the run
    there has lost it. Once it is over it may be saved again."""
    lease = await start(ledger)
    await save(ledger, lease, COMMENT, **CONFIRMED)
    await save(ledger, lease, LABELS, **ACKNOWLEDGED)
    ended = run(status=Status.COMPLETED, effects=(COMMENT, LABELS))
    for end in (ledger.runs.save(lease, ended), ledger.runs.settle(lease, ended, {})):
        with pytest.raises(LeaseLost):
            await end
    found = (await ledger.leases.view(RUN)).run
    assert found is not None
    assert found.status is Status.RUNNING
    await save(ledger, lease, LABELS, evidence=Evidence.SKIPPED, reason="locked")
    await ledger.runs.save(lease, ended)
    more = ended.model_copy(update={"effects": (*ended.effects, UNLABEL)})
    await ledger.runs.settle(lease, more, {})
    assert len(await ledger.runs.listed(Status.COMPLETED)) == 1


async def test_a_claim_that_outlived_its_run_is_withdrawn_from_the_effect_alone(
    ledger: AnyLedger,
) -> None:
    """The evidence of a run that is over is frozen, and counts for no later attempt."""
    lease = await start(ledger)
    claim = await claimed(ledger, lease, COMMENT)
    await ledger.runs.save(lease, run(status=Status.COMPLETED))
    await ledger.effects.withdraw(claim)
    record = await shared(ledger)
    assert (record.holder, record.sends) == ("", 0)
    assert await in_run(ledger) == claim.effect
    await ledger.runs.settle(lease, run(status=Status.COMPLETED), {})
    found = (await ledger.leases.view(RUN)).run
    assert found is not None
    assert not found.claimed
    assert found.effects == (claim.effect,)


async def test_what_says_nothing_is_forgotten_when_the_run_is_over(ledger: AnyLedger) -> None:
    """Of effects that nobody holds: a rebuilt record may then tell of a tombstone. A comment's long
    address is in the run alone; any other stays."""
    lease = await start(ledger)
    long = "https://github.example.com/" + "a" * 60
    for number, what in enumerate((COMMENT, LABELS)):
        claim = await claimed(ledger, lease, what, f"op-{number}")
        landed_there = {**CONFIRMED, "github_id": 5 + number, "url": long}
        await ledger.effects.acknowledge(claim, claim.effect.model_copy(update=landed_there))
    await ledger.runs.settle(lease, run(status=Status.COMPLETED), {})
    kept = await in_run(ledger)
    assert kept is not None
    assert kept.url == long
    comment, labels = await shared(ledger), await shared(ledger, LABELS)
    assert (comment.url, labels.url) == ("", long)
    assert (comment.github_id, comment.digest, comment.writer) == (5, COMMENT.digest, RUN)
    rebuilt = EffectRecord(effect_key=COMMENT.effect_key, tombstone=True, samples=(NOON,))
    await ledger.effects.adopt(rebuilt)
    record = await shared(ledger)
    assert (record.tombstone, record.samples) == (True, (NOON,))
