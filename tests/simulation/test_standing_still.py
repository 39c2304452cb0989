"""A worker stands still between two of its steps, its lease alive, and what falls due meanwhile is
done by another: nothing is taken off that is for a step still to come."""

import asyncio
from contextlib import suppress
from functools import partial

import pytest

from sandbox.github.faults import POST_COMMENT
from tests.simulation.invariants import nothing_more
from tests.simulation.sight import WINDOW
from tests.simulation.world import (
    REPOSITORY,
    Faults,
    Killed,
    World,
    policy_file,
    world,
)
from triage.contract import Status
from worker.resolving import resolution_of, resolve
from worker.stages.settling import RunReport

pytestmark = pytest.mark.anyio


async def the_clock_ticks(w: World) -> None:
    """For longer than an absence window: other workers do what falls due."""
    for _ in range(12):
        await asyncio.sleep(WINDOW / 10)
        await w.tick(owner="worker-2")


async def decide(w: World, verdict: str, faults: Faults | None = None) -> RunReport:
    """A person decides about the first run."""
    key = (await w.runs())[0].inputs.dedupe_key
    ports = w.ports("a-person", faults)
    decided = resolution_of([key, verdict, "I", "looked"], by="alice", at=w.clock.now())
    return await resolve(key, decided, ports)


async def test_before_the_first_save_of_a_run() -> None:
    """The run is due again before it is saved. A clock that looks for it then, and finds none, lets
    it stay due: the worker saves it, and dies."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        faults = Faults()
        faults.at("before runs.save", partial(the_clock_ticks, w))
        faults.kill_at("before effects.claim")
        with pytest.raises(Killed):
            await w.run(faults=faults)
        await w.settle()
        assert [run.status for run in await w.runs()] == [Status.COMPLETED]
        await nothing_more(w)


async def test_before_a_decided_run_is_opened() -> None:
    """The same with a run under review that a person has just decided about."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.fail(POST_COMMENT, "422")
        assert (await w.run()).status is Status.NEEDS_REVIEW
        faults = Faults()
        faults.at("before runs.save", partial(the_clock_ticks, w))
        faults.kill_at("before effects.claim")
        with pytest.raises(Killed):
            await decide(w, "retry", faults)
        await w.settle()
        assert [run.status for run in await w.runs()] == [Status.COMPLETED]
        await nothing_more(w)


async def test_before_a_second_send() -> None:
    """The late request lands a moment after the second one was sent: it is looked for a window
    after that, however long the worker stood before it."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.fail(POST_COMMENT, "drop then apply")
        await w.run()
        faults = Faults()
        faults.at("before effects.claim", partial(the_clock_ticks, w))
        while len(w.github.requests("POST", "/comments")) < 2:
            await asyncio.sleep(WINDOW / 10)
            await w.tick(faults=faults)
        first = w.own_comments(1)[0].id
        w.github.land_late()
        await w.settle()
        assert [item.id for item in w.own_comments(1)] == [first]
        await nothing_more(w, incidents=1)


async def test_before_a_send_that_a_person_decided_on() -> None:
    """The same where a person had it sent again."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.fail(POST_COMMENT, "drop")
        w.github.fail(POST_COMMENT, "drop then apply", occurrence=2)
        await w.run()
        await w.settle()
        assert (await w.runs())[0].status is Status.NEEDS_REVIEW
        faults = Faults()
        faults.at("before effects.claim", partial(the_clock_ticks, w))
        await decide(w, "retry", faults)
        first = w.own_comments(1)[0].id
        w.github.land_late()
        await w.settle()
        assert [item.id for item in w.own_comments(1)] == [first]
        # The claims from before the decision are not counted any more.
        await nothing_more(w, incidents=1, forgotten=True)


async def test_before_a_comment_is_signed_anew() -> None:
    """The same where the first comment lost its marker by a person's hand, and gets it back."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        w.github.fail(POST_COMMENT, "apply then drop")
        faults = Faults()
        faults.kill_at("after writer.create_comment")
        with pytest.raises(Killed):
            await w.run(faults=faults)
        first = w.own_comments(1)[0]
        rest = first.body.partition("\n")[2]
        w.github.as_user("alice").edit_comment(REPOSITORY, first.id, rest)
        await w.settle()
        assert len(w.own_comments(1)) == 2
        w.github.as_user("alice").comment(REPOSITORY, 1, "/retriage")
        faults.at("before effects.claim", partial(the_clock_ticks, w))
        await w.deliver(faults=faults)
        await w.settle()
        assert [item.id for item in w.own_comments(1)] == [first.id]
        await nothing_more(w, incidents=1, undone=True)


async def test_second_send_by_another_run() -> None:
    """What one run sent in vain, and a person gave up, another sends: the first request may land
    all the same, and is looked for."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        w.github.fail(POST_COMMENT, "drop")
        w.github.fail(POST_COMMENT, "drop then apply", occurrence=2)
        await w.run()
        await w.settle()
        assert (await decide(w, "abandon")).status is Status.COMPLETED
        await w.say("alice", 1, "/retriage")
        first = w.own_comments(1)[0].id
        w.github.land_late()
        await w.settle()
        assert [item.id for item in w.own_comments(1)] == [first]
        await nothing_more(w, incidents=1, undone=True)


async def test_after_a_second_send_nobody_can_read() -> None:
    """A worker dies over its second send, and its successor cannot read GitHub: the first request
    lands late, and is looked for all the same."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.fail(POST_COMMENT, "drop then apply")
        await w.run()
        faults = Faults()
        faults.kill_at("after writer.create_comment")
        while faults.armed:
            await asyncio.sleep(WINDOW / 10)
            with suppress(Killed):
                await w.tick(faults=faults)
        await w.lapse()
        w.github.fail("GET .", "502", times=None)
        assert [report.status for report in await w.tick()] == [Status.FAILED_AFTER_WRITE]
        w.github.faults.clear()
        assert (await w.run()).status is Status.COMPLETED
        first = w.own_comments(1)[0].id
        w.github.land_late()
        await w.settle()
        assert [item.id for item in w.own_comments(1)] == [first]
        await nothing_more(w, incidents=1)
