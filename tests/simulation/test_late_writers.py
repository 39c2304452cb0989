"""Requests that land late: two become one, and it is told as an incident."""

import asyncio

import pytest

from sandbox.github.faults import POST_COMMENT, POST_ISSUE
from tests.simulation.invariants import nothing_more
from tests.simulation.sight import LISTS, WIDE, WIDE_WINDOW, WINDOW, blind, comment_key
from tests.simulation.world import (
    BOT,
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
from worker import recovery
from worker.pipeline import execute
from worker.ports import LeaseLost

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("views", [LISTS, (*LISTS, "comment")], ids=["lists", "all"])
async def test_lag_above_the_window_is_converged(views: tuple[str, ...]) -> None:
    """GitHub shows the comment later than the absence window: it is sent a second time, which no
    reading could prevent. The first one stays, the bot's later one goes, and it is an incident."""
    async with world(["Bug: a"], policy=policy_file(), timing=WIDE) as w:
        w.github.fail(POST_COMMENT, "apply then drop")
        await blind(w, WIDE_WINDOW * 1.5, views)
        await w.run()
        first = w.own_comments(1)[0].id
        await w.settle()
        assert len(w.github.requests("POST", "/comments")) == 2
        assert [item.id for item in w.own_comments(1)] == [first]
        runs = await w.runs()
        assert [run.status for run in runs] == [Status.COMPLETED] * 2
        assert runs[1].key.window.startswith("duplicate-")
        assert [line for line in w.lines if line.startswith("INCIDENT kind=duplicate")]
        await nothing_more(w, incidents=1)


async def test_the_comment_that_stays_is_the_one_that_is_edited() -> None:
    """After two became one, ``/retriage`` edits the one that is left."""
    async with world(["Bug: a"], policy=policy_file(), timing=WIDE) as w:
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        w.github.fail(POST_COMMENT, "apply then drop")
        await blind(w, WIDE_WINDOW * 1.5)
        await w.run()
        first = w.own_comments(1)[0].id
        await w.settle()
        w.github.as_user("reporter").edit_issue(REPOSITORY, 1, title="Question: a")
        await w.say("alice", 1, "/retriage")
        assert [item.id for item in w.own_comments(1)] == [first]
        assert "`question`" in w.bot_comments(1)[0]
        await nothing_more(w, incidents=1, undone=True)


async def test_two_summaries_are_converged() -> None:
    """The same with the summary: the later issue loses its marker and is closed."""
    async with world(["Bug: a"], policy=policy_file(), timing=WIDE) as w:
        w.github.fail(POST_ISSUE, "apply then drop")
        await blind(w, WIDE_WINDOW * 1.5, ("issues", "issues_by_creator"))
        await w.run()
        await w.settle()
        own = [issue for issue in w.github.issues(REPOSITORY) if issue.author == BOT]
        assert [issue.state for issue in own] == ["open", "closed"]
        assert "<!-- retriage" not in own[1].body
        await nothing_more(w, incidents=1)


LATE = [
    "after leases.acquire",
    "after runs.save",
    "after effects.claim",
    "before writer.delete_comment",
    "after writer.delete_comment",
    "after effects.acknowledge",
    "after runs.settle",
]


async def test_request_of_a_dead_worker_lands_late() -> None:
    """A worker dies with its request under way; its successor proves the comment absent and sends
    it again; then the old request lands. The look for late writers removes the later one, once, and
    counts it once, also where the remover dies at any point of it."""
    for point in (None, *LATE):
        await late_landing(point=point)


async def late_landing(*, point: str | None) -> None:
    """One story of the test above: where the remover dies."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.fail(POST_COMMENT, "drop then apply")
        faults = Faults()
        faults.kill_at("after writer.create_comment")
        with pytest.raises(Killed):
            await w.run(faults=faults)
        await w.lapse()
        while len(w.github.requests("POST", "/comments")) < 2:
            await asyncio.sleep(WINDOW / 10)
            await w.tick()
        kept = w.own_comments(1)[0].id
        assert w.github.land_late() == 1
        assert len(w.own_comments(1)) == 2
        if point is not None:
            await _kill_the_remover(w, point)
        await w.settle()
        assert [item.id for item in w.own_comments(1)] == [kept], point
        assert [run.status for run in await w.runs()] == [Status.COMPLETED] * 2, point
        await nothing_more(w, incidents=1)


async def _kill_the_remover(w: World, point: str) -> None:
    """The worker that looks for late writers dies there."""
    faults = Faults()
    faults.kill_at(point)
    while faults.armed:
        await asyncio.sleep(WINDOW / 10)
        try:
            await w.tick(faults=faults)
        except Killed:
            break
    await w.lapse()


async def test_removal_whose_reply_is_lost() -> None:
    """The later comment is deleted and the reply never comes: it is deleted once more, and ends."""
    async with world(["Bug: a"], policy=policy_file(), timing=WIDE) as w:
        w.github.fail(POST_COMMENT, "apply then drop")
        await blind(w, WIDE_WINDOW * 1.5)
        w.github.fail("DELETE /comments/", "apply then drop")
        await w.run()
        await w.settle()
        assert len(w.own_comments(1)) == 1
        assert [run.status for run in await w.runs()] == [Status.COMPLETED] * 2
        await nothing_more(w, incidents=1)


async def test_removal_that_github_forbids() -> None:
    """The App may not delete its later comment: the removal needs a person. Asked for by hand it is
    no run of the issue: it does nothing, and asks the model nothing."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.fail(POST_COMMENT, "apply then drop")
        await blind(w, WINDOW * 1.5)
        w.github.fail("DELETE /comments/", "403", message="Resource not accessible", times=None)
        await w.run()
        await w.settle()
        removal = (await w.runs())[1]
        assert removal.status is Status.NEEDS_REVIEW
        report = await execute(removal.inputs, w.ports(), by_hand=True)
        assert (report.outcome, report.status) == ("stopped", Status.NEEDS_REVIEW)
        assert len(w.agent.asked) == 1
        assert len(w.own_comments(1)) == 2
        assert await w.settle() == []


async def test_late_request_lands_before_the_proof() -> None:
    """It lands while its absence is being proved: it is adopted, and nothing is sent again."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.fail(POST_COMMENT, "drop then apply")
        await w.run()
        await asyncio.sleep(WINDOW / 2)
        await w.tick()
        w.github.land_late()
        await w.settle()
        assert (await w.runs())[0].status is Status.COMPLETED
        assert len(w.github.requests("POST", "/comments")) == 1
        await nothing_more(w)


async def test_stopped_between_claim_and_request() -> None:
    """The whole process stands still after its claim, for longer than its lease: what it claimed is
    not sent any more."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        faults = Faults()

        async def stand_still() -> None:
            await w.stand_still(TIMING.lease + SECOND)

        faults.at("before writer.create_comment", stand_still)
        with pytest.raises(LeaseLost):
            await w.run(faults=faults)
        assert not w.github.requests("POST", "/comments")
        await w.settle()
        assert [run.status for run in await w.runs()] == [Status.COMPLETED]
        assert len(w.github.requests("POST", "/comments")) == 1
        await nothing_more(w)


async def test_slow_between_claim_and_request() -> None:
    """A little too slow: the claim is withdrawn and made again, and counted as one send."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        faults = Faults()

        async def dawdle() -> None:
            await asyncio.sleep(TIMING.margin.total_seconds() + 1)

        faults.at("before writer.create_comment", dawdle)
        assert (await w.run(faults=faults)).status is Status.COMPLETED
        assert [effect.sends for effect in (await w.runs())[0].effects] == [1, 1, 1]
        await nothing_more(w)


async def test_removal_waits_while_the_ledger_is_quiet() -> None:
    """A second comment is found while the ledger, which fell back to a replica, may not be written
    by: waiting is no attempt, and the removal is not given up before it may begin."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.fail(POST_COMMENT, "drop then apply")
        await w.run()
        while len(w.github.requests("POST", "/comments")) < 2:
            await asyncio.sleep(WINDOW / 10)
            await w.tick()
        first = w.own_comments(1)[0].id
        w.github.land_late()
        w.server.restore(w.server.copy())
        await w.settle()
        assert [item.id for item in w.own_comments(1)] == [first]
        assert [run.status for run in await w.runs()] == [Status.COMPLETED] * 2
        lost = [line for line in w.lines if line.startswith("INCIDENT kind=ledger-lost")]
        assert len(lost) == 1
        await nothing_more(w, incidents=2)


async def test_deleted_comment_does_not_take_its_successor_along() -> None:
    """A worker dies before it has saved that its comment was seen; a person deletes the comment and
    asks for another. The run that goes on was told of the first one, which no read shows: the
    second one stays."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        faults = Faults()
        faults.kill_at("after reader.comment")
        with pytest.raises(Killed):
            await w.run(faults=faults)
        w.github.as_user("alice").delete_comment(REPOSITORY, w.own_comments(1)[0].id)
        await w.say("alice", 1, "/retriage --force")
        second = w.own_comments(1)[0].id
        await w.settle()
        assert [item.id for item in w.own_comments(1)] == [second]
        await nothing_more(w)


async def test_look_that_comes_too_early_is_not_the_last() -> None:
    """A look for late writers waited in the queue while the comment was sent a second time: the one
    that falls due a window after that is not taken off with it."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.fail(POST_COMMENT, "drop then apply")
        await w.run()
        while len(w.github.requests("POST", "/comments")) < 2:
            await asyncio.sleep(WINDOW / 10)
            await w.tick()
        await recovery.verify(comment_key(w, 1), w.ports())
        first = w.own_comments(1)[0].id
        w.github.land_late()
        await w.settle()
        assert [item.id for item in w.own_comments(1)] == [first]
        await nothing_more(w, incidents=1)


async def test_marker_that_a_person_took_off_comes_back() -> None:
    """A comment landed unseen, and a person took its marker off, so another was sent. Then the
    webhook of the first one comes, and ``/retriage`` signs it anew: the two become one."""
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
        await w.say("alice", 1, "/retriage")
        await w.settle()
        assert [item.id for item in w.own_comments(1)] == [first.id]
        await nothing_more(w, incidents=1, undone=True)
