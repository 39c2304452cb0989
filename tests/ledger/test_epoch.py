"""The ledger's identity: a mere restart is adopted, anything else begins a new epoch."""

import asyncio
from pathlib import Path

import pytest

from ledger.connection import connect
from ledger.errors import LedgerUnavailableError
from ledger.ledger import open_ledger
from ledger.records import LEDGER, Claim, Due, DueKind, Lease, Unclaimed
from ledger.server import EmbeddedServer
from ledger.timing import LedgerTiming
from tests.ledger.places import AnyLedger, OwnValkey, Place
from tests.ledger.samples import RUN, claimed, effect, start

LONG = LedgerTiming()
RECOVER = Due(DueKind.RECOVER, LEDGER)


async def ask(ledger: AnyLedger, lease: Lease, operation: str = "op-2") -> Claim | Unclaimed:
    """A claim of another effect."""
    return await ledger.effects.claim(
        lease, effect(issue=2), snapshot_fence=1, resend=False, operation=operation
    )


async def test_a_first_ledger_is_not_quiet(place: Place) -> None:
    """Made together with its App, nothing signed can exist, and nothing need be read back; asked
    again it is the same."""
    ledger = place.open(LONG)
    made = await ledger.epochs.ensure(first=True)
    assert (made.first, made.quiet_until, made.changed) == (True, None, True)
    assert not made.replaces
    again = await ledger.epochs.ensure(first=False)
    assert (again.id, again.first, again.changed) == (made.id, True, False)
    assert await ledger.due.upcoming() == []


async def test_a_missing_epoch_is_a_lost_ledger(place: Place) -> None:
    """Quiet for the absence window and the lock delay; whoever comes later hears the same. What is
    on GitHub falls due to be read, whatever becomes of the reply."""
    ledger = place.open(LONG)
    made = await ledger.epochs.ensure(first=False)
    assert made.changed
    assert not made.replaces
    assert made.quiet_until == made.began + LONG.absence_window + LONG.lock_delay
    assert await ledger.due.upcoming() == [(RECOVER, made.began)]
    again = await ledger.epochs.ensure(first=True)
    assert (again.id, again.quiet_until, again.changed) == (made.id, made.quiet_until, False)


async def test_two_callers_at_once_agree(place: Place) -> None:
    """One of thirty sets it, all get it."""
    ledger = place.open(LONG)
    found = await asyncio.gather(*(ledger.epochs.ensure(first=False) for _ in range(30)))
    assert len({epoch.id for epoch in found}) == 1
    assert sum(epoch.changed for epoch in found) == 1


@pytest.mark.parametrize("killed", [False, True])
async def test_a_mere_restart_loses_nothing(own_place: Place, killed: bool) -> None:
    """AOF always, no replica ever: leases, claims and epoch are there, and are gone on with."""
    ledger = own_place.open(LONG)
    before = await ledger.epochs.ensure(first=False)
    await own_place.set_epoch(quiet_until=0)
    lease = await start(ledger)
    claim = await claimed(ledger, lease, effect())
    await own_place.restart(killed=killed)
    ledger = own_place.open(LONG)
    assert await ask(ledger, lease) is Unclaimed.EPOCH
    after = await ledger.epochs.ensure(first=False)
    assert (after.id, after.quiet_until, after.changed) == (before.id, None, False)
    found = (await ledger.leases.view(RUN)).run
    assert found is not None
    assert found.effects == (claim.effect,)
    assert await ledger.effects.stands(effect().effect_key, "op-1")
    assert await ledger.leases.renew(lease)
    assert isinstance(await ask(ledger, lease), Claim)


async def test_a_restart_without_aof_is_no_mere_restart(own_place: Place) -> None:
    """Writes that were acknowledged may be gone, even if the epoch is there."""
    ledger = own_place.open(LONG)
    before = await ledger.epochs.ensure(first=True)
    lease = await start(ledger)
    await own_place.restart(durable=False)
    ledger = own_place.open(LONG)
    after = await ledger.epochs.ensure(first=True)
    assert after.id != before.id
    assert (after.changed, after.replaces, after.first) == (True, True, False)
    assert after.quiet_until is not None
    assert await ledger.due.when(RECOVER) == after.began
    assert await ask(ledger, lease) is Unclaimed.EPOCH
    again = await ledger.epochs.ensure(first=False)
    assert (again.id, again.changed, again.replaces) == (after.id, False, False)


async def test_a_server_that_is_not_durable_is_the_same_until_it_restarts(own_place: Place) -> None:
    """How it is set says nothing of what it lost."""
    await own_place.restart(durable=False)
    ledger = own_place.open(LONG)
    before = await ledger.epochs.ensure(first=True)
    after = await ledger.epochs.ensure(first=True)
    assert (after.id, after.changed) == (before.id, False)


async def test_an_emptied_folder_is_a_lost_ledger(own_place: Place) -> None:
    """No epoch, no lease: what a worker holds is worth nothing."""
    ledger = own_place.open(LONG)
    before = await ledger.epochs.ensure(first=True)
    lease = await start(ledger)
    await own_place.wipe()
    ledger = own_place.open(LONG)
    assert await ask(ledger, lease) is Unclaimed.LEASE_LOST
    after = await ledger.epochs.ensure(first=False)
    assert (after.changed, after.replaces) == (True, False)
    assert after.id != before.id


@pytest.mark.parametrize("seen", [True, False])
async def test_a_promoted_replica_is_noticed(own_place: Place, seen: bool) -> None:
    """It has the epoch, the lease and the claims, and may lack what came last: whether or not
    anybody noticed it while it was a replica.

    The first replica changes the server's identity already when it arrives.
    """
    ledger = own_place.open(LONG)
    before = await ledger.epochs.ensure(first=True)
    lease = await start(ledger)
    await own_place.attach_replica()
    if seen:
        alone, before = before, await ledger.epochs.ensure(first=False)
        assert before.id != alone.id
        await own_place.set_epoch(quiet_until=0)
        await ledger.leases.release(lease)
        lease = await start(ledger, token="again")
    await own_place.promote()
    ledger = own_place.open(LONG)
    assert await ask(ledger, lease) is Unclaimed.EPOCH
    after = await ledger.epochs.ensure(first=False)
    assert after.changed
    assert after.id != before.id
    assert await ask(ledger, lease) is Unclaimed.EPOCH
    assert await ask(ledger, await start(ledger, f"{RUN}:forced-1", "new")) is Unclaimed.QUIET


async def test_a_replica_writes_nothing(tmp_path: Path) -> None:
    """Whoever still asks it is told that the ledger is not there; a claim is unsure."""
    own = await OwnValkey(tmp_path / "first").start()
    try:
        ledger = own.open(LONG)
        await own.attach_replica()
        await ledger.epochs.ensure(first=True)
        lease = await start(ledger)
        assert await own.client.wait(1, 10_000) == 1
        replica = own.replica(LONG)
        assert await ask(replica, lease) is Unclaimed.UNSURE
        with pytest.raises(LedgerUnavailableError):
            await replica.epochs.ensure(first=False)
        with pytest.raises(LedgerUnavailableError):
            await replica.leases.release(lease)
    finally:
        await own.stop()


async def test_a_replica_that_was_ever_seen_is_remembered(own_place: Place) -> None:
    """Then no later restart is a mere one: it might be another server that starts. That it was seen
    outlives the epoch."""
    ledger = own_place.open(LONG)
    before = await ledger.epochs.ensure(first=True)
    await own_place.set_epoch(replicas_seen=1)
    for _ in range(2):
        await own_place.restart()
        ledger = own_place.open(LONG)
        after = await ledger.epochs.ensure(first=False)
        assert after.changed
        assert after.id != before.id
        before = after


async def test_a_server_that_hides_its_settings_is_not_durable(tmp_path: Path) -> None:
    """Some hosts refuse CONFIG: a restart there is never a mere one."""
    for hidden in (False, True):
        with EmbeddedServer(tmp_path) as server:
            async with connect(server.url) as client:
                if hidden:
                    await client.acl_setuser("default", commands=["-config"])
                epoch = await open_ledger(client, LONG).epochs.ensure(first=True)
                assert epoch.first is not hidden
                assert epoch.replaces is hidden
