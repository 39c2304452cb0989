"""The clock takes what is due and has it done, while workers die at random: everything ends."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

import pytest

from sandbox.github.faults import PATCH_COMMENT, POST_COMMENT, POST_ISSUE, POST_LABELS
from tests.simulation.invariants import check, check_ended, nothing_more
from tests.simulation.world import (
    REPOSITORY,
    SECOND,
    TIMING,
    Faults,
    Killed,
    World,
    policy_file,
    world,
)
from triage.contract import Status

pytestmark = pytest.mark.anyio

TITLES = ["Bug: a", "Question: b", "Enhancement: c"]
SCHEDULES = 24
PAUSE = 30
MOST_SECONDS = TIMING.absence_window.total_seconds() * 40


@dataclass
class AtCall(Faults):
    """Something happens at the n-th passing of any point."""

    left: int = 0
    do: Callable[[], Any] | None = None

    async def meet(self, point: str, args: Any) -> object:
        """Count down; at zero it happens."""
        self.left -= 1
        if self.left == 0 and self.do is not None:
            await self.do()
        return await super().meet(point, args)


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


async def test_workers_that_die_at_random() -> None:
    """Seeded schedules: workers die at any call of the ledger, of GitHub or of the model, writes
    get lost or stay without an answer, lists lag, somebody says ``/retriage``. The invariants hold
    after each death; at the end every run is over, and everything is there once."""
    for seed in range(SCHEDULES):
        await deaths(seed=seed)


async def test_ledger_that_is_lost_at_random() -> None:
    """The same with an empty Redis at some instant."""
    for seed in range(SCHEDULES // 2):
        await loss(seed=seed)


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


async def deaths(*, seed: int) -> None:
    """One schedule."""
    dice = Random(seed)
    async with world(TITLES, policy=policy_file(), opened=SECOND * 100_000) as w:
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        trouble(w, dice)
        await w.install()
        kills = [dice.randrange(1, 120) for _ in range(dice.randrange(1, 4))]
        says = dice.random() < 0.5
        while await busy(w) or says:
            faults = AtCall(left=kills.pop() if kills else 0, do=partial(die, seed))
            try:
                await w.tick(faults=faults)
                if says:
                    says = False
                    w.github.as_user("alice").comment(REPOSITORY, dice.randrange(1, 4), "/retriage")
                await w.deliver(faults=faults, owner="worker-2")
            except Killed:
                await check(w)
            await asyncio.sleep(PAUSE)
        await ended(w, seed)
        await nothing_more(w)


async def loss(*, seed: int) -> None:
    """One schedule with a lost ledger."""
    dice = Random(1000 + seed)
    async with world(TITLES, policy=policy_file(), opened=SECOND * 100_000) as w:
        await w.install()
        faults = AtCall(left=dice.randrange(1, 200), do=w.lose_ledger)
        while faults.left > 0 and await busy(w):
            await w.tick(faults=faults)
        while await busy(w):
            await w.tick()
            await asyncio.sleep(PAUSE)
        await ended(w, seed, forgotten=True)
        await nothing_more(w, forgotten=True)


def trouble(w: World, dice: Random) -> None:
    """What else goes wrong: at most two writes, and lists that lag by less than the window."""
    wheres = (POST_COMMENT, POST_LABELS, POST_ISSUE, PATCH_COMMENT)
    hows = ("drop", "502", "apply then drop", "apply then 502")
    for _ in range(dice.randrange(0, 3)):
        occurrence = dice.randrange(1, 4)
        w.github.fail(dice.choice(wheres), dice.choice(hows), occurrence=occurrence)
    if dice.random() < 0.5:
        view = dice.choice(("issue_comments", "repository_comments", "issues", "comment", None))
        options = {"view": view} if view else {}
        lag = TIMING.absence_window.total_seconds() * 0.6
        w.github.fail("GET .*comments", "flap", lag=lag, seed=dice.random(), **options)


async def die(seed: int) -> None:
    """The worker is gone."""
    raise Killed(f"schedule {seed}")


async def busy(w: World) -> bool:
    """Whether anything falls due before long."""
    if not w.server.has_epoch:
        return True
    upcoming = await w.ledger.due.upcoming(1)
    assert w.clock.monotonic() < MOST_SECONDS, f"still due: {upcoming}"
    return bool(upcoming) and (upcoming[0][1] - w.clock.now()).total_seconds() < MOST_SECONDS / 2


async def ended(w: World, seed: int, *, forgotten: bool = False) -> None:
    """Every run is over, and everything is there once."""
    await check(w, forgotten=forgotten)
    await check_ended(w)
    reviewed = [run for run in await w.runs() if run.status is Status.NEEDS_REVIEW]
    for number, label in enumerate(("bug", "question", "enhancement"), start=1):
        done = (w.github.labels(REPOSITORY, number), len(w.bot_comments(number)))
        assert done == ([label], 1) or reviewed, f"schedule {seed}: issue {number}: {done}"
    assert len(w.summaries()) <= 1, f"schedule {seed}"
