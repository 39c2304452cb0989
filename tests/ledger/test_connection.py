"""Replies that are lost: nothing is repeated, and asking again tells what happened."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import redis.asyncio
from redis.client import Pipeline

from ledger.connection import answered, connect, connect_sync
from ledger.deliveries import Deliveries
from ledger.errors import LedgerUnavailableError
from ledger.ledger import Ledger, open_ledger
from ledger.records import Claim, Unclaimed
from ledger.server import EmbeddedServer
from ledger.timing import LedgerTiming
from tests.ledger.proxy import Proxy, proxied
from tests.ledger.samples import RUN, claimed, effect, run, start
from triage.contract import Evidence, Status


@pytest.fixture
async def proxy(redis_url: str) -> AsyncIterator[Proxy]:
    """A proxy in front of the empty database."""
    async with proxied(Path(unquote(urlsplit(redis_url).path))) as proxy:
        yield proxy


@pytest.fixture
async def ledger(client: redis.asyncio.Redis, timing: LedgerTiming) -> Ledger:
    """A first ledger on the real server: what is lost here is lost between it and its client."""
    opened = open_ledger(client, timing)
    await opened.epochs.ensure(first=True)
    return opened


@pytest.fixture
async def lossy(proxy: Proxy, timing: LedgerTiming, ledger: Ledger) -> AsyncIterator[Ledger]:
    """The ledger behind the proxy; its scripts are known to the server."""
    lease = await start(ledger, f"{RUN}:forced-9", "warm")
    claim = await claimed(ledger, lease, effect(issue=99))
    await ledger.effects.acknowledge(claim, claim.effect)
    await ledger.effects.withdraw(claim)
    await ledger.runs.settle(lease, run(f"{RUN}:forced-9", status=Status.WAITING), {})
    async with connect(proxy.url) as client:
        await client.ping()
        yield open_ledger(client, timing)


async def test_nothing_is_sent_twice(proxy: Proxy) -> None:
    """The reply to an INCR is lost: it counted once."""
    async with connect(proxy.url) as client:
        await client.ping()
        proxy.swallow = True
        with pytest.raises(LedgerUnavailableError), answered():
            await client.incr("n")
        assert proxy.swallowed == 1
        assert await client.get("n") == b"1"


async def test_the_same_token_finds_the_lease_of_a_lost_reply(lossy: Ledger, proxy: Proxy) -> None:
    """It had been given."""
    proxy.swallow = True
    with pytest.raises(LedgerUnavailableError):
        await lossy.leases.acquire(RUN, "worker-1", "token")
    held = (await lossy.leases.view(RUN)).lease
    assert held.live
    lease = await lossy.leases.acquire(RUN, "worker-1", "token")
    assert lease is not None
    assert lease.fence == held.fence


async def test_a_claim_whose_reply_is_lost_is_unsure(lossy: Ledger, proxy: Proxy) -> None:
    """The same operation, asked again, finds it; it was sent, and counted, once."""
    lease = await start(lossy)

    async def ask_once() -> Claim | Unclaimed:
        return await lossy.effects.claim(
            lease, effect(), snapshot_fence=lease.fence, resend=False, operation="op-1"
        )

    proxy.swallow = True
    assert await ask_once() is Unclaimed.UNSURE
    assert await lossy.effects.stands(effect().effect_key, "op-1")
    again = await ask_once()
    assert isinstance(again, Claim)
    assert again.effect.sends == 1


async def test_an_unsure_claim_can_be_withdrawn(lossy: Ledger, proxy: Proxy) -> None:
    """By its operation alone; then another one is given."""
    lease = await start(lossy)
    proxy.swallow = True
    asked = await lossy.effects.claim(
        lease, effect(), snapshot_fence=lease.fence, resend=False, operation="op-1"
    )
    assert asked is Unclaimed.UNSURE
    await lossy.effects.withdraw(Claim(lease, effect(), "op-1", deadline=0.0))
    assert (await claimed(lossy, lease, effect(), "op-2")).effect.sends == 1


async def test_every_guarded_write_may_be_asked_again(lossy: Ledger, proxy: Proxy) -> None:
    """Acknowledged, saved and settled twice is once."""
    lease = await start(lossy)
    claim = await claimed(lossy, lease, effect())
    landed = claim.effect.model_copy(
        update={"evidence": Evidence.CONFIRMED, "github_id": 5, "open": False}
    )
    ended = run(status=Status.COMPLETED)
    steps: list[Callable[[], Awaitable[None]]] = [
        lambda: lossy.effects.acknowledge(claim, landed),
        lambda: lossy.runs.save_effects(lease, [landed]),
        lambda: lossy.runs.settle(lease, ended, {}),
    ]
    for step in steps:
        proxy.swallow = True
        with pytest.raises(LedgerUnavailableError):
            await step()
        await step()
    found = (await lossy.leases.view(RUN)).run
    assert found is not None
    assert (found.status, found.effects) == (Status.COMPLETED, (landed,))
    assert (await lossy.counters.snapshot()).attempts["completed"] == 1


async def test_a_delivery_whose_reply_is_lost_was_accepted_once(proxy: Proxy) -> None:
    """The transaction is looked up instead of repeated."""
    loop = asyncio.get_running_loop()
    client = await loop.run_in_executor(None, lambda: connect_sync(proxy.url))

    def enqueue(pipeline: Pipeline) -> None:
        pipeline.rpush("queue", "job")
        proxy.swallow = True

    def accept() -> bool:
        return Deliveries(client).accept("guid-1", "command 5", enqueue)

    assert await asyncio.to_thread(accept)
    assert proxy.swallowed == 1
    assert not await asyncio.to_thread(accept)
    assert await asyncio.to_thread(client.llen, "queue") == 1
    client.close()


async def test_a_ledger_that_is_gone_is_unavailable(tmp_path: Path, timing: LedgerTiming) -> None:
    """Every part says so in the same way, but a claim, which is unsure; back again, it answers."""
    with EmbeddedServer(tmp_path) as server:
        async with connect(server.url) as client:
            ledger = open_ledger(client, timing)
            await ledger.epochs.ensure(first=True)
            lease = await start(ledger)
            server.kill()
            calls = [
                ledger.leases.view(RUN),
                ledger.runs.save(lease, run()),
                ledger.runs.listed(),
                ledger.effects.get(["x"]),
                ledger.due.upcoming(),
                ledger.budgets.spend("1"),
                ledger.repositories.get(1),
                ledger.epochs.ensure(first=False),
                ledger.counters.snapshot(),
            ]
            for call in calls:
                with pytest.raises(LedgerUnavailableError):
                    await call
            asked = await ledger.effects.claim(
                lease, effect(), snapshot_fence=1, resend=False, operation="op-1"
            )
            assert asked is Unclaimed.UNSURE


async def test_something_else_at_the_address_is_unavailable() -> None:
    """A web server, say."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with connect(f"redis://127.0.0.1:{port}") as client:
            with pytest.raises(LedgerUnavailableError), answered():
                await client.ping()


async def test_a_full_server_is_unavailable(tmp_path: Path, timing: LedgerTiming) -> None:
    """It refuses to write rather than to forget."""
    with EmbeddedServer(tmp_path) as server:
        async with connect(server.url) as client:
            ledger = open_ledger(client, timing)
            await ledger.epochs.ensure(first=True)
            await client.config_set("maxmemory", "1")
            with pytest.raises(LedgerUnavailableError):
                await ledger.leases.acquire(RUN, "worker-1", "token")


async def test_a_cancelled_command_leaves_no_reply_behind(redis_url: str) -> None:
    """Whoever uses the connection next gets an answer of its own."""
    async with connect(redis_url) as client:
        await client.mset({str(number): number for number in range(200)})

        async def one(number: int) -> None:
            assert await client.get(str(number)) == str(number).encode()

        for _ in range(20):
            tasks = [asyncio.create_task(one(number)) for number in range(200)]
            await asyncio.sleep(0.002)
            for task in tasks[::2]:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(
                result is None or isinstance(result, asyncio.CancelledError) for result in results
            )


async def test_a_silent_server_is_given_up(tmp_path: Path) -> None:
    """After the time-out, not after ten tries."""
    with EmbeddedServer(tmp_path) as server:
        async with connect(server.url, timeout=timedelta(seconds=0.2)) as client:
            await client.ping()
            os.kill(server.pid, signal.SIGSTOP)
            began = time.monotonic()
            with pytest.raises(LedgerUnavailableError), answered():
                await client.ping()
            assert time.monotonic() - began < 1
            os.kill(server.pid, signal.SIGCONT)
            assert await client.ping()
