"""The windows of a schedule, the policy behind them, and the summary that tells of them."""

from datetime import timedelta

import pytest

from sandbox.github.faults import GET_ISSUE, POST_COMMENT
from tests.simulation.invariants import check, nothing_more, writes
from tests.simulation.world import (
    BOT,
    REPOSITORY,
    REPOSITORY_ID,
    Faults,
    Killed,
    World,
    policy_file,
    world,
)
from triage.contract import Status
from triage.identifiers import JobKey
from triage.marker import read
from triage.plan import Cost
from worker import windows
from worker.ports import AgentFailed
from worker.stages.settling import RunReport

pytestmark = pytest.mark.anyio


async def started(w: World, key: str | None = None) -> RunReport:
    """The clock starts a run."""
    report = await w.window(key)
    assert report is not None
    return report


async def test_missed_windows_are_named() -> None:
    """Nobody ticked for three days: the newest window is run, those before it are named in its
    summary, and in that of a second run of the window."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        await w.install()
        await started(w)
        first = (await w.slot()).key
        missed = []
        for _ in range(2):
            w.move(days=1)
            missed.append((await w.slot()).key)
        w.move(days=1)
        report = await started(w)
        assert first < missed[0] < missed[1] < (await w.slot()).key
        line = f"windows never started: {missed[0]}, {missed[1]}"
        assert line in w.summaries()[-1]
        number = int(report.artifact.rpartition("/")[2])
        await w.say("alice", number, "/retriage")
        assert line in w.summaries()[-1]
        w.move(days=1)
        w.github.add_issue(REPOSITORY, "Bug: b", author="reporter")
        w.move(days=1)
        await started(w)
        assert "windows never started" in w.summaries()[-1]
        assert missed[0] not in w.summaries()[-1]
        await nothing_more(w)


async def test_missed_windows_survive_a_dead_worker() -> None:
    """The worker dies before it has saved the run: whoever starts the window then still knows what
    was missed."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        await w.install()
        await started(w)
        w.move(days=1)
        missed = (await w.slot()).key
        w.move(days=1)
        faults = Faults()
        faults.kill_at("after leases.acquire")
        with pytest.raises(Killed):
            await w.window(faults=faults)
        await w.lapse()
        await w.settle()
        assert f"windows never started: {missed}" in w.summaries()[-1]
        await nothing_more(w)


async def test_window_refused_by_a_dying_worker_is_started_later() -> None:
    """A second tick is refused by a lease whose holder then dies without having saved anything: the
    window stays due, and is started once the lease has lapsed."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        await w.install()
        w.move(days=1)
        faults = Faults()
        faults.kill_at("after leases.acquire")
        with pytest.raises(Killed):
            await w.window(faults=faults)
        refused = await started(w)
        assert refused.outcome == "refused"
        await w.settle()
        assert [run.status for run in await w.runs()] == [Status.COMPLETED]
        assert w.github.labels(REPOSITORY, 1) == ["bug"]
        await nothing_more(w)


async def test_named_windows_and_the_order_in_which_they_come() -> None:
    """Windows that are asked for by name, the newest one first: each has its own run, the issue one
    comment and one label; a name that is none is refused."""
    async with world([], policy=policy_file()) as w:
        await w.install()
        due = (await w.slot()).due_at
        opened = f"{due - timedelta(days=7):%Y-%m-%dT%H:%M:%SZ}"
        w.github.as_user("reporter").open_issue(REPOSITORY, "Bug: a", created_at=opened)
        keys = [f"{due - timedelta(days=days):%Y-%m-%d}" for days in range(3)]
        for key in (*keys, *keys):
            await w.window(key)
        assert await w.window("2026-W38") is None
        assert [run.key.window for run in await w.runs()] == keys
        assert len(w.bot_comments(1)) == 1
        await nothing_more(w)


async def test_two_clocks_and_a_person_at_once() -> None:
    """The window is asked for at every step of its own run: it is run once."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        await w.install()
        w.move(days=1)
        faults = Faults()
        points = ["after leases.acquire", "after runs.save_plan", "after writer.create_comment"]
        outcomes: list[str] = []

        async def again() -> None:
            by_clock = await w.window(owner="worker-2")
            by_hand = await w.run(owner="worker-3")
            outcomes.extend([by_clock.outcome if by_clock else "none", by_hand.outcome])

        for point in points:
            faults.at(point, again)
        await w.window(faults=faults)
        assert set(outcomes) == {"refused", "none"}
        assert len(await w.runs()) == 1
        await nothing_more(w)


# --- The policy ---------------------------------------------------------------------------------


async def test_no_policy_means_nothing() -> None:
    """Without a policy no run, no write, no question to the model; commands are not answered."""
    async with world(["Bug: a"], policy=None) as w:
        await w.install()
        w.github.add_collaborator(REPOSITORY, "alice", "admin")
        assert await w.window() is None
        assert await w.say("alice", 1, "/retriage --force") == []
        assert w.reactions(1) == []
        assert (await w.runs(), writes(w), w.agent.asked) == ([], [], [])


async def test_policy_that_is_taken_away() -> None:
    """The file is removed: nothing is started any more; it comes back: the window starts."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        await w.install()
        w.move(days=1)
        w.put_policy(None)
        assert await w.window() is None
        w.put_policy(policy_file())
        assert (await started(w)).status is Status.COMPLETED
        await nothing_more(w)


async def test_broken_policy_keeps_the_last_good_one() -> None:
    """A file that cannot be used changes nothing: what the last good one allowed goes on, and the
    summary names the line, also in a window without anything else to tell."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        await w.install()
        await started(w)
        w.put_policy(
            "jobs:\n  daily-issue-triage:\n    mode: comment\n    lables: {bug: It fails}\n"
        )
        w.move(days=1)
        assert (await started(w)).status is Status.COMPLETED
        assert w.github.labels(REPOSITORY, 1) == ["bug"]
        assert "line 4" in w.summaries()[0]
        assert "did you mean 'labels'" in w.summaries()[0]
        w.move(days=1)
        await started(w)
        assert "line 4" in w.summaries()[1]
        w.put_policy(policy_file())
        w.move(days=1)
        assert (await started(w)).status is Status.NO_CHANGE
        assert len(w.summaries()) == 2
        await nothing_more(w)


async def test_policy_that_was_never_good() -> None:
    """There is no last good one: nothing is done."""
    async with world(["Bug: a"], policy="jobs: [") as w:
        await w.install()
        assert await w.window() is None
        assert (await w.runs(), writes(w)) == ([], [])


async def test_organisation_default() -> None:
    """The organisation's policy holds where the repository has none, and setting by setting where
    it has one."""
    async with world(["Bug: a"], policy=None) as w:
        w.github.add_repository("acme/.github")
        w.github.put_file("acme/.github", ".github/retriage.yml", policy_file(mode="label"))
        await w.install()
        w.move(days=1)
        assert (await started(w)).status is Status.COMPLETED
        assert (w.github.labels(REPOSITORY, 1), w.bot_comments(1)) == (["bug"], [])
        own = "{mode: comment, labels: {question: Asks}, exclusive: []}"
        w.put_policy(f"jobs: {{daily-issue-triage: {own}}}")
        new = w.github.add_issue(REPOSITORY, "Question: b", author="reporter")
        w.move(days=1)
        assert (await started(w)).status is Status.COMPLETED
        assert w.github.labels(REPOSITORY, new) == ["question"]
        assert len(w.bot_comments(new)) == 1
        record = await w.ledger.repositories.get(REPOSITORY_ID)
        assert record is not None
        assert record.policy is not None
        assert list(record.policy.labels) == ["question"]
        await nothing_more(w)


# --- The summary --------------------------------------------------------------------------------


@pytest.mark.parametrize(("summary", "issues"), [("daily", 2), ("rolling", 1), ("off", 0)])
async def test_summary_setting(summary: str, issues: int) -> None:
    """One summary issue for each window, one for all of them, or none."""
    async with world(["Bug: a"], policy=policy_file(summary=summary)) as w:
        await w.install()
        for title in ("Bug: b", "Bug: c"):
            w.github.add_issue(REPOSITORY, title, author="reporter")
            w.move(days=1)
            assert (await started(w)).status is Status.COMPLETED
        assert len(w.summaries()) == issues
        titles = {issue.title for issue in w.github.issues(REPOSITORY) if issue.author == BOT}
        assert len(titles) == issues
        if summary == "rolling":
            assert (await w.slot()).key in w.summaries()[0]
        await nothing_more(w)


async def test_summary_is_a_function_of_all_runs_of_its_window() -> None:
    """Three runs of one window, by other policies: one summary, which counts each issue once, and
    the cost of all."""
    async with world(["Bug: a"], policy=policy_file(mode="label")) as w:
        await w.run()
        number = w.github.add_issue(REPOSITORY, "Question: b", author="reporter")
        w.put_policy(policy_file(mode="comment"))
        await w.run()
        w.github.add_issue(REPOSITORY, "Bug: c", author="reporter")
        w.put_policy(policy_file(min_confidence=0.95))
        await w.run()
        assert len(w.bot_comments(number)) == 1
        assert len(w.summaries()) == 1
        text = w.summaries()[0]
        assert "**0 need review, 2 completed, 0 failed**" in text
        assert "confidence 0.90 is below 0.95" in text
        assert "$0.03" in text
        await nothing_more(w)


async def test_summary_keeps_what_needs_review() -> None:
    """A run waits for a person; a later run of the window finds the issue held, and is completed.
    The summary goes on saying that somebody is needed."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        w.github.fail(POST_COMMENT, "drop", times=2)
        await w.run()
        await w.settle()
        assert (await w.runs())[0].status is Status.NEEDS_REVIEW
        assert "**1 need review" in w.summaries()[0]
        reports = await w.say("alice", 2, "/retriage")
        assert [report.status for report in reports] == [Status.COMPLETED]
        assert "**1 need review" in w.summaries()[0]
        assert "sent twice and never seen" in w.summaries()[0]
        await nothing_more(w)


async def test_summary_tells_of_a_run_that_ends_after_a_later_one() -> None:
    """The first run of a window waits for a proof while a second one is completed: at the end the
    summary tells of both as they ended."""
    async with world(["Bug: a", "Bug: b"], policy=policy_file()) as w:
        w.github.fail(POST_COMMENT, "drop")
        assert (await w.run()).status is Status.FAILED_AFTER_WRITE
        w.put_policy(policy_file(min_confidence=0.5))
        assert (await w.run()).status is Status.COMPLETED
        await w.settle()
        assert [run.status for run in await w.runs()] == [Status.COMPLETED] * 2
        assert len(w.bot_comments(1)) == 1
        assert len(w.summaries()) == 1
        assert "**0 need review, 2 completed, 0 failed**" in w.summaries()[0]
        assert "another run holds them" not in w.summaries()[0]
        await nothing_more(w)


async def test_run_is_not_over_without_its_summary() -> None:
    """The summary of the window cannot be read when a second run wants to edit it: the run goes on
    later, and the summary tells of both."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        await w.run()
        w.github.add_issue(REPOSITORY, "Bug: b", author="reporter")
        w.put_policy(policy_file(min_confidence=0.5))
        w.github.fail(GET_ISSUE.replace(r"\d+", "2"), "502", times=4)
        assert (await w.run()).status is Status.FAILED_AFTER_WRITE
        await w.settle()
        assert [run.status for run in await w.runs()] == [Status.COMPLETED] * 2
        assert "2 completed" in w.summaries()[0]
        await nothing_more(w)


async def test_summary_that_a_person_edited_is_left() -> None:
    """Words of a person in the summary stay; ticked boxes are no edit."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        await w.run()
        edited = w.summaries()[0] + "\nThanks!"
        w.github.as_user("alice").edit_issue(REPOSITORY, 2, body=edited)
        w.github.add_issue(REPOSITORY, "Bug: b", author="reporter")
        w.put_policy(policy_file(min_confidence=0.5))
        assert (await w.run()).status is Status.COMPLETED
        assert w.summaries() == [edited]
        await nothing_more(w)


async def test_summary_is_not_itself_triaged() -> None:
    """The bot's own issues are in no snapshot, labelled or not."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        await w.run()
        w.move(days=1)
        await started(w)
        asked = [issue.number for request in w.agent.asked for issue in request.issues]
        assert asked == [1]
        assert read(w.summaries()[0], w.keys).marker is not None


async def test_nothing_to_tell_makes_no_summary() -> None:
    """A window without anything to do leaves no issue behind."""
    async with world([], policy=policy_file()) as w:
        await w.install()
        assert (await started(w)).status is Status.NO_CHANGE
        assert w.summaries() == []
        await check(w)


async def test_failed_run_tells_nobody_in_public() -> None:
    """The model fails: no comment, no summary issue; the ledger and the log say why."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.agent.fails = [AgentFailed("turns", "spent", retryable=False, cost=Cost())]
        report = await w.run()
        assert report.status is Status.FAILED_BEFORE_WRITE
        assert report.reason == "the model gave no plan: turns"
        assert (w.summaries(), w.bot_comments(1)) == ([], [])
        assert any(line.startswith("RUN-FAILED stage=before-write") for line in w.lines)
        await check(w)


async def test_hourly_and_weekly_windows() -> None:
    """Other schedules have other names, and the same rules."""
    for every, hours in (("hourly", 1), ("weekly", 24 * 7)):
        schedule = {"every": every, "at": "00:30", "timezone": "Asia/Taipei"}
        async with world(["Bug: a"], policy=policy_file(schedule=schedule)) as w:
            await w.install()
            w.move(hours=hours)
            assert (await started(w)).status is Status.COMPLETED
            assert await windows.ensure_window(JobKey.DAILY, REPOSITORY_ID, w.ports()) is None
            w.move(hours=hours)
            assert (await started(w)).status is Status.NO_CHANGE
            await nothing_more(w)


@pytest.mark.parametrize("key", ["2026-02-30", "2026-W38", "0001-01-01", "9999-12-30"])
async def test_a_window_that_there_is_not(key: str) -> None:
    """Cron named it before anybody had read the policy: nothing is started or moves on."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        await w.install()
        assert await w.window(key) is None
        assert await w.runs() == []
        assert (await started(w)).outcome == "ran"
        assert (await w.runs())[0].key.window == (await w.slot()).key
        await nothing_more(w)


async def test_a_repository_that_no_installation_told_of() -> None:
    """It was made since, or that webhook was lost: its first issue takes it in, and its window
    falls due."""
    async with world([], policy=policy_file()) as w:
        w.github.add_issue(REPOSITORY, "Bug: a", "It fails.", author="reporter")
        await w.deliver()
        record = await w.ledger.repositories.get(w.place.id)
        assert record is not None
        assert record.installation == w.installation
        await w.settle()
        record = await w.ledger.repositories.get(w.place.id)
        assert record is not None
        assert record.policy is not None
