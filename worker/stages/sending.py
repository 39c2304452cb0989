"""One effect, sent once: budget, claim, request, and what the answer means.

Invariant: nothing is sent without a claim that the ledger recorded before, and nothing is sent
again before its absence is proved.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial

from ledger.records import Claim, Due, DueKind, Granted, Unclaimed, Wait
from triage.contract import Evidence, RunEffect, Skip
from triage.effects import skipped
from triage.identifiers import FAMILY, EffectKind, Family
from worker.ports import (
    Landed,
    Late,
    LeaseLost,
    LedgerUnavailableError,
    Outcome,
    ReadFailed,
    Refusal,
    Refused,
    Unknown,
)
from worker.stages.attempt import Attempt, ask_twice
from worker.stages.gone import GONE, refused_as_gone, why_forbidden

Request = Callable[[Claim], Awaitable[Outcome]]

TRIES = 3
"""Claims asked for one effect in one attempt: a lease too short or a late claim is asked again."""


class StopSending(Exception):  # noqa: N818 - the end of an attempt's writing, not an error
    """Nothing more can be written in this attempt."""

    def __init__(
        self, reason: str, *, retry_at: datetime | None = None, budget_spent: bool = False
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_at = retry_at
        self.budget_spent = budget_spent


async def send_once(
    attempt: Attempt, effect: RunEffect, request: Request, *, joined: bool = False
) -> RunEffect:
    """Claim, send, record. Gives the effect as the outcome leaves it, saved.

    One that was sent before is looked for later: the earlier request may still land. So is one that
    is ``joined``: another may stand in its place. That falls due while the claim is open, so that
    nobody looks before it was sent, and who dies is taken over past a claim.

    Raises StopSending where nothing more can be written now, LeaseLost where the lease is gone.
    """
    for _ in range(TRIES):
        granted = await room_in_budget(attempt)
        claim = await _claim(attempt, effect)
        if isinstance(claim, Unclaimed):
            refused = await _unclaimed(attempt, effect, claim)
            if refused is not None:
                return refused
            continue
        outcome = await request(claim)
        await _answered(attempt, granted)
        if isinstance(outcome, Late):
            effects = attempt.ports.ledger.effects
            await ask_twice(partial(effects.withdraw, claim), attempt.ports.clock)
            continue
        if not isinstance(outcome, Refused) and (joined or _sent_before(attempt, effect)):
            await ask_twice(partial(verify_later, attempt, effect), attempt.ports.clock)
        return await _record(attempt, claim, effect, outcome)
    raise StopSending("the lease is too short to send", retry_at=attempt.now)


def _sent_before(attempt: Attempt, effect: RunEffect) -> bool:
    """Whether a request to create it was sent already, by whatever run."""
    if not effect.kind.creates:
        return False
    record = attempt.records.get(effect.effect_key)
    by_another = effect.github_id is None and record is not None and record.sends > 0
    return effect.sends > 0 or by_another


async def room_in_budget(attempt: Attempt) -> Granted:
    """Wait for the write budget if that is short. Raises StopSending if it is long, or out of
    time."""
    ports = attempt.ports
    if attempt.out_of_time:
        raise StopSending("the run's own deadline is over", retry_at=attempt.now)
    while True:
        match await ports.ledger.budgets.spend(attempt.run.inputs.installation):
            case Granted() as granted:
                return granted
            case Wait(delay) if delay > ports.timing.longest_pause:
                until = attempt.now + delay
                raise StopSending("the write budget is spent", retry_at=until, budget_spent=True)
            case Wait(delay):
                await ports.clock.sleep(delay.total_seconds())


async def _answered(attempt: Attempt, granted: Granted) -> None:
    """A budget that is out of reach is no reason to lose the outcome."""
    with suppress(LedgerUnavailableError):
        await attempt.ports.ledger.budgets.answered(attempt.run.inputs.installation, granted)


async def _claim(attempt: Attempt, effect: RunEffect) -> Claim | Unclaimed:
    resend = effect.sends > 0 and effect.evidence is Evidence.ABSENT
    operation = attempt.ports.clock.token()
    effects = attempt.ports.ledger.effects
    # A triage's summary is made of all runs of its window as they stand now, not of this run's
    # snapshot; a review's page is as old as its own.
    of_triage = FAMILY[attempt.run.key.job] is Family.TRIAGE
    of_now = effect.kind is EffectKind.SUMMARY and of_triage
    claim = await effects.claim(
        attempt.lease,
        effect,
        snapshot_fence=attempt.lease.fence if of_now else attempt.fence,
        resend=resend,
        operation=operation,
    )
    if claim is Unclaimed.UNSURE:
        # The reply was lost. Nothing was sent, so whatever was recorded is undone.
        lost = Claim(attempt.lease, effect, operation, deadline=0.0)
        await ask_twice(lambda: effects.withdraw(lost), attempt.ports.clock)
    return claim


async def _unclaimed(attempt: Attempt, effect: RunEffect, why: Unclaimed) -> RunEffect | None:
    """What a refused claim makes of the effect; None to ask again."""
    match why:
        case Unclaimed.BLOCKED | Unclaimed.SUPERSEDED | Unclaimed.TOMBSTONE:
            reason = {
                Unclaimed.BLOCKED: Skip.BLOCKED,
                Unclaimed.SUPERSEDED: Skip.SUPERSEDED,
                Unclaimed.TOMBSTONE: Skip.HUMAN_REMOVED,
            }[why]
            settled = skipped(effect, reason)
            await attempt.keep([settled])
            return settled
        case Unclaimed.LEASE_TOO_SHORT:
            if not await attempt.ports.ledger.leases.renew(attempt.lease):
                raise LeaseLost(attempt.lease.dedupe_key)
            return None
        case Unclaimed.QUIET | Unclaimed.EPOCH:
            raise StopSending("the ledger was lost: quiet until it is read again")
        case Unclaimed.LEASE_LOST:
            raise LeaseLost(attempt.lease.dedupe_key)
        case Unclaimed.UNPROVED:
            return await _as_recorded(attempt, effect)
        case Unclaimed.UNSURE:
            return None


async def _as_recorded(attempt: Attempt, effect: RunEffect) -> RunEffect:
    """The effect as the ledger has it: an earlier request of it is in doubt."""
    look = await attempt.ports.ledger.leases.view(attempt.lease.dedupe_key)
    stored = {item.effect_key: item for item in look.run.effects} if look.run else {}
    effect = stored.get(effect.effect_key, effect)
    attempt.effects[effect.effect_key] = effect
    return effect


async def _record(attempt: Attempt, claim: Claim, before: RunEffect, outcome: Outcome) -> RunEffect:
    """The evidence that the answer gives, saved."""
    now = attempt.now
    match outcome:
        case Landed():
            after = claim.effect.model_copy(
                update={
                    "open": False,
                    "reason": "acknowledged",
                    "github_id": outcome.github_id or before.github_id,
                    "issue": outcome.issue or before.issue,
                    "url": outcome.url or before.url,
                    "when": now,
                }
            )
        case Unknown():
            after = claim.effect.model_copy(update={"reason": outcome.detail, "when": now})
        case Refused():
            after = await _refused(attempt, before, outcome)
        case Late():
            raise AssertionError("a late claim is withdrawn, not recorded")
    acknowledge = attempt.ports.ledger.effects.acknowledge
    await ask_twice(lambda: acknowledge(claim, after), attempt.ports.clock)
    attempt.effects[after.effect_key] = after
    if not isinstance(outcome, Refused):
        await _look_for_a_lost_lease(attempt, after)
    elif after == before:
        await _come_back(attempt, outcome)
    return after


async def _refused(attempt: Attempt, effect: RunEffect, outcome: Refused) -> RunEffect:
    """The effect after a refusal, which is no send: skipped where that is for good, a conflict
    where a person must act, and as before where GitHub asks to come back, or cannot be asked."""
    try:
        match outcome.refusal:
            case Refusal.LIMITED | Refusal.UNAUTHORISED:
                return effect
            case Refusal.GONE:
                return await refused_as_gone(attempt, effect, outcome)
            case Refusal.INVALID:
                return conflict(effect, f"GitHub refused it: {outcome.detail}", attempt.now)
            case Refusal.FORBIDDEN:
                gone = await why_forbidden(attempt, effect.issue)
    except ReadFailed:
        return effect
    if gone is not None:
        return skipped(effect, GONE[gone], str(gone))
    return conflict(effect, f"the app may not write this: {outcome.detail}", attempt.now)


def conflict(effect: RunEffect, reason: str, now: datetime) -> RunEffect:
    """The effect, for a person to decide."""
    return effect.model_copy(
        update={"evidence": Evidence.CONFLICT, "reason": reason, "open": False, "when": now}
    )


async def verify_later(attempt: Attempt, effect: RunEffect) -> None:
    """Look for a late writer of this effect one absence window from now."""
    at = attempt.now + attempt.ports.timing.absence_window
    await attempt.ports.ledger.due.add(Due(DueKind.VERIFY, effect.effect_key), at)


async def look_for_late_requests(attempt: Attempt) -> None:
    """After a takeover past a claim: what the last holder sent may still land."""
    for effect in [item for item in attempt.effects.values() if item.in_doubt]:
        await ask_twice(partial(verify_later, attempt, effect), attempt.ports.clock)


async def _come_back(attempt: Attempt, outcome: Refused) -> None:
    until = outcome.retry_at or attempt.now
    if outcome.refusal is Refusal.LIMITED:
        until = outcome.retry_at or attempt.now + timedelta(minutes=1)
        await attempt.ports.ledger.budgets.block(attempt.run.inputs.installation, until)
    raise StopSending(f"GitHub asked to come back: {outcome.detail}", retry_at=until)


async def _look_for_a_lost_lease(attempt: Attempt, effect: RunEffect) -> None:
    """A writer that finds its lease gone after sending may not be alone. Asked by a renewal, which
    reads nothing of the run: it may hold a thousand effects."""
    if not await attempt.ports.ledger.leases.renew(attempt.lease):
        await verify_later(attempt, effect)
        raise LeaseLost(attempt.lease.dedupe_key)
