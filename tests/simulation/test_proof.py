"""What was sent and not seen: how GitHub is read until it is there, or proved absent."""

import asyncio

import pytest

from sandbox.github.faults import POST_COMMENT, POST_ISSUE
from tests.simulation.invariants import check, nothing_more
from tests.simulation.sight import LISTS, WINDOW, blind, comment_key
from tests.simulation.world import (
    REPOSITORY,
    Faults,
    policy_file,
    world,
)
from triage.contract import Evidence, Status

pytestmark = pytest.mark.anyio


async def test_samples_are_taken_at_the_quarters() -> None:
    """The clock reads five times over the absence window, without a lease, an attempt or a change
    of the run; then the run goes on and sends once more."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.fail(POST_COMMENT, "drop")
        await w.run()
        before, key = (await w.runs())[0], comment_key(w, 1)
        counts: list[int] = []
        while (await w.runs())[0] == before:
            counts.append(len((await w.ledger.effects.get([key]))[key].samples))
            await asyncio.sleep(WINDOW / 20)
            await w.tick()
        assert sorted(set(counts))[:4] == [1, 2, 3, 4]
        assert len(counts) >= 8
        run = (await w.runs())[0]
        assert run.status is Status.COMPLETED
        assert len(run.attempts) == 2
        await nothing_more(w)


async def test_hit_by_a_sample() -> None:
    """The lists lag: a later sample shows the comment, and the run goes on at once, long before the
    proof would be complete."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.fail(POST_COMMENT, "apply then drop")
        await blind(w, WINDOW * 0.4)
        report = await w.run()
        assert report.status is Status.FAILED_AFTER_WRITE
        reports = await w.settle()
        assert reports[-1].status is Status.COMPLETED
        assert len(w.github.requests("POST", "/comments")) == 1
        await nothing_more(w)


@pytest.mark.parametrize("hidden", ["issue_comments", "repository_comments"])
async def test_hit_in_one_view_of_two(hidden: str) -> None:
    """One view of the comments does not show it for longer than the absence window; the other one
    does, and any hit wins."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.fail(POST_COMMENT, "apply then drop")
        await blind(w, WINDOW * 2, (hidden,))
        await w.run()
        await w.settle()
        assert [run.status for run in await w.runs()] == [Status.COMPLETED]
        assert len(w.github.requests("POST", "/comments")) == 1
        await nothing_more(w)


@pytest.mark.parametrize("hidden", ["issues", "issues_by_creator"])
async def test_summary_in_one_view_of_two(hidden: str) -> None:
    """The same of the summary: by its creator, or by when it was updated."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.fail(POST_ISSUE, "apply then drop")
        await blind(w, WINDOW * 2, (hidden,))
        await w.run()
        await w.settle()
        assert [run.status for run in await w.runs()] == [Status.COMPLETED]
        assert len(w.summaries()) == 1
        await nothing_more(w)


async def test_hit_by_a_webhook() -> None:
    """No list shows the comment, but GitHub tells of it: who asks then is admitted, and the comment
    is read by its id."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.fail(POST_COMMENT, "apply then drop")
        faults = Faults()

        async def grow_blind() -> None:
            for view in LISTS:
                w.github.fail("GET .", "stale", view=view, lag=WINDOW * 2)

        faults.at("after runs.save_plan", grow_blind)
        assert (await w.run(faults=faults)).status is Status.FAILED_AFTER_WRITE
        assert (await w.run()).outcome == "refused"
        await w.deliver()
        assert (await w.run()).status is Status.COMPLETED
        assert len(w.github.requests("POST", "/comments")) == 1
        await nothing_more(w)


async def test_told_and_not_shown_yet() -> None:
    """GitHub acknowledged the comment, and reads of it lag for longer than a run waits: the run
    goes on a little later, not at once, so that its continuations do not run out meanwhile."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        await blind(w, WINDOW * 0.8, ("comment",))
        report = await w.run()
        assert report.status is Status.FAILED_AFTER_WRITE
        assert report.until is not None
        assert report.until > w.clock.now()
        await w.settle()
        run = (await w.runs())[0]
        assert run.status is Status.COMPLETED
        assert {effect.evidence for effect in run.effects} == {Evidence.CONFIRMED}
        await nothing_more(w)


async def test_two_sends_unseen() -> None:
    """Proved absent, sent once more, proved absent again: a person must look. Nothing is sent a
    third time."""
    async with world(["Bug: a", "Bug: b"], policy=policy_file()) as w:
        w.github.fail(POST_COMMENT.replace(r"\d+", "1"), "drop", times=None)
        await w.run()
        await w.settle()
        run = (await w.runs())[0]
        assert run.status is Status.NEEDS_REVIEW
        assert run.effects[0].reason == "sent twice and never seen on GitHub"
        assert len(w.github.requests("POST", "issues/1/comments")) == 2
        assert w.github.labels(REPOSITORY, 2) == ["bug"]
        await nothing_more(w)


async def test_unsettled_for_a_day() -> None:
    """Nobody could read for 24 hours: a program does not decide any more."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.fail(POST_COMMENT, "drop")
        await w.run()
        w.move(hours=24)
        await asyncio.sleep(WINDOW + 1)
        report = await w.again()
        assert report is not None
        assert report.status is Status.NEEDS_REVIEW
        await w.window()
        assert w.bot_comments(1) == []
        await check(w)
