"""One review issue for a repository, ever: two nights at once, commands, and people."""

import asyncio
import json
from collections.abc import Callable

import pytest

from sandbox.github.faults import PATCH_ISSUE, POST_ISSUE
from sandbox.github.people import Person
from tests.simulation.invariants import nothing_more
from tests.simulation.reviews import (
    commit,
    ends,
    found_lost,
    page,
    pages,
    reasons,
    review_file,
    review_settings,
)
from tests.simulation.world import (
    REPOSITORY,
    Faults,
    Killed,
    World,
    policy_file,
    world,
)
from triage.contract import Status
from triage.identifiers import JobKey
from worker import windows
from worker.resolving import resolution_of, resolve

REVIEW = JobKey.REVIEW
OTHER = "acme/other"


# Two nights at once


async def test_last_night_comes_after_tonight() -> None:
    """Last night's review was told to come back, and does when tonight's is done: the page never
    goes back to what it was the night before."""
    async with world([], policy=review_file(), job=REVIEW) as w:
        commit(w, "a.py")
        await w.run()
        commit(w, "b.py")
        w.move(days=1)
        w.github.fail(PATCH_ISSUE, "403 secondary", retry_after=7200)
        assert (await w.run()).status is Status.FAILED_BEFORE_WRITE
        commit(w, "c.py")
        w.move(days=1)
        assert (await w.run()).status is Status.COMPLETED
        tonight = page(w).body
        assert "window 2026-03-06: 1 new, 2 still there" in tonight
        await w.settle()
        assert page(w).body == tonight
        assert await ends(w) == [Status.COMPLETED] * 3
        assert (await w.runs())[1].effects[0].reason == "superseded"
        await nothing_more(w)


async def test_tonight_while_last_night_is_in_doubt() -> None:
    """The issue may be there or not: tonight's review leaves it to last night's, which sends it
    once more; the night after edits it."""
    async with world([], policy=review_file(), job=REVIEW) as w:
        commit(w, "a.py")
        w.github.fail(POST_ISSUE, "502")
        assert (await w.run()).status is Status.FAILED_AFTER_WRITE
        assert (await w.run(windows.Ask(by="hand", forced="1"))).status is Status.COMPLETED
        assert await reasons(w) == ["blocked"]
        assert pages(w) == []
        await w.settle()
        assert len(pages(w)) == 1
        commit(w, "b.py")
        w.move(days=1)
        assert (await w.run()).status is Status.COMPLETED
        assert "1 new, 1 still there" in page(w).body
        await nothing_more(w)


async def test_tonight_while_last_night_needs_a_person() -> None:
    """Whoever resolves it lets the next night write."""
    async with world([], policy=review_file(), job=REVIEW) as w:
        commit(w, "a.py")
        w.github.fail(POST_ISSUE, "422")
        assert (await w.run()).status is Status.NEEDS_REVIEW
        w.move(days=1)
        assert (await w.run()).status is Status.COMPLETED
        assert await reasons(w) == ["blocked"]
        assert pages(w) == []
        last = (await w.runs())[0].inputs.dedupe_key
        words = [last, "abandon", "tonight's is newer"]
        decided = resolution_of(words, by="alice", at=w.clock.now())
        await resolve(last, decided, w.ports())
        w.move(days=1)
        assert (await w.run()).status is Status.COMPLETED
        assert "window 2026-03-06" in page(w).body
        await nothing_more(w)


async def test_what_fails_before_the_page_is_not_over() -> None:
    """The page could not be read before its edit: nothing was written, which is no end."""
    async with world([], policy=review_file(), job=REVIEW) as w:
        commit(w, "a.py")
        await w.run()
        commit(w, "b.py")
        w.move(days=1)
        w.github.fail(r"GET ^/repos/[^/]+/[^/]+/issues/\d+$", "502", times=4)
        assert (await w.run()).status is Status.FAILED_BEFORE_WRITE
        await w.settle()
        assert await ends(w) == [Status.COMPLETED] * 2
        assert "1 new, 1 still there" in page(w).body
        assert len(w.agent.trees) == 2
        await nothing_more(w)


@pytest.mark.parametrize(
    ("mode", "instant"),
    [("comment", "before effects.get"), ("observe", "before repositories.report")],
)
async def test_worker_that_dies_each_time_has_not_ended_it(mode: str, instant: str) -> None:
    """A plan stands, and nobody could write it: that is a failure, not a night without news."""
    async with world([], policy=review_file(mode=mode), job=REVIEW) as w:
        commit(w, "a.py")
        await w.install()
        died = 0
        while (pause := await w.next_due()) is not None:
            await asyncio.sleep(pause)
            faults = Faults()
            faults.kill_at(instant)
            try:
                await w.tick(faults=faults)
            except Killed:
                died += 1
        assert died > 1
        [run] = await w.runs()
        assert (run.status, run.reason) == (
            Status.FAILED_BEFORE_WRITE,
            "its worker died each time",
        )


# Commands


@pytest.mark.parametrize("others", [False, True], ids=["alone", "beside the triage"])
async def test_command_on_the_page(others: bool) -> None:
    """Who may has the window reviewed again, forced or not, in the same issue, and is answered; who
    may not is refused. The policy need not have a triage."""
    triage = json.loads(policy_file())["jobs"] if others else {}
    jobs = {"jobs": {**triage, "nightly-repo-review": review_settings()}}
    async with world(["Bug: a"], policy=json.dumps(jobs), job=REVIEW) as w:
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        w.github.add_collaborator(REPOSITORY, "eve", "read")
        commit(w, "a.py")
        await w.run()
        number = page(w).number
        assert await w.say("eve", number, "/retriage") == []
        assert w.reactions(number) == ["eyes", "confused"]
        for at, word in enumerate(("/retriage", "/retriage --force"), 1):
            commit(w, f"{at}.py", "it leaks a file")
            [report] = await w.say("alice", number, word)
            assert report.status is Status.COMPLETED
            assert w.reactions(number) == ["eyes", "+1"]
            assert f"1 new, {at} still there" in page(w).body
        assert [run.key.job for run in await w.runs()] == [REVIEW] * 3
        assert w.bot_comments(number) == []
        await nothing_more(w)


async def test_command_on_a_page_of_a_forgotten_run() -> None:
    """The ledger was lost, and the policy has no review any more: the bot's own issue is none to
    triage."""
    async with world(["Bug: a"], policy=review_file(), job=REVIEW) as w:
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        commit(w, "a.py")
        await w.run()
        w.put_policy(policy_file())
        await found_lost(w)
        await w.settle()
        assert await w.say("alice", page(w).number, "/retriage") == []
        assert w.reactions(page(w).number) == ["eyes", "confused"]
        assert w.bot_comments(page(w).number) == []


async def test_mode_is_raised_at_noon() -> None:
    """The window was observed, and is written once the policy says so; once."""
    async with world([], policy=review_file(mode="observe"), job=REVIEW) as w:
        commit(w, "a.py")
        await w.install()
        await w.settle()
        assert pages(w) == []
        w.put_policy(review_file())
        for _ in range(2):
            await w.window()
        assert "0 new, 1 still there" in page(w).body
        assert await ends(w) == [Status.COMPLETED] * 2
        await nothing_more(w)


# People


def _closes(w: World, who: Person, number: int) -> None:
    who.close(REPOSITORY, number)


def _locks(w: World, who: Person, number: int) -> None:
    who.lock(REPOSITORY, number)


def _renames(w: World, who: Person, number: int) -> None:
    who.edit_issue(REPOSITORY, number, title="Ours")


def _writes_over(w: World, who: Person, number: int) -> None:
    who.edit_issue(REPOSITORY, number, body="Mine")


def _adds(w: World, who: Person, number: int) -> None:
    who.edit_issue(REPOSITORY, number, body=f"{page(w).body}\nSee also the other one.")


def _forges(w: World, who: Person, number: int) -> None:
    head, found, rest = page(w).body.partition(" sig=")
    assert found
    who.edit_issue(REPOSITORY, number, body=f"{head}{found}{'0' * 64}{rest[64:]}")


def _deletes(w: World, who: Person, number: int) -> None:
    who.delete_issue(REPOSITORY, number)


def _transfers(w: World, who: Person, number: int) -> None:
    who.transfer(REPOSITORY, number, OTHER)


DEEDS: dict[str, tuple[Callable[[World, Person, int], None], str, Status]] = {
    "closes": (_closes, "", Status.COMPLETED),
    "locks": (_locks, "", Status.COMPLETED),
    "retitles": (_renames, "", Status.COMPLETED),
    "writes over": (_writes_over, "human-edited", Status.COMPLETED),
    "adds to": (_adds, "human-edited", Status.COMPLETED),
    "forges": (_forges, "the bot's comment bears a bad signature", Status.NEEDS_REVIEW),
    "deletes": (_deletes, "human-removed", Status.COMPLETED),
    "transfers": (_transfers, "human-removed", Status.COMPLETED),
}
"""What somebody does to the page; why the next night leaves it, and how that ends."""


@pytest.mark.parametrize("deed", DEEDS)
async def test_people_and_the_page(deed: str) -> None:
    """A page that is closed or locked is still the one that is edited; what a person made of it is
    left; in no case is there a second one."""
    do, reason, status = DEEDS[deed]
    async with world([], policy=review_file(), job=REVIEW) as w:
        w.github.add_repository(OTHER, id=99)
        commit(w, "a.py")
        await w.run()
        do(w, w.github.as_user("maintainer"), page(w).number)
        left = [issue.body for issue in pages(w)]
        await w.deliver()
        commit(w, "b.py")
        w.move(days=1)
        assert (await w.run()).status is status
        assert await reasons(w) == [reason]
        await w.settle()
        if reason:
            assert [issue.body for issue in pages(w)] == left
        else:
            assert "1 new, 1 still there" in page(w).body
        w.move(days=1)
        await w.run()
        await w.settle()
        assert len(w.github.requests("POST", "/issues", applied=True)) == 1
        await nothing_more(w, undone=True)


async def test_page_that_somebody_copied() -> None:
    """A marker in another's issue is no marker, not for a ledger that was lost either."""
    async with world([], policy=review_file(), job=REVIEW) as w:
        w.github.as_user("eve").open_issue(REPOSITORY, "Nothing yet")
        commit(w, "a.py")
        await w.run()
        w.github.as_user("eve").edit_issue(REPOSITORY, 1, body=page(w).body)
        await found_lost(w)
        await w.settle()
        assert await ends(w) == [Status.NO_CHANGE]
        assert page(w).number == 2
        await nothing_more(w, forgotten=True)
