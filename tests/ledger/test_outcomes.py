"""What becomes of a claim, and what is noted about effects besides."""

from datetime import timedelta

import pytest

from ledger.records import Claim, EffectRecord, Holding, Unclaimed
from tests.ledger.conftest import LAPSE, LOCK_DELAY
from tests.ledger.places import AnyLedger, Place
from tests.ledger.samples import NOON, OTHER_RUN, REPOSITORY, RUN, claimed, effect, start
from triage.contract import Evidence, RunEffect
from triage.identifiers import EffectKind

COMMENT = effect()
LABELS = effect(EffectKind.LABELS)
UNLABEL = effect(EffectKind.UNLABEL)
ACKNOWLEDGED = {"evidence": Evidence.UNSETTLED, "open": False}


async def shared(ledger: AnyLedger, what: RunEffect = COMMENT) -> EffectRecord:
    """The record of an effect that must be known."""
    return (await ledger.effects.get([what.effect_key]))[what.effect_key]


async def in_run(ledger: AnyLedger, what: RunEffect = COMMENT) -> RunEffect | None:
    """The effect as the run holds it."""
    found = (await ledger.leases.view(RUN)).run
    assert found is not None
    return {item.effect_key: item for item in found.effects}.get(what.effect_key)


async def land(claim: Claim, ledger: AnyLedger, github_id: int | None = 5) -> RunEffect:
    """GitHub acknowledged it."""
    update = {**ACKNOWLEDGED, "github_id": github_id, "url": "u", "when": NOON}
    landed = claim.effect.model_copy(update=update)
    await ledger.effects.acknowledge(claim, landed)
    return landed


async def test_an_acknowledged_create_is_known_to_all(ledger: AnyLedger) -> None:
    """Evidence in the run; id, address, digest and writer for everyone; the claim is closed."""
    lease = await start(ledger)
    landed = await land(await claimed(ledger, lease, COMMENT), ledger)
    assert await in_run(ledger) == landed
    record = await shared(ledger)
    assert (record.github_id, record.url, record.digest) == (5, "u", COMMENT.digest)
    assert (record.writer, record.writer_fence) == (RUN, lease.fence)
    assert (record.holder, record.holding, record.sends) == ("", None, 1)
    assert not await ledger.effects.stands(COMMENT.effect_key, "op-1")
    assert await ledger.effects.by_github_id(REPOSITORY, 5) == record
    assert await ledger.effects.by_github_id(REPOSITORY + 1, 5) is None


async def test_an_outcome_is_recorded_after_the_lease_is_gone(
    brief: AnyLedger, place: Place
) -> None:
    """A worker that comes late still knows what it did, as long as nobody settled it."""
    lease = await start(brief)
    claim = await claimed(brief, lease, COMMENT)
    await place.pass_time(LAPSE + LOCK_DELAY)
    assert await brief.leases.acquire(RUN, "worker-2", "other") is not None
    landed = await land(claim, brief)
    assert await in_run(brief) == landed
    assert (await shared(brief)).github_id == 5


@pytest.mark.parametrize("evidence", [Evidence.SKIPPED, Evidence.CONFLICT])
async def test_what_a_successor_settled_stands(ledger: AnyLedger, evidence: Evidence) -> None:
    """A late outcome changes no evidence then; the id that GitHub gave is kept all the same."""
    lease = await start(ledger)
    claim = await claimed(ledger, lease, COMMENT)
    settled = claim.effect.model_copy(
        update={"evidence": evidence, "reason": "locked", "open": False}
    )
    await ledger.runs.save_effects(lease, [settled])
    await land(claim, ledger)
    assert await in_run(ledger) == settled
    record = await shared(ledger)
    assert (record.github_id, record.writer) == (5, "")
    assert record.holding is (Holding.REVIEW if evidence is Evidence.CONFLICT else None)


async def test_a_read_back_of_an_older_run_does_not_hide_a_later_writer(ledger: AnyLedger) -> None:
    """The last writer is the one with the latest snapshot, whoever confirms last."""
    old = await start(ledger)
    landed = await land(await claimed(ledger, old, COMMENT), ledger)
    new = await start(ledger, OTHER_RUN, "new")
    edit = COMMENT.model_copy(update={"github_id": 5})
    await land(await claimed(ledger, new, edit, "op-2"), ledger)
    confirmed = landed.model_copy(update={"evidence": Evidence.CONFIRMED})
    await ledger.runs.save_effects(old, [confirmed])
    record = await shared(ledger)
    assert (record.writer, record.writer_fence) == (OTHER_RUN, new.fence)


async def test_an_unknown_outcome_is_held(ledger: AnyLedger) -> None:
    """The claim is closed, the doubt stays: for this run and for all others."""
    lease = await start(ledger)
    claim = await claimed(ledger, lease, COMMENT)
    doubt = claim.effect.model_copy(update={"reason": "502"})
    await ledger.effects.acknowledge(claim, doubt)
    assert await in_run(ledger) == doubt
    record = await shared(ledger)
    assert (record.holder, record.holding) == (RUN, Holding.UNSETTLED)
    other = await start(ledger, OTHER_RUN, "other")
    asked = await ledger.effects.claim(
        other, COMMENT, snapshot_fence=other.fence, resend=False, operation="x"
    )
    assert asked is Unclaimed.BLOCKED


@pytest.mark.parametrize("evidence", [Evidence.ABSENT, Evidence.SKIPPED, Evidence.CONFLICT])
async def test_a_refusal_is_no_send(ledger: AnyLedger, evidence: Evidence) -> None:
    """It proves absence at once: sent again without samples, and not counted."""
    lease = await start(ledger)
    claim = await claimed(ledger, lease, COMMENT)
    await ledger.effects.acknowledge(claim, COMMENT.model_copy(update={"evidence": evidence}))
    assert await in_run(ledger) == COMMENT.model_copy(update={"evidence": evidence})
    record = await shared(ledger)
    assert record.sends == 0
    assert record.holding is (Holding.REVIEW if evidence is Evidence.CONFLICT else None)
    if evidence is not Evidence.CONFLICT:
        await claimed(ledger, lease, COMMENT, "op-2")


@pytest.mark.parametrize("planned", [True, False])
async def test_a_withdrawn_claim_leaves_no_trace(ledger: AnyLedger, planned: bool) -> None:
    """Run and effect are as before; twice is once."""
    lease = await start(ledger)
    if planned:
        await ledger.runs.save_effects(lease, [COMMENT])
    claim = await claimed(ledger, lease, COMMENT)
    for _ in range(2):
        await ledger.effects.withdraw(claim)
    assert await in_run(ledger) == (COMMENT if planned else None)
    record = await shared(ledger)
    assert (record.holder, record.holding, record.sends) == ("", None, 0)
    found = (await ledger.leases.view(RUN)).run
    assert found is not None
    assert not found.claimed
    await claimed(ledger, lease, COMMENT, "op-2")


async def test_a_withdrawn_second_send_leaves_the_first_in_doubt(ledger: AnyLedger) -> None:
    """With the proof that had been gathered."""
    lease = await start(ledger)
    first = await claimed(ledger, lease, COMMENT)
    await ledger.effects.acknowledge(first, first.effect)
    for number in range(5):
        at = NOON + timedelta(minutes=4 * number)
        samples = await ledger.effects.add_sample(COMMENT.effect_key, at)
    second = await claimed(ledger, lease, COMMENT, "op-2", resend=True)
    await ledger.effects.withdraw(second)
    assert await in_run(ledger) == first.effect
    record = await shared(ledger)
    assert (record.samples, record.sends) == (samples, 1)
    assert (record.holder, record.holding) == (RUN, Holding.UNSETTLED)
    await claimed(ledger, lease, COMMENT, "op-3", resend=True)


async def test_a_claim_that_comes_after_its_withdrawal_is_refused(ledger: AnyLedger) -> None:
    """Its reply was lost, it was withdrawn, and only then its script arrives."""
    lease = await start(ledger)
    lost = Claim(lease, COMMENT, "op-1", deadline=0.0)
    await ledger.effects.withdraw(lost)
    late = await ledger.effects.claim(
        lease, COMMENT, snapshot_fence=lease.fence, resend=False, operation="op-1"
    )
    assert late is Unclaimed.UNSURE
    assert await in_run(ledger) is None
    await claimed(ledger, lease, COMMENT, "op-2")


async def test_withdrawing_does_not_undo_a_successor(ledger: AnyLedger) -> None:
    """What was written after the claim stands."""
    lease = await start(ledger)
    claim = await claimed(ledger, lease, COMMENT)
    seen = claim.effect.model_copy(update={"reason": "read back"})
    await ledger.runs.save_effects(lease, [seen])
    await ledger.effects.withdraw(claim)
    assert await in_run(ledger) == seen


async def test_samples_are_kept_in_order_and_once(ledger: AnyLedger) -> None:
    """All since the last send."""
    key = COMMENT.effect_key
    for second in (0, 20, 10, 20):
        samples = await ledger.effects.add_sample(key, NOON + timedelta(seconds=second))
    assert samples == tuple(NOON + timedelta(seconds=second) for second in (0, 10, 20))
    assert (await shared(ledger)).samples == samples


async def test_of_two_hits_the_lowest_id_wins(ledger: AnyLedger) -> None:
    """Whoever sees it first; an address and a digest belong to the id."""
    lease = await start(ledger)
    await land(await claimed(ledger, lease, COMMENT), ledger, github_id=50)
    await ledger.effects.note_hit(COMMENT.effect_key, 70, "later", "z")
    record = await shared(ledger)
    assert (record.github_id, record.url, record.digest) == (50, "u", COMMENT.digest)
    await ledger.effects.note_hit(COMMENT.effect_key, 9, "earlier", "a")
    record = await shared(ledger)
    assert (record.github_id, record.url, record.digest) == (9, "earlier", "a")
    found = [await ledger.effects.by_github_id(REPOSITORY, id_) for id_ in (9, 50, 70)]
    assert found == [record, record, record]


async def test_a_summary_that_was_seen_has_its_number(ledger: AnyLedger) -> None:
    """It is addressed by the number; a duplicate's does not replace it."""
    summary = effect(EffectKind.SUMMARY, issue=0)
    lease = await start(ledger)
    await claimed(ledger, lease, summary)
    await ledger.effects.note_hit(summary.effect_key, 50, "u", "x", issue=7)
    await ledger.effects.note_hit(summary.effect_key, 60, "v", "y", issue=8)
    record = await shared(ledger, summary)
    assert (record.github_id, record.issue, record.digest) == (50, 7, "x")


async def test_a_deleted_comment_is_forgotten_but_for_the_fact(ledger: AnyLedger) -> None:
    """Its id still leads to the effect; a new one may take its place."""
    lease = await start(ledger)
    await land(await claimed(ledger, lease, COMMENT), ledger, github_id=50)
    await ledger.effects.note_tombstone(COMMENT.effect_key)
    record = await shared(ledger)
    assert (record.github_id, record.url, record.tombstone) == (None, "", True)
    assert await ledger.effects.by_github_id(REPOSITORY, 50) == record
    forced = await start(ledger, f"{RUN}:forced-1", "forced", force=True)
    await land(await claimed(ledger, forced, COMMENT, "op-2"), ledger, github_id=90)
    record = await shared(ledger)
    assert (record.github_id, record.tombstone) == (90, False)


async def test_own_labels_are_those_that_were_sent(ledger: AnyLedger) -> None:
    """Added by us: in; removed by us: out; removed by a person: out, and remembered."""
    lease = await start(ledger)
    await land(await claimed(ledger, lease, LABELS, "1"), ledger, None)
    assert (await shared(ledger, LABELS)).own_labels == ("bug",)
    more = LABELS.model_copy(update={"labels": ("question", "bug")})
    await land(await claimed(ledger, lease, more, "2"), ledger, None)
    assert (await shared(ledger, LABELS)).own_labels == ("bug", "question")
    await land(await claimed(ledger, lease, UNLABEL, "3"), ledger, None)
    assert (await shared(ledger, LABELS)).own_labels == ("question",)
    await ledger.effects.note_removed_label(LABELS.effect_key, "question")
    record = await shared(ledger, LABELS)
    assert (record.own_labels, record.removed_labels) == ((), ("question",))


async def test_labels_that_were_there_before_are_not_ours(ledger: AnyLedger) -> None:
    """In place without a send: whoever added them."""
    lease = await start(ledger)
    await ledger.runs.save_effects(
        lease, [LABELS.model_copy(update={"evidence": Evidence.CONFIRMED})]
    )
    assert (await shared(ledger, LABELS)).own_labels == ()


async def test_a_late_confirmation_does_not_undo_a_person(ledger: AnyLedger) -> None:
    """The label is removed after it was sent; a read that lags behind confirms it."""
    lease = await start(ledger)
    landed = await land(await claimed(ledger, lease, LABELS), ledger, None)
    await ledger.effects.note_removed_label(LABELS.effect_key, "bug")
    confirmed = landed.model_copy(update={"evidence": Evidence.CONFIRMED})
    await ledger.runs.save_effects(lease, [confirmed])
    record = await shared(ledger, LABELS)
    assert (record.own_labels, record.removed_labels) == ((), ("bug",))


async def test_a_rebuilt_record_fills_what_is_not_known(ledger: AnyLedger) -> None:
    """What the ledger knows stands; the look-up holds for this epoch."""
    rebuilt = EffectRecord(
        effect_key=COMMENT.effect_key,
        repository_id=REPOSITORY,
        issue_id=1001,
        issue=1,
        kind=EffectKind.COMMENT,
        github_id=5,
        url="u",
        digest="x",
        removed_labels=("bug",),
        looked_up=True,
    )
    await ledger.effects.adopt(rebuilt)
    assert await shared(ledger) == rebuilt
    assert await ledger.effects.by_github_id(REPOSITORY, 5) == rebuilt
    await ledger.effects.adopt(rebuilt.model_copy(update={"github_id": 9, "tombstone": True}))
    assert await shared(ledger) == rebuilt.model_copy(update={"tombstone": True})


async def test_a_look_up_belongs_to_its_epoch(ledger: AnyLedger, place: Place) -> None:
    """After the ledger was lost again, GitHub is asked again."""
    await ledger.effects.adopt(EffectRecord(effect_key=COMMENT.effect_key, looked_up=True))
    assert (await shared(ledger)).looked_up
    await place.forget_epoch()
    await ledger.epochs.ensure(first=False)
    assert not (await shared(ledger)).looked_up


async def test_unknown_effects_are_not_there(ledger: AnyLedger) -> None:
    """Only what is known is given."""
    assert await ledger.effects.get([]) == {}
    assert await ledger.effects.get([COMMENT.effect_key]) == {}
