"""GitHub applies a write and its answer never comes, in the three ways that this happens."""

import asyncio

import pytest

from sandbox.github.faults import POST_COMMENT, POST_ISSUE, POST_LABELS
from tests.simulation.invariants import check
from tests.simulation.world import world
from triage.contract import Evidence, Status

pytestmark = pytest.mark.anyio

UNANSWERED = ["apply then drop", "apply then 502", "hang after applying"]


@pytest.mark.parametrize("fault", UNANSWERED)
async def test_comment_lands_but_its_reply_is_lost(fault: str) -> None:
    """The run is failed-after-write; the next one sees the comment, adopts it and completes."""
    async with world(["Bug: a", "Question: b"]) as w:
        w.github.fail(POST_COMMENT, fault, **({"seconds": 60} if "hang" in fault else {}))
        first = await w.run()
        assert first.status is Status.FAILED_AFTER_WRITE
        assert w.github.labels("acme/api", 1) == []
        assert w.github.labels("acme/api", 2) == ["question"]
        second = await w.run()
        assert second.status is Status.COMPLETED
        assert w.github.labels("acme/api", 1) == ["bug"]
        assert len(w.bot_comments(1)) == 1
        await check(w)


@pytest.mark.parametrize("fault", UNANSWERED)
async def test_label_lands_but_its_reply_is_lost(fault: str) -> None:
    """The next run reads the issue and has nothing to add."""
    async with world(["Bug: a"]) as w:
        w.github.fail(POST_LABELS, fault, **({"seconds": 60} if "hang" in fault else {}))
        assert (await w.run()).status is Status.FAILED_AFTER_WRITE
        assert (await w.run()).status is Status.COMPLETED
        assert len(w.github.requests("POST", "/labels")) == 1
        await check(w)


@pytest.mark.parametrize("fault", UNANSWERED)
async def test_summary_lands_but_its_reply_is_lost(fault: str) -> None:
    """The next run finds the summary issue and keeps that one."""
    async with world(["Bug: a"]) as w:
        w.github.fail(POST_ISSUE, fault, **({"seconds": 60} if "hang" in fault else {}))
        assert (await w.run()).status is Status.FAILED_AFTER_WRITE
        assert (await w.run()).status is Status.COMPLETED
        assert len([i for i in w.github.issues("acme/api") if i.author == "retriage[bot]"]) == 1
        await check(w)


@pytest.mark.parametrize("fault", ["drop", "502", "hang before applying"])
async def test_comment_never_lands(fault: str) -> None:
    """Asked too early the run is refused with the time of the proof; once the absence is proved by
    five reads, the comment is sent once more."""
    async with world(["Bug: a"]) as w:
        options = {"seconds": 86_400} if "hang" in fault else {}
        w.github.fail(POST_COMMENT, fault, **options)
        first = await w.run()
        assert first.status is Status.FAILED_AFTER_WRITE
        assert first.until is not None
        early = await w.run()
        assert (early.outcome, early.until) == ("refused", first.until)
        for _ in range(6):
            await asyncio.sleep(w.timing.absence_window.total_seconds() / 4)
            last = await w.run()
            if last.status is Status.COMPLETED:
                break
        assert last.status is Status.COMPLETED
        assert len(w.github.requests("POST", "issues/1/comments")) == 2
        assert len(w.bot_comments(1)) == 1
        await check(w)


async def test_evidence_is_frozen() -> None:
    """What a completed run proved stays, whatever happens on GitHub later."""
    async with world(["Bug: a"]) as w:
        await w.run()
        w.github.as_user("maintainer").unlabel("acme/api", 1, "bug")
        again = await w.run()
        assert again.outcome == "reused"
        assert again.drift == ("issue 1: label 'bug' is gone",)
        run = (await w.runs())[0]
        assert run.status is Status.COMPLETED
        assert {effect.evidence for effect in run.effects} == {Evidence.CONFIRMED}
