"""The ledger's identity: a mere restart is adopted, anything else begins a new epoch."""

import asyncio
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import redis.asyncio

from ledger.connection import connect
from ledger.errors import LedgerUnavailableError
from ledger.ledger import Ledger, open_ledger
from ledger.records import Claim, Lease, Unclaimed
from ledger.server import EmbeddedServer
from ledger.timing import LedgerTiming
from tests.ledger.samples import RUN, claimed, effect, start

LONG = LedgerTiming()


@asynccontextmanager
async def opened(
    folder: Path, timing: LedgerTiming = LONG
) -> AsyncIterator[tuple[Ledger, redis.asyncio.Redis]]:
    """The ledger of a server of its own, started on this folder."""
    with EmbeddedServer(folder) as server:
        async with connect(server.url) as client:
            yield open_ledger(client, timing), client


async def ask(ledger: Ledger, lease: Lease, operation: str = "op-2") -> Claim | Unclaimed:
    """A claim of another effect."""
    return await ledger.effects.claim(
        lease, effect(issue=2), snapshot_fence=1, resend=False, operation=operation
    )


async def test_a_first_ledger_is_not_quiet(client: redis.asyncio.Redis) -> None:
    """Made together with its App, nothing signed can exist; asked again it is the same."""
    ledger = open_ledger(client, LONG)
    made = await ledger.epochs.ensure(first=True)
    assert (made.first, made.quiet_until, made.changed) == (True, None, True)
    again = await ledger.epochs.ensure(first=False)
    assert (again.id, again.first, again.changed) == (made.id, True, False)


async def test_a_missing_epoch_is_a_lost_ledger(client: redis.asyncio.Redis) -> None:
    """Quiet for the absence window and the lock delay; whoever comes later hears the same."""
    ledger = open_ledger(client, LONG)
    made = await ledger.epochs.ensure(first=False)
    assert made.changed
    assert made.quiet_until == made.began + LONG.absence_window + LONG.lock_delay
    again = await ledger.epochs.ensure(first=True)
    assert (again.id, again.quiet_until, again.changed) == (made.id, made.quiet_until, False)


async def test_two_callers_at_once_agree(client: redis.asyncio.Redis) -> None:
    """One of thirty sets it, all get it."""
    ledger = open_ledger(client, LONG)
    found = await asyncio.gather(*(ledger.epochs.ensure(first=False) for _ in range(30)))
    assert len({epoch.id for epoch in found}) == 1
    assert sum(epoch.changed for epoch in found) == 1


@pytest.mark.parametrize("how", ["stopped", "killed"])
async def test_a_mere_restart_loses_nothing(tmp_path: Path, how: str) -> None:
    """AOF always, no replica ever: leases, claims and epoch are there, and are gone on with."""
    with EmbeddedServer(tmp_path) as server:
        async with connect(server.url) as client:
            ledger = open_ledger(client, LONG)
            before = await ledger.epochs.ensure(first=False)
            await client.hset("epoch", "quiet_until", "0")
            lease = await start(ledger)
            claim = await claimed(ledger, lease, effect())
        if how == "killed":
            server.kill()
    async with opened(tmp_path) as (ledger, _):
        assert await ask(ledger, lease) is Unclaimed.EPOCH
        after = await ledger.epochs.ensure(first=False)
        assert (after.id, after.quiet_until, after.changed) == (before.id, None, False)
        found = (await ledger.leases.view(RUN)).run
        assert found is not None
        assert found.effects == (claim.effect,)
        assert await ledger.effects.stands(effect().effect_key, "op-1")
        assert await ledger.leases.renew(lease)
        assert isinstance(await ask(ledger, lease), Claim)


async def test_a_restart_without_aof_is_no_mere_restart(tmp_path: Path) -> None:
    """Writes that were acknowledged may be gone, even if the epoch is there."""
    async with opened(tmp_path) as (ledger, client):
        before = await ledger.epochs.ensure(first=True)
        lease = await start(ledger)
    async with opened(tmp_path) as (ledger, client):
        await client.config_set("appendfsync", "everysec")
        after = await ledger.epochs.ensure(first=True)
        assert after.id != before.id
        assert after.changed
        assert not after.first
        assert after.quiet_until is not None
        assert await ask(ledger, lease) is Unclaimed.EPOCH


async def test_an_emptied_folder_is_a_lost_ledger(tmp_path: Path) -> None:
    """No epoch, no lease: what a worker holds is worth nothing."""
    async with opened(tmp_path) as (ledger, _):
        before = await ledger.epochs.ensure(first=True)
        lease = await start(ledger)
    shutil.rmtree(tmp_path / "ledger" / "appendonlydir")
    async with opened(tmp_path) as (ledger, _):
        assert await ask(ledger, lease) is Unclaimed.LEASE_LOST
        assert (await ledger.epochs.ensure(first=False)).id != before.id


@pytest.mark.parametrize("seen", [True, False])
async def test_a_promoted_replica_is_noticed(tmp_path: Path, seen: bool) -> None:
    """It has the epoch, the lease and the claims, and may lack what came last: whether or not
    anybody noticed it while it was a replica.

    The first replica changes the server's identity already when it arrives.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    async with (
        opened(tmp_path / "first") as (ledger, client),
        opened(tmp_path / "second") as (other, replica),
    ):
        before = await ledger.epochs.ensure(first=True)
        lease = await start(ledger)
        await client.config_set("repl-diskless-sync-delay", "0")
        await client.config_set("port", str(port))
        await replica.replicaof("127.0.0.1", port)
        assert await client.wait(1, 10_000) == 1
        if seen:
            alone, before = before, await ledger.epochs.ensure(first=False)
            assert before.id != alone.id
            await client.hset("epoch", "quiet_until", "0")
            await ledger.leases.release(lease)
            lease = await start(ledger, token="again")
            assert await client.wait(1, 10_000) == 1
            assert await ask(other, lease) is Unclaimed.UNSURE
        with pytest.raises(LedgerUnavailableError):
            await other.epochs.ensure(first=False)
        with pytest.raises(LedgerUnavailableError):
            await other.leases.release(lease)
        await replica.replicaof("NO", "ONE")
        assert await ask(other, lease) is Unclaimed.EPOCH
        after = await other.epochs.ensure(first=False)
        assert after.changed
        assert after.id != before.id
        assert await ask(other, lease) is Unclaimed.EPOCH


async def test_a_replica_that_was_ever_seen_is_remembered(tmp_path: Path) -> None:
    """Then no later restart is a mere one: it might be another server that starts."""
    async with opened(tmp_path) as (ledger, client):
        before = await ledger.epochs.ensure(first=True)
        await client.hset("epoch", "replicas_seen", "1")
    async with opened(tmp_path) as (ledger, client):
        after = await ledger.epochs.ensure(first=False)
        assert after.changed
        assert after.id != before.id
        assert await client.hget("epoch", "replicas_seen") == b"1"


async def test_a_server_that_hides_its_settings_is_not_durable(tmp_path: Path) -> None:
    """Some hosts refuse CONFIG: a restart there is never a mere one."""
    async with opened(tmp_path) as (ledger, _):
        before = await ledger.epochs.ensure(first=True)
    async with opened(tmp_path) as (ledger, client):
        await client.acl_setuser("default", commands=["-config"])
        after = await ledger.epochs.ensure(first=False)
        assert after.id != before.id
