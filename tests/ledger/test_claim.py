"""The claim before each request: what refuses it, and that only one of many gets it."""

import asyncio
import time
from datetime import timedelta
from typing import Any

import pytest

from ledger.records import Claim, Holding, Lease, Unclaimed
from ledger.timing import LedgerTiming
from tests.ledger.conftest import LAPSE
from tests.ledger.places import AnyLedger, Place
from tests.ledger.samples import NOON, OTHER_RUN, RUN, claimed, effect, start
from triage.contract import Evidence, RunEffect
from triage.identifiers import EffectKind

COMMENT = effect()
LABELS = effect(EffectKind.LABELS)


async def ask(
    ledger: AnyLedger, lease: Lease, what: RunEffect = COMMENT, **given: Any
) -> Claim | Unclaimed:
    """Ask for a claim, of a run with a fresh snapshot unless it is said otherwise."""
    arguments = {"snapshot_fence": lease.fence, "resend": False, "operation": "op-2", **given}
    return await ledger.effects.claim(lease, what, **arguments)


async def prove_absent(ledger: AnyLedger, samples: int = 5, minutes: float = 15) -> None:
    """Add this many empty reads, spread over so many minutes."""
    for number in range(samples):
        at = NOON + timedelta(minutes=minutes * number / (samples - 1))
        await ledger.effects.add_sample(COMMENT.effect_key, at)


async def test_a_claim_records_the_intent(ledger: AnyLedger, place: Place) -> None:
    """In the run: unsettled, open, when, how often. In the effect: who, under which fence."""
    lease = await start(ledger)
    before = await place.now()
    claim = await claimed(ledger, lease, COMMENT)
    found = (await ledger.leases.view(RUN)).run
    assert found is not None
    assert found.claimed
    assert found.effects == (claim.effect,)
    sent_at = claim.effect.sent_at
    assert sent_at is not None
    assert abs(sent_at - before) < timedelta(seconds=1)
    assert claim.effect == COMMENT.model_copy(
        update={"evidence": Evidence.UNSETTLED, "open": True, "sends": 1, "sent_at": sent_at}
    )
    shared = (await ledger.effects.get([COMMENT.effect_key]))[COMMENT.effect_key]
    assert (shared.holder, shared.holding) == (RUN, Holding.CLAIMED)
    assert (shared.claim_fence, shared.claimed_at, shared.sends) == (lease.fence, sent_at, 1)
    assert await ledger.effects.stands(COMMENT.effect_key, "op-1")
    assert not await ledger.effects.stands(COMMENT.effect_key, "op-2")


async def test_the_deadline_is_a_margin_after_the_asking(
    place: Place, ledger: AnyLedger, timing: LedgerTiming
) -> None:
    """Measured from before the script was sent, however long its answer took."""
    ticks = iter([100.0])
    slow = place.open(timing, monotonic=lambda: next(ticks))
    lease = await start(ledger)
    claim = await claimed(slow, lease, COMMENT)
    assert claim.deadline == pytest.approx(100 + timing.margin.total_seconds())


async def test_of_twenty_at_once_one_gets_it(ledger: AnyLedger) -> None:
    """Twenty runs claim one effect: one has it, the others are blocked."""
    keys = [f"{RUN}:forced-{number}" for number in range(20)]
    leases = [await start(ledger, key, key) for key in keys]
    answers = await asyncio.gather(*(ask(ledger, lease, operation=lease.token) for lease in leases))
    assert sum(isinstance(answer, Claim) for answer in answers) == 1
    assert answers.count(Unclaimed.BLOCKED) == 19


async def test_of_twenty_operations_of_one_run_one_gets_it(ledger: AnyLedger) -> None:
    """A worker that runs itself twice by mistake sends once."""
    lease = await start(ledger)
    asked = (ask(ledger, lease, operation=f"op-{number}") for number in range(20))
    answers = await asyncio.gather(*asked)
    assert sum(isinstance(answer, Claim) for answer in answers) == 1
    assert answers.count(Unclaimed.UNPROVED) == 19


async def test_the_same_operation_is_the_same_claim(ledger: AnyLedger) -> None:
    """Asked again it counts no second send; closed, it is not given again."""
    lease = await start(ledger)
    first = await claimed(ledger, lease, COMMENT)
    again = await claimed(ledger, lease, COMMENT)
    assert again.effect == first.effect
    await ledger.effects.acknowledge(first, first.effect)
    assert await ask(ledger, lease, operation="op-1") is Unclaimed.UNPROVED


async def test_a_lost_lease_claims_nothing(brief: AnyLedger, place: Place) -> None:
    """Lapsed, or taken over."""
    lease = await start(brief)
    await place.pass_time(LAPSE)
    assert await ask(brief, lease) is Unclaimed.LEASE_LOST
    assert await brief.leases.acquire(RUN, "worker-2", "other") is not None
    assert await ask(brief, lease) is Unclaimed.LEASE_LOST


async def test_a_lease_shorter_than_a_request_claims_nothing(
    ledger: AnyLedger, place: Place
) -> None:
    """It lasts 10 seconds, a request and its margin take 9.7; renewed it is long enough."""
    second = timedelta(seconds=1)
    timing = LedgerTiming(lease=10 * second, request=9 * second, margin=0.7 * second)
    slow = place.open(timing)
    lease = await start(slow)
    await place.pass_time(0.35)
    assert await ask(slow, lease) is Unclaimed.LEASE_TOO_SHORT
    assert await slow.leases.renew(lease)
    assert isinstance(await ask(slow, lease), Claim)


@pytest.mark.parametrize("field", ["id", "replid"])
async def test_another_epoch_claims_nothing(ledger: AnyLedger, place: Place, field: str) -> None:
    """Neither where the epoch is another one, nor where the server is another one."""
    lease = await start(ledger)
    await place.set_epoch(**{field: "0" * 40})
    assert await ask(ledger, lease) is Unclaimed.EPOCH


async def test_a_quiet_epoch_claims_nothing(brief: AnyLedger, place: Place) -> None:
    """Until it is over: the absence window and the lock delay."""
    await place.forget_epoch()
    epoch = await brief.epochs.ensure(first=False)
    quiet = timedelta(milliseconds=600)
    assert epoch.quiet_until == epoch.began + quiet
    lease = await start(brief)
    assert await ask(brief, lease) is Unclaimed.QUIET
    await place.pass_time(quiet.total_seconds())
    lease = await start(brief, token="later")
    assert isinstance(await ask(brief, lease), Claim)


@pytest.mark.parametrize("evidence", [None, Evidence.UNSETTLED, Evidence.CONFLICT])
async def test_another_runs_effect_is_blocked(ledger: AnyLedger, evidence: Evidence | None) -> None:
    """While it is claimed, unsettled or under review there."""
    lease = await start(ledger)
    claim = await claimed(ledger, lease, COMMENT)
    if evidence is not None:
        await ledger.runs.save_effects(
            lease, [claim.effect.model_copy(update={"evidence": evidence})]
        )
    other = await start(ledger, OTHER_RUN, "other")
    assert await ask(ledger, other, resend=True) is Unclaimed.BLOCKED


async def test_an_older_snapshot_is_superseded(ledger: AnyLedger) -> None:
    """What a run with a later snapshot wrote stands."""
    old = await start(ledger)
    new = await start(ledger, OTHER_RUN, "new")
    claim = await claimed(ledger, new, COMMENT)
    landed = {"evidence": Evidence.CONFIRMED, "github_id": 5, "open": False}
    await ledger.effects.acknowledge(claim, claim.effect.model_copy(update=landed))
    edit = COMMENT.model_copy(update={"github_id": 5})
    assert await ask(ledger, old, edit) is Unclaimed.SUPERSEDED
    assert isinstance(await ask(ledger, new, edit), Claim)


async def test_a_deleted_comment_stays_deleted(ledger: AnyLedger) -> None:
    """Unless the run is forced; a withdrawn claim puts the tombstone back."""
    await ledger.effects.note_tombstone(COMMENT.effect_key)
    lease = await start(ledger)
    assert await ask(ledger, lease) is Unclaimed.TOMBSTONE
    forced = await start(ledger, f"{RUN}:forced-1", "forced", force=True)
    claim = await ask(ledger, forced)
    assert isinstance(claim, Claim)
    await ledger.effects.withdraw(claim)
    assert await ask(ledger, lease) is Unclaimed.TOMBSTONE


async def test_a_label_that_a_person_removed_stays_removed(ledger: AnyLedger) -> None:
    """Unless the run is forced; a withdrawn claim puts that back too."""
    await ledger.effects.note_removed_label(LABELS.effect_key, "bug")
    lease = await start(ledger)
    assert await ask(ledger, lease, LABELS) is Unclaimed.TOMBSTONE
    other = LABELS.model_copy(update={"labels": ("question",)})
    withdrawn = await ask(ledger, lease, other)
    assert isinstance(withdrawn, Claim)
    await ledger.effects.withdraw(withdrawn)
    forced = await start(ledger, f"{RUN}:forced-1", "forced", force=True)
    claim = await ask(ledger, forced, LABELS)
    assert isinstance(claim, Claim)
    await ledger.effects.withdraw(claim)
    assert await ask(ledger, lease, LABELS) is Unclaimed.TOMBSTONE


async def test_a_create_in_doubt_is_sent_again_only_when_proved_absent(ledger: AnyLedger) -> None:
    """Five empty reads over the absence window, whatever the caller says; then once, and the proof
    begins anew."""
    lease = await start(ledger)
    await claimed(ledger, lease, COMMENT)
    assert await ask(ledger, lease) is Unclaimed.UNPROVED
    assert await ask(ledger, lease, resend=True) is Unclaimed.UNPROVED
    await prove_absent(ledger, samples=4)
    assert await ask(ledger, lease, resend=True) is Unclaimed.UNPROVED
    await prove_absent(ledger, samples=5)
    assert await ask(ledger, lease) is Unclaimed.UNPROVED
    again = await ask(ledger, lease, resend=True)
    assert isinstance(again, Claim)
    assert again.effect.sends == 2
    shared = (await ledger.effects.get([COMMENT.effect_key]))[COMMENT.effect_key]
    assert (shared.samples, shared.sends) == ((), 2)
    third = await ask(ledger, lease, resend=True, operation="op-3")
    assert third is Unclaimed.UNPROVED


async def test_reads_in_a_burst_prove_nothing(ledger: AnyLedger) -> None:
    """Five, but within less than the window."""
    lease = await start(ledger)
    await claimed(ledger, lease, COMMENT)
    await prove_absent(ledger, minutes=14.9)
    assert await ask(ledger, lease, resend=True) is Unclaimed.UNPROVED


async def test_evidence_alone_does_not_free_a_create(ledger: AnyLedger) -> None:
    """A run that calls it absent leaves the doubt for all runs; a person ends it."""
    lease = await start(ledger)
    claim = await claimed(ledger, lease, COMMENT)
    absent = claim.effect.model_copy(update={"evidence": Evidence.ABSENT, "open": False})
    await ledger.runs.save_effects(lease, [absent])
    assert await ask(ledger, lease) is Unclaimed.UNPROVED
    other = await start(ledger, OTHER_RUN, "other")
    assert await ask(ledger, other) is Unclaimed.UNPROVED
    resolved = absent.model_copy(update={"reason": "resolved"})
    await ledger.runs.save_effects(lease, [resolved])
    assert isinstance(await ask(ledger, other), Claim)


async def test_what_is_there_is_not_created_again(ledger: AnyLedger) -> None:
    """An id that a webhook noted turns a create into an edit."""
    lease = await start(ledger)
    await ledger.effects.note_hit(COMMENT.effect_key, 5, "u", "x")
    assert await ask(ledger, lease) is Unclaimed.UNPROVED
    edit = COMMENT.model_copy(update={"github_id": 5})
    assert isinstance(await ask(ledger, lease, edit), Claim)


async def test_labels_are_sent_again_when_they_are_not_there(ledger: AnyLedger) -> None:
    """No samples are needed: adding a label twice adds it once."""
    lease = await start(ledger)
    await claimed(ledger, lease, LABELS)
    assert await ask(ledger, lease, LABELS) is Unclaimed.UNPROVED
    assert isinstance(await ask(ledger, lease, LABELS, resend=True), Claim)


async def test_a_refused_claim_changes_nothing(ledger: AnyLedger, place: Place) -> None:
    """Neither run nor effect, nor anything else."""
    lease = await start(ledger)
    await claimed(ledger, lease, COMMENT)
    other = await start(ledger, OTHER_RUN, "other")
    before = await place.everything()
    assert await ask(ledger, other) is Unclaimed.BLOCKED
    assert await ask(ledger, lease, resend=True) is Unclaimed.UNPROVED
    assert await place.everything() == before


async def test_a_claim_is_quick(ledger: AnyLedger) -> None:
    """A hundred claims and acknowledgements in a run of a hundred effects, each on disk."""
    lease = await start(ledger)
    began = time.perf_counter()
    for number in range(100):
        one = await claimed(ledger, lease, effect(issue=number + 1), f"op-{number}")
        landed = {"evidence": Evidence.CONFIRMED, "github_id": number, "open": False}
        await ledger.effects.acknowledge(one, one.effect.model_copy(update=landed))
    assert time.perf_counter() - began < 10
