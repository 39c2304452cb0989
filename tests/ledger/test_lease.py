"""Leases: one holder, fences that compare, the lock delay."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
import redis.asyncio

from ledger.errors import LeaseLost
from ledger.ledger import Ledger
from ledger.timing import LedgerTiming, UnsafeTimingError
from tests.ledger.conftest import LAPSE, LOCK_DELAY
from tests.ledger.samples import OTHER_RUN, RUN, claimed, effect, run, snapshot, start
from triage.contract import Evidence
from triage.plan import Plan


async def test_of_fifty_at_once_one_gets_it(ledger: Ledger) -> None:
    """Fifty workers ask for one lease: one has it, the others are refused."""
    asked = [ledger.leases.acquire(RUN, f"worker-{n}", f"token-{n}") for n in range(50)]
    given = [lease for lease in await asyncio.gather(*asked) if lease is not None]
    assert len(given) == 1
    seen = (await ledger.leases.view(RUN)).lease
    assert (seen.owner, seen.fence, seen.live) == (given[0].owner, given[0].fence, True)


async def test_the_same_token_finds_its_own(ledger: Ledger) -> None:
    """After a lost reply the same token is given the same lease, and no longer one."""
    first = await ledger.leases.acquire(RUN, "worker-1", "token")
    assert first is not None
    assert await ledger.leases.acquire(RUN, "worker-1", "token") == first


async def test_fences_compare_over_all_runs(ledger: Ledger) -> None:
    """One counter for the whole ledger."""
    one = await ledger.leases.acquire(RUN, "worker-1", "a")
    two = await ledger.leases.acquire(OTHER_RUN, "worker-1", "b")
    assert one is not None
    assert two is not None
    assert two.fence == one.fence + 1


async def test_renewed_it_lasts(brief: Ledger) -> None:
    """Renewed in time it outlives its first length; lapsed it is not renewed, nor by a stranger."""
    lease = await start(brief)
    await asyncio.sleep(0.2)
    assert await brief.leases.renew(lease)
    await asyncio.sleep(0.2)
    assert (await brief.leases.view(RUN)).lease.live
    await asyncio.sleep(LAPSE)
    assert not await brief.leases.renew(lease)
    other = await brief.leases.acquire(RUN, "worker-2", "other")
    assert other is not None
    assert other.fence > lease.fence
    assert not await brief.leases.renew(lease)


async def test_released_it_is_free_at_once(ledger: Ledger) -> None:
    """A clean release leaves owner and fence to read, and no delay; another's is not released."""
    lease = await start(ledger)
    await ledger.leases.release(lease)
    seen = (await ledger.leases.view(RUN)).lease
    assert (seen.owner, seen.fence, seen.until, seen.live) == ("worker-1", lease.fence, None, False)
    other = await ledger.leases.acquire(RUN, "worker-2", "other")
    assert other is not None
    await ledger.leases.release(lease)
    assert (await ledger.leases.view(RUN)).lease.live


async def test_lapsed_with_nothing_claimed_it_is_taken_over_at_once(brief: Ledger) -> None:
    """No request can be under way."""
    await start(brief)
    await asyncio.sleep(LAPSE)
    assert await brief.leases.acquire(RUN, "worker-2", "other") is not None


async def test_lapsed_with_a_claim_the_lock_delay_is_waited_out(brief: Ledger) -> None:
    """An old request must have died by itself first, acknowledged or not."""
    lease = await start(brief)
    claim = await claimed(brief, lease, effect())
    done = claim.effect.model_copy(update={"evidence": Evidence.CONFIRMED, "github_id": 5})
    await brief.effects.acknowledge(claim, done)
    await asyncio.sleep(LAPSE)
    assert await brief.leases.acquire(RUN, "worker-2", "other") is None
    await asyncio.sleep(LOCK_DELAY)
    taken = await brief.leases.acquire(RUN, "worker-2", "other")
    assert taken is not None
    assert taken.fence > lease.fence


async def test_released_with_an_open_claim_the_lock_delay_runs_from_then(brief: Ledger) -> None:
    """A release that is not clean is no release."""
    lease = await start(brief)
    await claimed(brief, lease, effect())
    await brief.leases.release(lease)
    assert not (await brief.leases.view(RUN)).lease.live
    assert await brief.leases.acquire(RUN, "worker-2", "other") is None
    await asyncio.sleep(LOCK_DELAY)
    assert await brief.leases.acquire(RUN, "worker-2", "other") is not None


async def test_withdrawn_claims_leave_no_delay(brief: Ledger) -> None:
    """What was certainly not sent need not die."""
    lease = await start(brief)
    await brief.effects.withdraw(await claimed(brief, lease, effect()))
    await asyncio.sleep(LAPSE)
    assert await brief.leases.acquire(RUN, "worker-2", "other") is not None


async def test_the_loser_of_a_lease_writes_nothing(
    brief: Ledger, client: redis.asyncio.Redis
) -> None:
    """Every guarded write of a lapsed lease raises LeaseLost and changes nothing."""
    lease = await start(brief)
    await asyncio.sleep(LAPSE)
    before = await client.hgetall(f"run:{RUN}")
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
    assert await client.hgetall(f"run:{RUN}") == before
    assert await brief.runs.snapshot(RUN) is None
    assert await brief.runs.plan(RUN) is None


@pytest.mark.parametrize("wrong", [{"token": "x"}, {"fence": 99}, {"epoch": "other"}])
async def test_token_fence_and_epoch_all_count(ledger: Ledger, wrong: dict[str, object]) -> None:
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
