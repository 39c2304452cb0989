"""The server in memory: what it has besides, and that its copies are copies."""

from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta

import pytest

from ledger.errors import LedgerUnavailableError
from ledger.timing import LedgerTiming
from tests.ledger.samples import NOON, RUN, claimed, effect, run, snapshot, start
from tests.simulation.memory.ledger import MemoryLedger, MemoryServer, memory_ledger
from triage.contract import Evidence, Status


@pytest.fixture
def server() -> MemoryServer:
    """A server whose time stands still."""
    return MemoryServer(lambda: datetime(2026, 3, 4, 12, tzinfo=UTC))


@pytest.fixture
async def ledger(server: MemoryServer) -> MemoryLedger:
    """A first ledger on it."""
    opened = memory_ledger(server, LedgerTiming(), monotonic=lambda: 0.0)
    await opened.epochs.ensure(first=True)
    return opened


async def test_a_server_that_is_down_is_unavailable(
    server: MemoryServer, ledger: MemoryLedger
) -> None:
    """Every part says so, but a claim, which is unsure; back again, it has everything."""
    lease = await start(ledger)
    before = server.copy()
    server.down = True
    calls: list[Awaitable[object]] = [
        ledger.leases.acquire(RUN, "worker-2", "other"),
        ledger.leases.view(RUN),
        ledger.runs.save(lease, run()),
        ledger.runs.listed(),
        ledger.effects.get(["x"]),
        ledger.due.upcoming(),
        ledger.budgets.spend("1"),
        ledger.repositories.get(1),
        ledger.epochs.ensure(first=False),
        ledger.counters.snapshot(),
        ledger.sessions.kept(1, "x"),
        ledger.reviews.last(1),
    ]
    for call in calls:
        with pytest.raises(LedgerUnavailableError):
            await call
    with pytest.raises(LedgerUnavailableError):
        ledger.deliveries.accepted("guid-1")
    asked = await ledger.effects.claim(
        lease, effect(), snapshot_fence=1, resend=False, operation="op-1"
    )
    assert str(asked) == "unsure"
    server.down = False
    assert server.copy() == before


async def test_a_copy_is_not_changed_by_what_comes_later(
    server: MemoryServer, ledger: MemoryLedger
) -> None:
    """Nor by what a server that was restored from it does: it can be restored again."""
    lease = await start(ledger)
    state, twin = server.copy(), server.copy()
    assert state == twin
    for _ in range(2):
        claim = await claimed(ledger, lease, effect(), "op-1")
        landed = {"evidence": Evidence.CONFIRMED, "open": False, "github_id": 5}
        await ledger.effects.acknowledge(claim, claim.effect.model_copy(update=landed))
        await ledger.runs.save_snapshot(lease, snapshot())
        await ledger.repositories.add_bot_id(4)
        await ledger.budgets.spend("1")
        await ledger.budgets.block("1", NOON)
        await ledger.effects.incident("late", "one")
        await ledger.runs.settle(lease, run(status=Status.COMPLETED), {})
        assert state == twin
        server.restore(state, replid=server.replid)
        assert server.copy() == state


async def test_a_replica_that_lacks_the_last_writes(
    server: MemoryServer, ledger: MemoryLedger
) -> None:
    """It has another identity and remembers the earlier one, so a new epoch begins."""
    before = await ledger.epochs.ensure(first=False)
    behind = server.copy()
    await start(ledger)
    old = server.replid
    server.restore(behind)
    assert (server.replid2, server.replid != old) == (old, True)
    assert (await ledger.leases.view(RUN)).run is None
    after = await ledger.epochs.ensure(first=False)
    assert (after.changed, after.replaces, after.id != before.id) == (True, True, True)
    assert after.quiet_until == after.began + timedelta(minutes=16)


async def test_without_aof_a_restart_loses_what_was_not_written(
    server: MemoryServer, ledger: MemoryLedger
) -> None:
    """With AOF it loses nothing, and cannot be told to."""
    on_disk = server.copy()
    await start(ledger)
    with pytest.raises(ValueError, match="loses nothing"):
        server.restart(as_of=on_disk)
    server.restart()
    assert (await ledger.leases.view(RUN)).run is not None
    assert not (await ledger.epochs.ensure(first=False)).changed
    server.restart(durable=False, as_of=on_disk)
    assert (await ledger.leases.view(RUN)).run is None
    assert (await ledger.epochs.ensure(first=False)).changed


async def test_an_emptied_server_has_nothing(server: MemoryServer, ledger: MemoryLedger) -> None:
    """No epoch, and another identity."""
    before = server.replid, server.has_epoch
    server.wipe()
    after = server.replid, server.has_epoch
    assert (before[1], after[1]) == (True, False)
    assert before[0] != after[0]
    assert not (await ledger.epochs.ensure(first=False)).replaces
