"""Leases: one holder, fences that compare, the lock delay."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from ledger.errors import LeaseLost
from ledger.records import Unclaimed
from ledger.timing import LedgerTiming, UnsafeTimingError
from tests.ledger.conftest import LAPSE, LOCK_DELAY
from tests.ledger.places import AnyLedger, Place
from tests.ledger.samples import OTHER_RUN, RUN, claimed, effect, run, snapshot, start
from triage.contract import Evidence
from triage.plan import Plan


async def test_of_fifty_at_once_one_gets_it(ledger: AnyLedger) -> None:
    """Fifty workers ask for one lease: one has it, the others are refused."""
    asked = [ledger.leases.acquire(RUN, f"worker-{n}", f"token-{n}") for n in range(50)]
    given = [lease for lease in await asyncio.gather(*asked) if lease is not None]
    assert len(given) == 1
    seen = (await ledger.leases.view(RUN)).lease
    assert (seen.owner, seen.fence, seen.live) == (given[0].owner, given[0].fence, True)


async def test_the_same_token_finds_its_own(ledger: AnyLedger) -> None:
    """After a lost reply the same token is given the same lease, and no longer one."""
    first = await ledger.leases.acquire(RUN, "worker-1", "token")
    assert first is not None
    assert await ledger.leases.acquire(RUN, "worker-1", "token") == first


async def test_fences_compare_over_all_runs(ledger: AnyLedger) -> None:
    """One counter for the whole ledger."""
    one = await ledger.leases.acquire(RUN, "worker-1", "a")
    two = await ledger.leases.acquire(OTHER_RUN, "worker-1", "b")
    assert one is not None
    assert two is not None
    assert two.fence == one.fence + 1


async def test_renewed_it_lasts(brief: AnyLedger, place: Place) -> None:
    """Renewed in time it outlives its first length; lapsed it is not renewed, nor by a stranger."""
    lease = await start(brief)
    await place.pass_time(0.2)
    assert await brief.leases.renew(lease)
    await place.pass_time(0.2)
    assert (await brief.leases.view(RUN)).lease.live
    await place.pass_time(LAPSE)
    assert not await brief.leases.renew(lease)
    other = await brief.leases.acquire(RUN, "worker-2", "other")
    assert other is not None
    assert other.fence > lease.fence
    assert not await brief.leases.renew(lease)


async def test_released_it_is_free_at_once(ledger: AnyLedger) -> None:
    """A clean release leaves owner and fence to read, and no delay; another's is not released."""
    lease = await start(ledger)
    await ledger.leases.release(lease)
    seen = (await ledger.leases.view(RUN)).lease
    assert (seen.owner, seen.fence, seen.until, seen.live) == ("worker-1", lease.fence, None, False)
    other = await ledger.leases.acquire(RUN, "worker-2", "other")
    assert other is not None
    await ledger.leases.release(lease)
    assert (await ledger.leases.view(RUN)).lease.live


async def test_lapsed_with_nothing_claimed_it_is_taken_over_at_once(
    brief: AnyLedger, place: Place
) -> None:
    """No request can be under way."""
    await start(brief)
    await place.pass_time(LAPSE)
    assert await brief.leases.acquire(RUN, "worker-2", "other") is not None


async def test_lapsed_with_a_claim_the_lock_delay_is_waited_out(
    brief: AnyLedger, place: Place
) -> None:
    """An old request must have died by itself first, acknowledged or not."""
    lease = await start(brief)
    claim = await claimed(brief, lease, effect())
    done = claim.effect.model_copy(update={"evidence": Evidence.CONFIRMED, "github_id": 5})
    await brief.effects.acknowledge(claim, done)
    await place.pass_time(LAPSE)
    assert await brief.leases.acquire(RUN, "worker-2", "other") is None
    await place.pass_time(LOCK_DELAY)
    taken = await brief.leases.acquire(RUN, "worker-2", "other")
    assert taken is not None
    assert taken.fence > lease.fence


async def test_released_with_an_open_claim_the_lock_delay_runs_from_then(
    brief: AnyLedger, place: Place
) -> None:
    """A release that is not clean is no release."""
    lease = await start(brief)
    await claimed(brief, lease, effect())
    await brief.leases.release(lease)
    assert not (await brief.leases.view(RUN)).lease.live
    assert await brief.leases.acquire(RUN, "worker-2", "other") is None
    await place.pass_time(LOCK_DELAY)
    assert await brief.leases.acquire(RUN, "worker-2", "other") is not None


async def test_withdrawn_claims_leave_no_delay(brief: AnyLedger, place: Place) -> None:
    """What was certainly not sent need not die."""
    lease = await start(brief)
    await brief.effects.withdraw(await claimed(brief, lease, effect()))
    await place.pass_time(LAPSE)
    assert await brief.leases.acquire(RUN, "worker-2", "other") is not None


async def test_the_loser_of_a_lease_writes_nothing(brief: AnyLedger, place: Place) -> None:
    """Every guarded write of a lapsed lease raises LeaseLost and changes nothing."""
    lease = await start(brief)
    await place.pass_time(LAPSE)
    before = await place.everything()
    writes = [
        brief.runs.save(lease, run(stage="later")),
        brief.runs.save_snapshot(lease, snapshot()),
        brief.runs.save_plan(lease, Plan(decisions=(), held=())),
        brief.runs.save_effects(lease, [effect()]),
        brief.runs.settle(lease, run(), {}),
    ]
    for write in writes:
        with pytest.raises(LeaseLost):
            await write
    assert await place.everything() == before
    assert await brief.runs.snapshot(RUN) is None
    assert await brief.runs.plan(RUN) is None


@pytest.mark.parametrize("wrong", [{"token": "x"}, {"fence": 99}, {"epoch": "other"}])
async def test_token_fence_and_epoch_all_count(ledger: AnyLedger, wrong: dict[str, object]) -> None:
    """A lease that differs in one of them is another's."""
    lease = await start(ledger)
    with pytest.raises(LeaseLost):
        await ledger.runs.save(replace(lease, **wrong), run())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "bounds",
    [
        {"lease": timedelta(seconds=25)},
        {"lock_delay": timedelta(seconds=20)},
        {"margin": timedelta(0)},
        {"pacing_scale": 0},
    ],
)
def test_bounds_that_break_the_promise_are_refused(bounds: dict[str, object]) -> None:
    """A request must end before its lease, and before the lock delay does."""
    with pytest.raises(UnsafeTimingError):
        LedgerTiming(**bounds)  # type: ignore[arg-type]


async def test_given_up_it_is_nobodys(ledger: AnyLedger, place: Place) -> None:
    """It is not renewed, nor found again by its token: that is a new lease. It stays on record."""
    lease = await start(ledger)
    await ledger.leases.release(lease)
    assert not await ledger.leases.renew(lease)
    again = await ledger.leases.acquire(RUN, "worker-1", lease.token)
    assert again is not None
    assert again.fence == lease.fence + 1
    life = await place.life(f"lease:{RUN}")
    assert life is not None
    assert timedelta(days=30) < life < timedelta(days=31)


async def test_a_lease_outlives_its_epoch_but_writes_nothing(
    ledger: AnyLedger, place: Place
) -> None:
    """It is renewed and given up all the same; what it would write is refused."""
    lease = await start(ledger)
    await place.forget_epoch()
    assert await ledger.leases.renew(lease)
    with pytest.raises(LeaseLost):
        await ledger.runs.save(lease, run())
    await ledger.epochs.ensure(first=False)
    with pytest.raises(LeaseLost):
        await ledger.runs.save_effects(lease, [effect()])
    await ledger.leases.release(lease)
    other = await ledger.leases.acquire(RUN, "worker-2", "other")
    assert other is not None
    assert other.epoch != lease.epoch
    await ledger.runs.save(other, run())


async def test_without_an_epoch_runs_are_saved_and_nothing_is_claimed(
    place: Place, timing: LedgerTiming
) -> None:
    """Nobody knows yet whether this ledger lost something."""
    ledger = place.open(timing)
    lease = await start(ledger)
    assert lease.epoch == ""
    asked = await ledger.effects.claim(
        lease, effect(), snapshot_fence=1, resend=False, operation="op-1"
    )
    assert asked is Unclaimed.EPOCH


async def test_nobody_had_it_yet(ledger: AnyLedger, place: Place) -> None:
    """No owner, no end, no run; the server's time in whole milliseconds."""
    look = await ledger.leases.view(RUN)
    assert look.run is None
    assert (look.lease.owner, look.lease.until, look.lease.fence) == ("", None, 0)
    assert abs(look.lease.now - await place.now()) < timedelta(seconds=5)
    lease = await start(ledger)
    for moment in (look.lease.now, lease.until, (await ledger.leases.view(RUN)).lease.now):
        assert moment.microsecond % 1000 == 0
