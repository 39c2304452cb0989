"""GitHub's views lag and flap, each in its own way: nothing is written twice."""

import asyncio

import pytest

from sandbox.github.faults import POST_COMMENT, POST_ISSUE
from tests.simulation.invariants import check, nothing_more
from tests.simulation.sight import LISTS
from tests.simulation.world import REPOSITORY, TIMING, policy_file, world
from triage.contract import Evidence, Status

pytestmark = pytest.mark.anyio


async def test_views_that_lag_and_flap() -> None:
    """Each view of GitHub, and all of them, late or flapping by half the absence window, while
    nothing is lost, the comment's reply is, or the comment itself: at the end everything is there
    once, and was never counted as an incident."""
    await late_views(0.45)


async def test_views_that_lag_nearly_as_long_as_the_window() -> None:
    """The same where they lag longer: a run whose effects come to light one after the other may
    have had its six continuations by then, and asks a person. Nothing is there twice."""
    await late_views(0.9, Status.NEEDS_REVIEW)


async def late_views(part: float, *also: Status) -> None:
    """Every story: lists late by this part of the window, and how a run may end besides."""
    for view in (*LISTS, "issue", "comment", "events", None):
        for seen in ("stale", "flap"):
            for fault in (None, "apply then drop", "drop"):
                await late_view(part, also, view=view, seen=seen, fault=fault)


async def late_view(
    part: float, also: tuple[Status, ...], *, view: str | None, seen: str, fault: str | None
) -> None:
    """One story."""
    lag = TIMING.absence_window.total_seconds() * part
    titles = ["Bug: a", "Question: b"]
    async with world(titles, policy=policy_file()) as w:
        await asyncio.sleep(lag)
        options = {"view": view} if view else {}
        w.github.fail("GET .", seen, lag=lag, seed=len(str(view)), **options)
        if fault is not None and view not in ("issues", "issues_by_creator"):
            w.github.fail(POST_COMMENT, fault)
        if fault is not None and view in ("issues", "issues_by_creator", "issue", None):
            w.github.fail(POST_ISSUE, fault)
        await w.run()
        await w.settle()
        story = f"{view} {seen} {fault}"
        runs = await w.runs()
        assert len(runs) == 1, story
        if runs[0].status in also:
            assert (runs[0].reason, runs[0].continuations) == ("the sixth continuation", 6), story
            await check(w)
            return
        assert runs[0].status is Status.COMPLETED, story
        unseen = [e for e in (await w.runs())[0].effects if e.evidence is not Evidence.CONFIRMED]
        assert not unseen, story
        assert [w.github.labels(REPOSITORY, n) for n in (1, 2)] == [["bug"], ["question"]], story
        assert len(w.summaries()) == 1, story
        w.github.faults.clear()
        await nothing_more(w)
