"""The nightly review, night after night: one issue, edited in place, and a session that goes on."""

import json
from collections.abc import Mapping
from datetime import timedelta

import pytest

from ledger.records import Due
from sandbox.github.faults import POST_ISSUE
from tests.simulation.invariants import nothing_more
from tests.simulation.virtual import START
from tests.simulation.world import (
    BOT,
    REPOSITORY,
    REPOSITORY_ID,
    Faults,
    Killed,
    World,
    world,
)
from triage.contract import Status
from triage.findings import ColdFor, Start
from triage.identifiers import JobKey
from triage.plan import Cost
from worker.ports import AgentFailed, Denial, ReviewRequest
from worker.stages.settling import RunReport

REVIEW = JobKey.REVIEW
NIGHT = timedelta(days=1)


def reviewing(**settings: object) -> str:
    """A policy with the review alone, whose window fell due some hours ago."""
    due = START - timedelta(hours=6)
    schedule = {"every": "daily", "at": f"{due:%H}:00", "timezone": "UTC"}
    job = {"schedule": schedule, "mode": "comment", **settings}
    return json.dumps({"jobs": {"nightly-repo-review": job}})


def commit(w: World, files: Mapping[str, str | None]) -> None:
    """Somebody pushes."""
    for path, text in files.items():
        w.github.put_file(REPOSITORY, path, text)


async def night(w: World, *, faults: Faults | None = None) -> RunReport:
    """The next night's window."""
    w.move(days=1)
    return await w.run(faults=faults)


def page(w: World) -> str:
    """The one issue of the bot."""
    [issue] = [issue for issue in w.github.issues(REPOSITORY) if issue.author == BOT]
    return issue.body


def asked(w: World) -> ReviewRequest:
    """What the model was asked last."""
    request = w.agent.trees[-1]
    assert isinstance(request, ReviewRequest)
    return request


async def test_nights_build_on_each_other() -> None:
    """A baseline; then what is new, what is still there, and what was resolved, in one issue."""
    async with world([], policy=reviewing(), job=REVIEW) as w:
        commit(w, {"a.py": "FAULT: it divides by zero\n", "b.py": "FAULT: it leaks a file\n"})
        assert (await w.run()).status is Status.COMPLETED
        assert asked(w).start is Start.COLD
        assert "2 new" in page(w)
        commit(w, {"a.py": "fixed\n", "c.py": "\n\nFAULT: it trusts its input\n"})
        assert (await night(w)).status is Status.COMPLETED
        assert asked(w).start is Start.RESUMED
        assert "1 new, 1 still there, 0 not seen this time, 1 resolved" in page(w)
        assert "~~`f-" in page(w)
        [link] = [line for line in w.lines if line.startswith("RESUME-LINK ")]
        assert "same_session=true prior_review_id_echoed=true recalled_findings=2/2" in link
        verdicts = [line for line in w.lines if line.startswith("REVIEW-VERDICT concerns")]
        assert len(verdicts) == 2
        await nothing_more(w)


async def test_same_window_again_writes_nothing() -> None:
    """Neither the model nor GitHub is asked for anything."""
    async with world([], policy=reviewing(), job=REVIEW) as w:
        commit(w, {"a.py": "FAULT: it divides by zero\n"})
        await w.run()
        before = w.github.requests("POST", "/issues")
        assert (await w.run()).outcome == "reused"
        assert w.github.requests("POST", "/issues") == before
        assert len(w.agent.trees) == 1


@pytest.mark.parametrize(
    "instant",
    [
        "after runs.save_snapshot",
        "after agent.review",
        "after runs.save_plan",
        "before writer.create_issue",
        "after writer.create_issue",
    ],
)
async def test_killed_and_gone_on(instant: str) -> None:
    """Wherever the worker dies, one issue stands in the end, and the review is paid for at most
    twice."""
    async with world([], policy=reviewing(), job=REVIEW) as w:
        commit(w, {"a.py": "FAULT: it divides by zero\n"})
        faults = Faults()
        faults.kill_at(instant)
        with pytest.raises(Killed):
            await w.run(faults=faults)
        await w.settle()
        assert [run.status for run in await w.runs()] == [Status.COMPLETED]
        assert "1 new" in page(w)
        assert len(w.agent.trees) == (2 if instant == "after agent.review" else 1)
        await nothing_more(w)


@pytest.mark.parametrize("instant", ["before runs.save_snapshot", "after agent.review"])
async def test_renamed_on_the_way(instant: str) -> None:
    """git knows a repository by its name alone: each attempt asks for it under the name now."""
    async with world([], policy=reviewing(), job=REVIEW) as w:
        commit(w, {"a.py": "FAULT: it divides by zero\n"})
        faults = Faults()
        faults.kill_at(instant)
        with pytest.raises(Killed):
            await w.run(faults=faults)
        w.github.as_user("maintainer").rename_repository(REPOSITORY, "renamed")
        await w.settle()
        assert [run.status for run in await w.runs()] == [Status.COMPLETED]


async def test_attempt_that_died_leaves_nothing_in_the_session() -> None:
    """The retry of a resumed review resumes what stood before, not the answer that was lost."""
    async with world([], policy=reviewing(), job=REVIEW) as w:
        commit(w, {"a.py": "FAULT: it divides by zero\n"})
        await w.run()
        faults = Faults()
        faults.kill_at("after agent.review")
        with pytest.raises(Killed):
            await night(w, faults=faults)
        await w.settle()
        assert [run.status for run in await w.runs()] == [Status.COMPLETED] * 2
        state = await w.ledger.reviews.last(REPOSITORY_ID)
        assert state is not None
        assert state.session_length == 2
        assert not [line for line in w.lines if line.startswith("RESUME-LINK-BROKEN")]


async def test_lost_reply_of_the_issue() -> None:
    """The create landed and its reply did not: it is found, and not sent again."""
    async with world([], policy=reviewing(), job=REVIEW) as w:
        commit(w, {"a.py": "FAULT: it divides by zero\n"})
        w.github.fail(POST_ISSUE, "apply then drop")
        await w.run()
        await w.settle()
        assert [run.status for run in await w.runs()] == [Status.COMPLETED]
        assert "1 new" in page(w)
        await nothing_more(w)


async def test_broken_link_is_said_and_starts_cold() -> None:
    """An answer that recalls nothing is not continuous: said in the log and on the page; the
    session is given up, and the next night starts cold."""
    async with world([], policy=reviewing(), job=REVIEW) as w:
        commit(w, {"a.py": "FAULT: it divides by zero\n"})
        await w.run()
        w.agent.forgets = True
        await night(w)
        assert [line for line in w.lines if line.startswith("RESUME-LINK-BROKEN")]
        assert [line for line in w.lines if line.startswith("SESSION-CLEARED")]
        assert "**Not continuous:**" in page(w)
        w.agent.forgets = False
        await night(w)
        assert asked(w).start is Start.COLD
        run = (await w.runs())[-1]
        assert run.snapshot_summary is not None
        assert run.snapshot_summary.review is not None
        assert run.snapshot_summary.review.why is ColdFor.BROKEN


async def test_lost_session_is_cleared() -> None:
    """A session that is gone fails its run before any write, and is cleared: the next is cold."""
    async with world([], policy=reviewing(), job=REVIEW) as w:
        commit(w, {"a.py": "FAULT: it divides by zero\n"})
        await w.run()
        w.agent.fails = [
            AgentFailed("session-lost", "gone", retryable=False, cost=Cost(), keeps_session=False)
        ]
        report = await night(w)
        assert report.status is Status.FAILED_BEFORE_WRITE
        assert "session-lost" in report.reason
        assert [line for line in w.lines if line.startswith("SESSION-CLEARED")]
        assert (await night(w)).status is Status.COMPLETED
        assert asked(w).start is Start.COLD


@pytest.mark.parametrize("reason", ["max-turns", "budget"])
async def test_spent_limits_keep_the_session(reason: str) -> None:
    """The settings need a change, not the state."""
    async with world([], policy=reviewing(), job=REVIEW) as w:
        commit(w, {"a.py": "FAULT: it divides by zero\n"})
        await w.run()
        w.agent.fails = [AgentFailed(reason, "spent", retryable=False, cost=Cost())]
        assert (await night(w)).status is Status.FAILED_BEFORE_WRITE
        assert not [line for line in w.lines if line.startswith("SESSION-CLEARED")]
        await night(w)
        assert asked(w).start is Start.RESUMED


async def test_week_is_over() -> None:
    """A session is not carried on for ever."""
    async with world([], policy=reviewing(), job=REVIEW) as w:
        commit(w, {"a.py": "FAULT: it divides by zero\n"})
        starts = []
        await w.run()
        for _ in range(8):
            await night(w)
            starts.append(asked(w).start)
        assert starts == [Start.RESUMED] * 6 + [Start.COLD, Start.RESUMED]


async def test_ticks_of_people_stay() -> None:
    """Somebody ticks a finding off; the next night's edit leaves that."""
    async with world([], policy=reviewing(), job=REVIEW) as w:
        commit(w, {"a.py": "FAULT: it divides by zero\n", "b.py": "FAULT: it leaks a file\n"})
        await w.run()
        [issue] = [issue for issue in w.github.issues(REPOSITORY) if issue.author == BOT]
        ticked = issue.body.replace("- [ ]", "- [x]", 1)
        w.github.as_user("maintainer").edit_issue(REPOSITORY, issue.number, body=ticked)
        commit(w, {"c.py": "FAULT: it trusts its input\n"})
        assert (await night(w)).status is Status.COMPLETED
        assert page(w).count("- [x]") == 1
        assert page(w).count("- [ ]") == 2


async def test_observe_writes_a_report_alone() -> None:
    """No issue; the report holds the findings."""
    async with world([], policy=reviewing(mode="observe"), job=REVIEW) as w:
        commit(w, {"a.py": "FAULT: it divides by zero\n"})
        assert (await w.run()).status is Status.COMPLETED
        assert [issue for issue in w.github.issues(REPOSITORY) if issue.author == BOT] == []
        [text] = w.artifacts.files.values()
        assert "it divides by zero" in text
        assert (await night(w)).status is Status.NO_CHANGE


async def test_clock_finds_the_job() -> None:
    """Whoever reads the policy first puts every job of it on the clock."""
    async with world([], policy=reviewing(), job=REVIEW) as w:
        commit(w, {"a.py": "FAULT: it divides by zero\n"})
        await w.install()
        await w.settle()
        assert [run.key.job for run in await w.runs()] == [REVIEW]
        due = await w.ledger.due.when(Due.window(REVIEW, REPOSITORY_ID))
        assert due is not None
        assert due > w.clock.now()


async def test_denied_calls_are_counted() -> None:
    """Of a session that answered, and of one that failed: in the log, the run and the metrics."""
    async with world([], policy=reviewing(), job=REVIEW) as w:
        commit(w, {"a.py": "FAULT: it divides by zero\n"})
        out = Denial("Read", "file_path", "outside")
        w.agent.fails = [
            AgentFailed("max-turns", "40", retryable=False, cost=Cost(), denials=(out, out))
        ]
        await w.run()
        w.agent.denied = (out,)
        await night(w)
        assert [run.denials for run in await w.runs()] == [2, 1]
        assert (await w.ledger.counters.snapshot()).denials == 3
        told = [line for line in w.lines if line.startswith("AGENT-DENIED run=")]
        assert [line.partition(" tool=")[2] for line in told] == [
            "Read field=file_path reason=outside times=2",
            "Read field=file_path reason=outside times=1",
        ]
