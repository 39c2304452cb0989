"""The clock takes what is due and has it done; what workers die of at random is in
``test_schedules.py``."""

import asyncio
import contextlib

import pytest

from tests.simulation.invariants import nothing_more
from tests.simulation.world import REPOSITORY, TIMING, Faults, Killed, policy_file, world
from triage.contract import Status

pytestmark = pytest.mark.anyio

TITLES = ["Bug: a", "Question: b", "Enhancement: c"]


async def test_everything_due_is_done() -> None:
    """Installed, due, run, and due again the next day: the clock alone brings it about."""
    async with world(TITLES, policy=policy_file()) as w:
        await w.install()
        for _ in range(3):
            w.move(days=1)
            await w.settle()
        assert [w.github.labels(REPOSITORY, n) for n in (1, 2, 3)] == [
            ["bug"],
            ["question"],
            ["enhancement"],
        ]
        assert [run.status for run in await w.runs()] == [
            Status.COMPLETED,
            Status.NO_CHANGE,
            Status.NO_CHANGE,
        ]
        await nothing_more(w)


async def test_heartbeat_ends_with_its_worker() -> None:
    """A client of Redis may swallow a cancellation: the heartbeat of a worker that is gone ends all
    the same, and its lease lapses."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        faults = Faults()

        async def swallow() -> None:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(TIMING.lease.total_seconds() * 5)

        async def take_long() -> None:
            await asyncio.sleep(TIMING.lease.total_seconds() / 2)

        faults.at("before leases.renew", swallow)
        faults.at("after runs.save_plan", take_long)
        faults.kill_at("before writer.create_comment")
        began = w.clock.monotonic()
        with pytest.raises(Killed):
            await asyncio.wait_for(w.run(faults=faults), timeout=TIMING.lease.total_seconds() * 5)
        assert w.clock.monotonic() - began < TIMING.lease.total_seconds() * 4
        await w.settle()
        assert [run.status for run in await w.runs()] == [Status.COMPLETED]
        await nothing_more(w)
