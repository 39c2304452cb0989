"""One review issue for a repository, whatever the ledger forgets, however late GitHub shows it."""

import asyncio

import pytest

from sandbox.github.faults import POST_ISSUE
from tests.simulation.invariants import nothing_more
from tests.simulation.reviews import (
    commit,
    ends,
    found_lost,
    page,
    pages,
    review_file,
)
from tests.simulation.sight import WIDE, WIDE_WINDOW, blind
from tests.simulation.world import BOT, REPOSITORY, REPOSITORY_ID, Faults, Killed, world
from triage.contract import Status
from triage.findings import ColdFor
from triage.identifiers import JobKey

REVIEW = JobKey.REVIEW


@pytest.mark.parametrize("renamed", [False, True])
async def test_wiped_with_the_page_standing(renamed: bool) -> None:
    """The page is found by its marker, and edited; the review starts cold."""
    async with world([], policy=review_file(), job=REVIEW) as w:
        commit(w, "a.py")
        await w.run()
        number = page(w).number
        commit(w, "b.py")
        w.move(days=1)
        if renamed:
            w.github.as_user("maintainer").rename_repository(REPOSITORY, "moved")
        await found_lost(w)
        await w.settle()
        assert await ends(w) == [Status.COMPLETED]
        now = "acme/moved" if renamed else REPOSITORY
        [found] = [issue for issue in w.github.issues(now) if issue.author == BOT]
        assert found.number == number
        assert "window 2026-03-05: 2 new" in found.body
        run = (await w.runs())[0]
        assert run.snapshot_summary is not None
        assert run.snapshot_summary.review is not None
        assert run.snapshot_summary.review.why is ColdFor.FIRST


LACKS = {
    "the run": ("before runs.save", "after runs.save"),
    "the snapshot": ("before runs.save_snapshot", "after runs.save_snapshot"),
    "the session": ("before runs.save_snapshot", "after agent.review"),
    "the answer": ("before agent.review", "after agent.review"),
    "the plan": ("before runs.save_plan", "after runs.save_plan"),
    "the plan, which was written": ("before runs.save_plan", "after writer.edit_issue"),
    "the claim": ("before effects.claim", "after writer.edit_issue"),
    "the acknowledgement": ("before effects.acknowledge", "after effects.acknowledge"),
    "the end": ("before runs.settle", "after runs.settle"),
}
"""What a replica lacks that is promoted: when it is copied, and when it takes over."""


@pytest.mark.parametrize("lacks", LACKS)
@pytest.mark.parametrize("first", [True, False], ids=["first", "later"])
async def test_failed_over_to_a_replica_that_lacks(lacks: str, first: bool) -> None:
    """One page, of a review that stands; what is remembered fits it."""
    async with world([], policy=review_file(), job=REVIEW) as w:
        commit(w, "a.py")
        if not first:
            await w.run()
            commit(w, "b.py")
            w.move(days=1)
        faults, replica = Faults(), []
        copied, promoted = LACKS[lacks]
        if first:
            promoted = promoted.replace("edit_issue", "create_issue")

        async def replicate() -> None:
            replica.append(w.server.copy())

        async def promote() -> None:
            w.server.restore(replica[0])

        faults.at(copied, replicate)
        faults.at(promoted, promote)
        await w.install()
        await w.tick()
        await w.tick(faults=faults)
        assert not faults.armed
        await w.settle()
        await w.window()
        await w.settle()
        assert set(await ends(w)) == {Status.COMPLETED}
        assert len(w.github.requests("POST", "/issues", applied=True)) == 1
        assert f"{'0' if first else '1'} still there" in page(w).body
        await nothing_more(w, incidents=1, forgotten=True)


# Duplicates


@pytest.mark.parametrize(
    "point", [None, "after effects.claim", "after writer.edit_issue", "after effects.acknowledge"]
)
async def test_two_pages_become_one(point: str | None) -> None:
    """The views lag longer than the absence window: the later page loses its marker and is closed,
    also where the remover dies; the next night edits the first."""
    async with world([], policy=review_file(), job=REVIEW, timing=WIDE) as w:
        commit(w, "a.py")
        w.github.fail(POST_ISSUE, "apply then drop")
        await blind(w, WIDE_WINDOW * 1.5, ("issues", "issues_by_creator"))
        await w.run()
        while len(pages(w)) < 2:
            await asyncio.sleep(await w.next_due() or 0)
            await w.tick()
        faults = Faults()
        if point is not None:
            faults.kill_at(point)
        while (pause := await w.next_due()) is not None:
            await asyncio.sleep(pause)
            try:
                await w.tick(faults=faults)
            except Killed:
                continue
        assert not faults.armed
        first, second = pages(w)
        assert (first.state, second.state) == ("open", "closed")
        assert "<!-- retriage" not in second.body
        removal = (await w.runs())[-1]
        assert removal.key.window.startswith("duplicate-")
        assert removal.status is Status.COMPLETED
        commit(w, "b.py")
        w.move(days=1)
        assert (await w.run()).status is Status.COMPLETED
        assert "1 new, 1 still there" in pages(w)[0].body
        await nothing_more(w, incidents=1)


# Missed windows


async def test_missed_windows_are_named() -> None:
    """Nobody was there for three nights: the page names them."""
    async with world([], policy=review_file(), job=REVIEW) as w:
        commit(w, "a.py")
        await w.install()
        await w.settle()
        w.move(days=4)
        await w.settle()
        assert "Windows never started: 2026-03-05, 2026-03-06, 2026-03-07" in page(w).body
        assert await ends(w) == [Status.COMPLETED] * 2
        state = await w.ledger.reviews.last(REPOSITORY_ID)
        assert state is not None
        assert state.window == "2026-03-08"
