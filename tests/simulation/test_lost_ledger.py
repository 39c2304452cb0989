"""Redis comes back empty: nothing is written until GitHub has been read, and nothing twice."""

import asyncio
import contextlib
from datetime import timedelta

import pytest

from ledger.records import LEDGER
from sandbox.github.faults import GET_COMMENT
from tests.simulation.invariants import check, nothing_more, writes
from tests.simulation.world import (
    KEYS,
    REPOSITORY,
    TIMING,
    Faults,
    World,
    policy_file,
    world,
)
from triage.contract import Status
from triage.identifiers import EffectKind
from triage.marker import MarkerKey, MarkerKeys
from worker import recovery
from worker.ports import LeaseLost

pytestmark = pytest.mark.anyio

DAYS = timedelta(days=2)
LONG_AGO = "2020-01-01T00:00:00Z"
QUIET = (TIMING.absence_window + TIMING.lock_delay).total_seconds()


async def found_lost(w: World) -> None:
    """The ledger is gone, and the clock, which has nothing due, notices."""
    await w.lose_ledger()
    await recovery.recover(LEDGER, w.ports())


async def test_quiet_until_github_was_read() -> None:
    """Whoever asks is refused with the time; not a write leaves until then, not for a command
    either, which is done and answered once GitHub was read."""
    async with world(["Bug: a"], policy=policy_file(), opened=DAYS) as w:
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        await w.run()
        done = len(writes(w))
        await w.lose_ledger()
        report = await w.run()
        assert report.outcome == "refused"
        assert report.until is not None
        left = (report.until - w.clock.now()).total_seconds()
        assert 0 < left <= QUIET
        assert await w.window() is None
        w.github.as_user("reporter").edit_issue(REPOSITORY, 1, title="Question: a")
        assert [report.outcome for report in await w.say("alice", 1, "/retriage")] == ["refused"]
        assert w.reactions(1) == ["eyes"]
        assert len(writes(w)) == done
        await w.settle()
        assert w.reactions(1) == ["eyes", "+1"]
        assert w.github.labels(REPOSITORY, 1) == ["question"]
        assert len(w.bot_comments(1)) == 1
        await nothing_more(w, forgotten=True, undone=True)


async def test_lost_after_a_run() -> None:
    """The clock reads the repositories back, five times, and then ensures the window: comment,
    label and summary stand, and none of them is written a second time."""
    async with world(["Bug: a", "Question: b"], policy=policy_file(), opened=DAYS) as w:
        await w.install()
        await w.window()
        before = w.github.state()["repositories"]
        await found_lost(w)
        reads = len(w.github.requests("GET", "/issues/comments"))
        reports = await w.settle()
        assert len(w.github.requests("GET", "/issues/comments")) - reads >= 5
        assert [report.outcome for report in reports] == ["ran"]
        assert w.github.state()["repositories"] == before
        await nothing_more(w, forgotten=True)


async def test_lost_and_asked_again() -> None:
    """The window takes what is not labelled, and edits the summary that it finds."""
    async with world(["Bug: a"], policy=policy_file(), opened=DAYS) as w:
        await w.run()
        w.github.as_user("reporter").open_issue(REPOSITORY, "Question: b", created_at=LONG_AGO)
        await found_lost(w)
        assert [report.status for report in await w.settle()] == [Status.COMPLETED]
        assert len(w.summaries()) == 1
        assert [len(w.bot_comments(n)) for n in (1, 3)] == [1, 1]
        await nothing_more(w, forgotten=True)


POINTS = [
    "after runs.save_plan",
    "after effects.claim",
    "before writer.create_comment",
    "after writer.create_comment",
    "after effects.acknowledge",
    "before writer.add_labels",
    "after writer.add_labels",
    "after reader.comment",
    "before writer.create_issue",
    "after writer.create_issue",
    "after runs.settle",
]


async def test_lost_in_mid_run() -> None:
    """The ledger goes at some instant of a run: the run stops there. After the quiet time the
    window is started anew, and finds what the lost one had written."""
    for point in POINTS:
        await lost_at(point=point)


async def lost_at(*, point: str) -> None:
    """One story of the test above."""
    titles = ["Bug: a", "Question: b"]
    async with world(titles, policy=policy_file(), opened=DAYS) as w:
        await w.install()
        faults = Faults()
        faults.at(point, w.lose_ledger)
        with contextlib.suppress(LeaseLost):
            await w.window(faults=faults)
        await recovery.recover(LEDGER, w.ports())
        await w.settle()
        labels = [w.github.labels(REPOSITORY, n) for n in (1, 2)]
        assert labels == [["bug"], ["question"]], point
        assert [len(w.bot_comments(n)) for n in (1, 2)] == [1, 1], point
        assert len(w.summaries()) <= 1, point
        await nothing_more(w, forgotten=True)


async def test_removed_label_is_known_from_the_events() -> None:
    """A label that a person had removed before the loss, and one after it: neither comes back; what
    was never removed does not come twice."""
    titles = ["Bug: a", "Bug: b", "Bug: c"]
    async with world(titles, policy=policy_file(), opened=DAYS) as w:
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        await w.run()
        w.github.as_user("alice").unlabel(REPOSITORY, 1, "bug")
        await w.deliver()
        await found_lost(w)
        w.github.as_user("alice").unlabel(REPOSITORY, 2, "bug")
        w.github.outbox.drain()
        await w.settle()
        assert [w.github.labels(REPOSITORY, n) for n in (1, 2, 3)] == [[], [], ["bug"]]
        assert [len(w.bot_comments(n)) for n in (1, 2, 3)] == [1, 1, 1]
        run = (await w.runs())[-1]
        labels = [e for e in run.effects if e.kind is EffectKind.LABELS]
        assert {effect.reason for effect in labels} == {"human-removed"}
        await nothing_more(w, forgotten=True)


async def test_own_label_is_known_from_the_events() -> None:
    """The bot's own label of before the loss may still give way to another, by ``/retriage``; a
    person's may not."""
    async with world(["Bug: a", "Bug: b"], policy=policy_file(), opened=DAYS) as w:
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        await w.run()
        w.github.as_user("alice").unlabel(REPOSITORY, 2, "bug")
        w.github.as_user("alice").label(REPOSITORY, 2, "bug")
        await found_lost(w)
        await w.settle()
        for number in (1, 2):
            w.github.as_user("reporter").edit_issue(REPOSITORY, number, title="Question: x")
            await w.say("alice", number, "/retriage")
        assert [w.github.labels(REPOSITORY, n) for n in (1, 2)] == [["question"], ["bug"]]
        await nothing_more(w, forgotten=True)


async def test_nobody_could_read_it_back() -> None:
    """The reads of the quiet time all fail, and a run is asked for all the same: each issue is
    looked up before its first write, so there is no second comment."""
    async with world(["Bug: a"], policy=policy_file(), opened=DAYS) as w:
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        await w.run()
        w.github.as_user("alice").unlabel(REPOSITORY, 1, "bug")
        w.github.outbox.drain()
        await w.lose_ledger()
        await recovery.remember_place(w.place, w.ports())
        assert await w.window() is None
        await asyncio.sleep(QUIET)
        report = await w.window()
        assert report is not None
        assert report.status is Status.COMPLETED
        assert len(w.bot_comments(1)) == 1
        assert w.github.labels(REPOSITORY, 1) == []
        assert len(w.summaries()) == 1
        await nothing_more(w, forgotten=True)


async def test_signing_key_is_lost_too() -> None:
    """Nothing verifies the bot's own comments and summary any more: a person must look; nothing is
    written beside them."""
    async with world(["Bug: a"], policy=policy_file(), opened=DAYS) as w:
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        await w.run()
        w.github.as_user("alice").unlabel(REPOSITORY, 1, "bug")
        before = w.github.state()["repositories"]
        w.keys = MarkerKeys((MarkerKey("k9", b"another secret..."),))
        await found_lost(w)
        assert [report.status for report in await w.settle()] == [Status.NEEDS_REVIEW]
        assert w.github.state()["repositories"] == before
        w.keys = KEYS
        await nothing_more(w, forgotten=True)


async def test_read_while_a_view_is_blind() -> None:
    """The first reads of the quiet time fail, later ones do not: what they show is adopted."""
    async with world(["Bug: a"], policy=policy_file(), opened=DAYS) as w:
        await w.run()
        w.github.fail("GET ^/repos/.*/issues/comments$", "502", times=8)
        await found_lost(w)
        await w.settle()
        assert len(w.bot_comments(1)) == 1
        await nothing_more(w, forgotten=True)


async def test_plan_that_outlived_its_snapshot() -> None:
    """A replica that lacks the run's snapshot is promoted before its worker has saved the plan,
    which it saves there. By the time that the run goes on, the issue is not in a new snapshot."""
    async with world(["Bug: a", "Question: b"], policy=policy_file(), opened=DAYS) as w:
        replicas = []
        faults = Faults()

        async def replicate() -> None:
            replicas.append(w.server.copy())

        async def promote() -> None:
            w.server.restore(replicas[0])

        faults.at("before runs.save_snapshot", replicate)
        faults.at("after agent.decide", promote)
        with pytest.raises(LeaseLost):
            await w.run(faults=faults)
        w.github.as_user("alice").label(REPOSITORY, 1, "bug")
        await w.settle()
        await w.run()
        await w.settle()
        assert [run.status for run in await w.runs()] == [Status.COMPLETED]
        assert [len(w.bot_comments(n)) for n in (1, 2)] == [0, 1]
        assert w.github.labels(REPOSITORY, 2) == ["question"]
        await nothing_more(w, forgotten=True, incidents=1)


async def test_first_ledger_reads_nothing() -> None:
    """A ledger that was made together with its App is neither quiet, nor looks anything up for an
    issue that nobody commented on."""
    async with world(["Bug: a"], policy=policy_file(), opened=DAYS) as w:
        assert (await w.run()).status is Status.COMPLETED
        assert not w.github.requests("GET", "/issues/1/comments")
        assert not w.github.requests("GET", "/issues/1/events")
        assert not [r for r in w.github.requests("GET") if "creator" in r.query]
        assert len(w.github.requests("GET", GET_COMMENT.partition("^")[2][:7])) > 0
        await check(w)


async def test_effects_of_a_plan_that_was_lost() -> None:
    """A replica that lacks snapshot and plan is promoted while the effects are being saved: they
    stand there without them. The next attempt takes another snapshot; what that plan wanted on an
    issue that was closed since is given up, with its reason."""
    async with world(["Bug: a", "Question: b"], policy=policy_file()) as w:
        faults, replica = Faults(), []

        async def replicate() -> None:
            replica.append(w.server.copy())

        async def promote() -> None:
            w.server.restore(replica[0])

        faults.at("after runs.save", replicate)
        faults.at("after runs.save_plan", promote)
        with pytest.raises(LeaseLost):
            await w.run(faults=faults)
        w.github.as_user("maintainer").close(REPOSITORY, 1)
        await w.settle()
        runs = await w.runs()
        assert [run.status for run in runs] == [Status.COMPLETED]
        reasons = {(effect.issue, effect.reason) for effect in runs[0].effects}
        assert reasons >= {(1, "superseded"), (2, "")}
        assert w.bot_comments(1) == []
        await nothing_more(w, incidents=1)
