"""What was sent and not seen: how GitHub is read until it is there, or proved absent."""

import asyncio
import time
from dataclasses import replace
from functools import partial

import pytest

from sandbox.github.faults import POST_COMMENT, POST_ISSUE
from tests.simulation.invariants import check, nothing_more
from tests.simulation.world import (
    BOT,
    KEYS,
    REPOSITORY,
    REPOSITORY_ID,
    SECOND,
    SLOW,
    TIMING,
    Faults,
    Killed,
    World,
    policy_file,
    together,
    world,
)
from triage.contract import Evidence, Status
from triage.identifiers import EffectKind, Family, effect_key
from triage.marker import MarkerKey, MarkerKeys, stamp
from worker.ports import LeaseLost

pytestmark = pytest.mark.anyio

WINDOW = TIMING.absence_window.total_seconds()
WIDE_WINDOW = WINDOW * 3
WIDE = replace(TIMING, absence_window=SECOND * WIDE_WINDOW)
"""Bounds for lags between one window and two: a machine that is busy must not close that gap."""
LISTS = ("issue_comments", "repository_comments", "issues", "issues_by_creator")
OTHER_KEYS = MarkerKeys((MarkerKey("k2", b"fedcba9876543210"),))


def comment_key(w: World, number: int) -> str:
    """The effect key of the bot's comment on an issue."""
    issue = w.github.issue(REPOSITORY, number)
    return effect_key(REPOSITORY_ID, issue.id, Family.TRIAGE, EffectKind.COMMENT)


async def blind(w: World, lag: float, views: tuple[str, ...] = LISTS) -> None:
    """From now on these views show only what is older than this many seconds: they show at least
    what is there."""
    await asyncio.sleep(lag)
    for view in views:
        w.github.fail("GET .", "stale", view=view, lag=lag)


# --- Seen, or proved absent ---------------------------------------------------------------------


async def test_samples_are_taken_at_the_quarters(redis_url: str) -> None:
    """The clock reads five times over the absence window, without a lease, an attempt or a change
    of the run; then the run goes on and sends once more."""
    async with world(redis_url, ["Bug: a"], policy=policy_file()) as w:
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


async def test_hit_by_a_sample(redis_url: str) -> None:
    """The lists lag: a later sample shows the comment, and the run goes on at once, long before the
    proof would be complete."""
    async with world(redis_url, ["Bug: a"], policy=policy_file()) as w:
        w.github.fail(POST_COMMENT, "apply then drop")
        await blind(w, WINDOW * 0.4)
        report = await w.run()
        assert report.status is Status.FAILED_AFTER_WRITE
        reports = await w.settle()
        assert reports[-1].status is Status.COMPLETED
        assert len(w.github.requests("POST", "/comments")) == 1
        await nothing_more(w)


async def test_hit_by_a_webhook(redis_url: str) -> None:
    """No list shows the comment, but GitHub tells of it: who asks then is admitted, and the comment
    is read by its id."""
    async with world(redis_url, ["Bug: a"], policy=policy_file()) as w:
        w.github.fail(POST_COMMENT, "apply then drop")
        faults = Faults()

        async def grow_blind() -> None:
            for view in LISTS:
                w.github.fail("GET .", "stale", view=view, lag=60)

        faults.at("after runs.save_plan", grow_blind)
        assert (await w.run(faults=faults)).status is Status.FAILED_AFTER_WRITE
        assert (await w.run()).outcome == "refused"
        await w.deliver()
        assert (await w.run()).status is Status.COMPLETED
        assert len(w.github.requests("POST", "/comments")) == 1
        await nothing_more(w)


async def test_two_sends_unseen(redis_url: str) -> None:
    """Proved absent, sent once more, proved absent again: a person must look. Nothing is sent a
    third time."""
    async with world(redis_url, ["Bug: a", "Bug: b"], policy=policy_file()) as w:
        w.github.fail(POST_COMMENT.replace(r"\d+", "1"), "drop", times=None)
        await w.run()
        await w.settle()
        run = (await w.runs())[0]
        assert run.status is Status.NEEDS_REVIEW
        assert run.effects[0].reason == "sent twice and never seen on GitHub"
        assert len(w.github.requests("POST", "issues/1/comments")) == 2
        assert w.github.labels(REPOSITORY, 2) == ["bug"]
        await nothing_more(w)


async def test_unsettled_for_a_day(redis_url: str) -> None:
    """Nobody could read for 24 hours: a program does not decide any more."""
    async with world(redis_url, ["Bug: a"], policy=policy_file()) as w:
        w.github.fail(POST_COMMENT, "drop")
        await w.run()
        w.move(hours=24)
        await asyncio.sleep(WINDOW + 0.05)
        report = await w.again()
        assert report is not None
        assert report.status is Status.NEEDS_REVIEW
        await w.window()
        assert w.bot_comments(1) == []
        await check(w)


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


# --- Late writers -------------------------------------------------------------------------------


@pytest.mark.parametrize("views", [LISTS, (*LISTS, "comment")], ids=["lists", "all"])
async def test_lag_above_the_window_is_converged(redis_url: str, views: tuple[str, ...]) -> None:
    """GitHub shows the comment later than the absence window: it is sent a second time, which no
    reading could prevent. The first one stays, the bot's later one goes, and it is an incident."""
    async with world(redis_url, ["Bug: a"], policy=policy_file(), timing=WIDE) as w:
        w.github.fail(POST_COMMENT, "apply then drop")
        w.clock.longest = WINDOW / 8
        await blind(w, WIDE_WINDOW * 1.5, views)
        await w.run()
        first = w.own_comments(1)[0].id
        await w.settle(within=20)
        assert len(w.github.requests("POST", "/comments")) == 2
        assert [item.id for item in w.own_comments(1)] == [first]
        runs = await w.runs()
        assert [run.status for run in runs] == [Status.COMPLETED] * 2
        assert runs[1].key.window.startswith("duplicate-")
        assert [line for line in w.lines if line.startswith("INCIDENT kind=duplicate")]
        await nothing_more(w, incidents=1)


async def test_the_comment_that_stays_is_the_one_that_is_edited(redis_url: str) -> None:
    """After two became one, ``/retriage`` edits the one that is left."""
    async with world(redis_url, ["Bug: a"], policy=policy_file(), timing=WIDE) as w:
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        w.github.fail(POST_COMMENT, "apply then drop")
        await blind(w, WIDE_WINDOW * 1.5)
        await w.run()
        first = w.own_comments(1)[0].id
        await w.settle(within=20)
        w.github.as_user("reporter").edit_issue(REPOSITORY, 1, title="Question: a")
        await w.say("alice", 1, "/retriage")
        assert [item.id for item in w.own_comments(1)] == [first]
        assert "`question`" in w.bot_comments(1)[0]
        await nothing_more(w, incidents=1, undone=True)


async def test_two_summaries_are_converged(redis_url: str) -> None:
    """The same with the summary: the later issue loses its marker and is closed."""
    async with world(redis_url, ["Bug: a"], policy=policy_file(), timing=WIDE) as w:
        w.github.fail(POST_ISSUE, "apply then drop")
        w.clock.longest = WINDOW / 8
        await blind(w, WIDE_WINDOW * 1.5, ("issues", "issues_by_creator"))
        await w.run()
        await w.settle(within=20)
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


async def test_request_of_a_dead_worker_lands_late(redis_url: str) -> None:
    """A worker dies with its request under way; its successor proves the comment absent and sends
    it again; then the old request lands. The look for late writers removes the later one, once, and
    counts it once, also where the remover dies at any point of it."""
    await together(redis_url, [partial(late_landing, point=point) for point in (None, *LATE)])


async def late_landing(redis_url: str, *, point: str | None) -> None:
    """One story of the test above: where the remover dies."""
    async with world(redis_url, ["Bug: a"], policy=policy_file()) as w:
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


async def test_removal_whose_reply_is_lost(redis_url: str) -> None:
    """The later comment is deleted and the reply never comes: it is deleted once more, and ends."""
    async with world(redis_url, ["Bug: a"], policy=policy_file(), timing=WIDE) as w:
        w.github.fail(POST_COMMENT, "apply then drop")
        await blind(w, WIDE_WINDOW * 1.5)
        w.github.fail("DELETE /comments/", "apply then drop")
        await w.run()
        await w.settle(within=20)
        assert len(w.own_comments(1)) == 1
        assert [run.status for run in await w.runs()] == [Status.COMPLETED] * 2
        await nothing_more(w, incidents=1)


async def test_late_request_lands_before_the_proof(redis_url: str) -> None:
    """It lands while its absence is being proved: it is adopted, and nothing is sent again."""
    async with world(redis_url, ["Bug: a"], policy=policy_file()) as w:
        w.github.fail(POST_COMMENT, "drop then apply")
        await w.run()
        await asyncio.sleep(WINDOW / 2)
        await w.tick()
        w.github.land_late()
        await w.settle()
        assert (await w.runs())[0].status is Status.COMPLETED
        assert len(w.github.requests("POST", "/comments")) == 1
        await nothing_more(w)


async def test_stopped_between_claim_and_request(redis_url: str) -> None:
    """The whole process stands still after its claim, for longer than its lease: what it claimed is
    not sent any more."""
    async with world(redis_url, ["Bug: a"], policy=policy_file()) as w:
        faults = Faults()

        async def stand_still() -> None:
            time.sleep(TIMING.lease.total_seconds() + 0.1)  # noqa: ASYNC251 - as SIGSTOP does

        faults.at("before writer.create_comment", stand_still)
        with pytest.raises(LeaseLost):
            await w.run(faults=faults)
        assert not w.github.requests("POST", "/comments")
        await w.settle()
        assert [run.status for run in await w.runs()] == [Status.COMPLETED]
        assert len(w.github.requests("POST", "/comments")) == 1
        await nothing_more(w)


async def test_slow_between_claim_and_request(redis_url: str) -> None:
    """A little too slow: the claim is withdrawn and made again, and counted as one send."""
    async with world(redis_url, ["Bug: a"], policy=policy_file()) as w:
        faults = Faults()

        async def dawdle() -> None:
            await asyncio.sleep(TIMING.margin.total_seconds() + 0.02)

        faults.at("before writer.create_comment", dawdle)
        assert (await w.run(faults=faults)).status is Status.COMPLETED
        assert [effect.sends for effect in (await w.runs())[0].effects] == [1, 1, 1]
        await nothing_more(w)


# --- Whose marker -------------------------------------------------------------------------------


async def test_marker_of_another_author_is_ignored(redis_url: str) -> None:
    """Anybody can paste a marker: neither a copy of the bot's own comment nor a fresh one with the
    right key is the bot's."""
    async with world(redis_url, ["Bug: a", "Bug: b"], policy=policy_file()) as w:
        mallory = w.github.as_user("mallory")
        forged = stamp("Fine as it is.", effect_key=comment_key(w, 1), run="x", keys=KEYS)
        mallory.comment(REPOSITORY, 1, forged)
        w.github.fail(POST_COMMENT, "drop")
        await w.run()
        mallory.comment(REPOSITORY, 1, forged)
        await w.settle()
        assert (await w.runs())[0].status is Status.COMPLETED
        assert len(w.bot_comments(1)) == 1
        mallory.comment(REPOSITORY, 2, w.bot_comments(2)[0])
        await w.deliver()
        await nothing_more(w)


async def test_own_comment_with_a_bad_signature(redis_url: str) -> None:
    """In the place of the comment that is looked for stands one of the bot's that no key verifies:
    that is a conflict, not an absence. Nothing is posted beside it."""
    async with world(redis_url, ["Bug: a"], policy=policy_file()) as w:
        w.github.fail(POST_COMMENT, "drop")
        await w.run()
        body = stamp("It was a bug.", effect_key=comment_key(w, 1), run="x", keys=OTHER_KEYS)
        w.github.as_app("retriage").comment(REPOSITORY, 1, body)
        await w.settle()
        run = (await w.runs())[0]
        assert run.status is Status.NEEDS_REVIEW
        assert run.effects[0].reason == "a comment of the bot bears a bad signature"
        assert w.bot_comments(1) == [body]
        await nothing_more(w)


async def test_bad_signature_before_the_first_write(redis_url: str) -> None:
    """The same where nothing was written yet: the signing key was lost together with the ledger."""
    async with world(redis_url, ["Bug: a"], policy=policy_file()) as w:
        body = stamp("It was a bug.", effect_key=comment_key(w, 1), run="x", keys=OTHER_KEYS)
        w.github.as_app("retriage").comment(REPOSITORY, 1, body)
        assert (await w.run()).status is Status.NEEDS_REVIEW
        assert not w.github.requests("POST", "issues/1/")
        assert w.bot_comments(1) == [body]
        await nothing_more(w)


async def test_own_marker_that_a_person_changed(redis_url: str) -> None:
    """Somebody edited the marker itself: a conflict, also for ``/retriage``."""
    async with world(redis_url, ["Bug: a"], policy=policy_file()) as w:
        w.github.add_collaborator(REPOSITORY, "alice", "write")
        await w.run()
        own = w.own_comments(1)[0]
        changed = own.body.replace("run=", "run=x", 1)
        w.github.as_user("alice").edit_comment(REPOSITORY, own.id, changed)
        w.github.as_user("reporter").edit_issue(REPOSITORY, 1, title="Question: a")
        reports = await w.say("alice", 1, "/retriage")
        assert [report.status for report in reports] == [Status.NEEDS_REVIEW]
        assert w.bot_comments(1) == [changed]
        assert w.reactions(1) == ["eyes", "confused"]
        await nothing_more(w, undone=True)


async def test_rotated_keys(redis_url: str) -> None:
    """A new key signs, the old one still verifies: the same comment is edited, and signed anew."""
    async with world(redis_url, ["Bug: a"], policy=policy_file()) as w:
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        await w.run()
        w.keys = MarkerKeys((*OTHER_KEYS.keys, *KEYS.keys))
        w.github.as_user("reporter").edit_issue(REPOSITORY, 1, title="Question: a")
        await w.say("alice", 1, "/retriage")
        assert len(w.own_comments(1)) == 1
        assert "kid=k2" in w.bot_comments(1)[0]
        await nothing_more(w, undone=True)


@pytest.mark.parametrize("commanded", [True, False], ids=["command", "window"])
async def test_comment_of_a_transferred_issue_is_adopted(redis_url: str, commanded: bool) -> None:
    """An issue comes from another repository with the bot's comment on it: that one is edited and
    signed anew, there is no second one."""
    async with world(redis_url, [], policy=policy_file()) as w:
        w.github.add_repository("acme/web")
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        number = w.github.add_issue("acme/web", "Bug: a", author="reporter")
        issue = w.github.issue("acme/web", number)
        key = effect_key(800000001, issue.id, Family.TRIAGE, EffectKind.COMMENT)
        body = stamp("It was a bug.", effect_key=key, run="elsewhere", keys=KEYS)
        w.github.as_app("retriage").comment("acme/web", number, body)
        await w.install()
        moved = w.github.as_user("alice").transfer("acme/web", number, REPOSITORY)
        comment = w.own_comments(moved)[0].id
        w.move(minutes=1)
        if commanded:
            await w.say("alice", moved, "/retriage")
        else:
            await w.run()
        assert [item.id for item in w.own_comments(moved)] == [comment]
        assert comment_key(w, moved) in w.live_markers()
        assert w.github.labels(REPOSITORY, moved) == ["bug"]
        w.move(days=1)
        await w.window()
        await check(w)
        await nothing_more(w)
