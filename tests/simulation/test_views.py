"""GitHub's views lag and flap, each in its own way: nothing is written twice."""

import asyncio
from functools import partial

import pytest

from sandbox.github.faults import POST_COMMENT, POST_ISSUE
from tests.simulation.invariants import nothing_more
from tests.simulation.sight import LISTS
from tests.simulation.world import (
    REPOSITORY,
    SLOW,
    policy_file,
    together,
    world,
)
from triage.contract import Evidence, Status

pytestmark = pytest.mark.anyio


async def test_views_that_lag_and_flap(redis_url: str) -> None:
    """Each view of GitHub, and all of them, late or flapping by less than the absence window, while
    nothing is lost, the comment's reply is, or the comment itself: at the end everything is there
    once, and was never counted as an incident."""
    stories = [
        partial(late_view, view=view, seen=seen, fault=fault)
        for view in (*LISTS, "issue", "comment", "events", None)
        for seen in ("stale", "flap")
        for fault in (None, "apply then drop", "drop")
    ]
    for at in range(0, len(stories), 16):
        await together(redis_url, stories[at : at + 16])


async def late_view(redis_url: str, *, view: str | None, seen: str, fault: str | None) -> None:
    """One story of the test above."""
    lag = SLOW.absence_window.total_seconds() * 0.6
    titles = ["Bug: a", "Question: b"]
    async with world(redis_url, titles, policy=policy_file(), timing=SLOW) as w:
        await asyncio.sleep(lag)
        options = {"view": view} if view else {}
        w.github.fail("GET .", seen, lag=lag, seed=len(str(view)), **options)
        if fault is not None and view not in ("issues", "issues_by_creator"):
            w.github.fail(POST_COMMENT, fault)
        if fault is not None and view in ("issues", "issues_by_creator", "issue", None):
            w.github.fail(POST_ISSUE, fault)
        await w.run()
        await w.settle(within=30)
        story = f"{view} {seen} {fault}"
        assert [run.status for run in await w.runs()] == [Status.COMPLETED], story
        unseen = [e for e in (await w.runs())[0].effects if e.evidence is not Evidence.CONFIRMED]
        assert not unseen, story
        assert [w.github.labels(REPOSITORY, n) for n in (1, 2)] == [["bug"], ["question"]], story
        assert len(w.summaries()) == 1, story
        w.github.faults.clear()
        await nothing_more(w)
