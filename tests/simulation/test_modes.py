"""What a policy makes of the same issues: mode, backlog, limit, confidence."""

import pytest

from sandbox.github.faults import POST_COMMENT
from tests.simulation.invariants import nothing_more, writes
from tests.simulation.world import REPOSITORY, World, policy_file, world
from triage.contract import Status
from triage.plan import Cost
from worker.ports import AgentFailed
from worker.stages.settling import RunReport

pytestmark = pytest.mark.anyio


async def started(w: World) -> RunReport:
    """The clock starts a run."""
    report = await w.window()
    assert report is not None
    return report


async def test_observe_writes_only_its_report() -> None:
    """GitHub stays as it is; the report names the exact writes, and a second run reuses it."""
    async with world(["Bug: a"], policy=policy_file(mode="observe")) as w:
        before = w.github.state()["repositories"]
        report = await w.run()
        assert report.status is Status.COMPLETED
        text = w.artifacts.files[report.artifact]
        assert "issues/1/comments" in text
        assert "issues/1/labels: +bug" in text
        assert "Nothing was written to GitHub" in text
        assert (await w.run()).outcome == "reused"
        assert w.github.state()["repositories"] == before
        assert writes(w) == []
        await nothing_more(w)


async def test_observe_again_shows_the_difference() -> None:
    """Another policy in the same window, by hand: the same file, with a new snapshot and what
    changed. The clock leaves it alone."""
    policy = policy_file(mode="observe")
    async with world(["Bug: a", "Question: b"], policy=policy) as w:
        first = await w.run()
        w.put_policy(policy_file(mode="observe", labels={"bug": "It fails"}, exclusive=[]))
        w.github.add_issue(REPOSITORY, "Bug: c", author="reporter")
        assert await w.window() is None
        second = await w.run()
        assert second.dedupe_key != first.dedupe_key
        assert list(w.artifacts.files) == [first.artifact] == [second.artifact]
        text = w.artifacts.files[first.artifact]
        assert "3 issues" in text
        difference = text.partition("# Difference from the report before")[2]
        assert "+## issue 3: Bug: c" in difference
        assert "issues/2/labels: +question" in difference
        assert writes(w) == []


async def test_label_mode_writes_no_comment() -> None:
    """Labels and the summary, nothing in the threads."""
    async with world(["Bug: a", "Question: b"], policy=policy_file(mode="label")) as w:
        assert (await w.run()).status is Status.COMPLETED
        assert [w.github.labels(REPOSITORY, n) for n in (1, 2)] == [["bug"], ["question"]]
        assert [w.bot_comments(n) for n in (1, 2)] == [[], []]
        assert len(w.summaries()) == 1
        await nothing_more(w)


@pytest.mark.parametrize(
    ("modes", "commented"),
    [
        (["observe", "label"], False),
        (["observe", "comment"], True),
        (["observe", "label", "comment"], False),
    ],
)
async def test_raised_mode_starts_within_the_window(modes: list[str], commented: bool) -> None:
    """The clock starts a run for the raised mode in the same window, once; lowering starts none.
    What is labelled by then is not unsorted any more."""
    async with world(["Bug: a"], policy=policy_file(mode=modes[0])) as w:
        await w.install()
        w.move(days=1)
        for mode in modes:
            w.put_policy(policy_file(mode=mode))
            assert (await started(w)).outcome == "ran"
            assert await w.window() is None
        w.put_policy(policy_file(mode="observe"))
        assert await w.window() is None
        assert len(await w.runs()) == len(modes)
        assert w.github.labels(REPOSITORY, 1) == ["bug"]
        assert len(w.bot_comments(1)) == int(commented)
        assert "**0 need review, 1 completed, 0 failed**" in w.summaries()[0]
        await nothing_more(w)


async def test_other_inputs_are_a_new_run_by_hand_only() -> None:
    """Another threshold in the same window: the clock does nothing, a person starts a run."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        await w.run()
        w.put_policy(policy_file(min_confidence=0.5))
        new = w.github.add_issue(REPOSITORY, "Question: b", author="reporter")
        assert await w.window() is None
        report = await w.run()
        assert report.status is Status.COMPLETED
        assert len(await w.runs()) == 2
        assert w.github.labels(REPOSITORY, new) == ["question"]
        assert len(w.bot_comments(1)) == 1
        assert "2 completed" in w.summaries()[0]
        await nothing_more(w)


@pytest.mark.parametrize(
    ("backlog", "labelled", "commented"),
    [("labels", True, False), ("full", True, True), ("skip", False, False)],
)
async def test_backlog(backlog: str, labelled: bool, commented: bool) -> None:
    """What was there before the first run gets labels, everything, or nothing; what is opened later
    gets everything."""
    async with world(["Bug: a"], policy=policy_file(backlog=backlog)) as w:
        await w.install()
        w.move(days=1)
        await started(w)
        assert w.github.labels(REPOSITORY, 1) == (["bug"] if labelled else [])
        assert len(w.bot_comments(1)) == int(commented)
        new = w.github.add_issue(REPOSITORY, "Question: b", author="reporter")
        w.move(days=1)
        await started(w)
        assert w.github.labels(REPOSITORY, new) == ["question"]
        assert len(w.bot_comments(new)) == 1
        assert w.github.labels(REPOSITORY, 1) == (["bug"] if labelled else [])
        assert len(w.bot_comments(1)) == int(commented)
        await nothing_more(w)


async def test_what_is_over_the_limit_waits_for_the_next_windows() -> None:
    """Five issues, two a run, the oldest first: three windows. Each summary says what is left."""
    titles = ["Bug: a", "Bug: b", "Bug: c", "Bug: d", "Bug: e"]
    async with world(titles, policy=policy_file(max_issues=2)) as w:
        await w.install()
        done = []
        for _ in range(4):
            w.move(days=1)
            await started(w)
            done.append([n for n in range(1, 6) if w.github.labels(REPOSITORY, n)])
        assert done == [[1, 2], [1, 2, 3, 4], [1, 2, 3, 4, 5], [1, 2, 3, 4, 5]]
        assert [len(request.issues) for request in w.agent.asked] == [2, 2, 1]
        assert "3 issues over the limit" in w.summaries()[0]
        assert "1 issues over the limit" in w.summaries()[1]
        assert "over the limit" not in w.summaries()[2]
        assert (await w.runs())[-1].status is Status.NO_CHANGE
        await nothing_more(w)


async def test_held_decisions_are_not_asked_again() -> None:
    """A decision below the confidence has no effect, is named in the summary, and is not paid for
    again until the issue's text changes."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.agent.confidence = 0.3
        assert (await w.run()).status is Status.COMPLETED
        assert w.github.labels(REPOSITORY, 1) == []
        assert "issue 1: confidence 0.30 is below 0.70" in w.summaries()[0]
        for _ in range(2):
            w.move(days=1)
            assert (await started(w)).status is Status.NO_CHANGE
        assert len(w.agent.asked) == 1
        w.agent.confidence = 0.9
        w.github.as_user("reporter").edit_issue(REPOSITORY, 1, body="It crashes at line 3.")
        w.move(days=1)
        assert (await started(w)).status is Status.COMPLETED
        assert len(w.agent.asked) == 2
        assert w.github.labels(REPOSITORY, 1) == ["bug"]
        await nothing_more(w)


async def test_held_decisions_are_asked_again_under_another_policy() -> None:
    """What a lower threshold would let pass is looked at anew, in the next window."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.agent.confidence = 0.6
        await w.run()
        w.put_policy(policy_file(min_confidence=0.5))
        w.move(days=1)
        assert (await started(w)).status is Status.COMPLETED
        assert w.github.labels(REPOSITORY, 1) == ["bug"]
        await nothing_more(w)


async def test_what_the_model_left_out_is_asked_again() -> None:
    """A batch that fails for good leaves its issues unanswered: they come again the next day, those
    that were answered do not."""
    async with world(["Bug: a", "Bug: b", "Bug: c"], policy=policy_file()) as w:
        w.agent.most = 2
        w.agent.fails = [None, AgentFailed("turns", "spent", retryable=False, cost=Cost())]
        assert (await w.run()).status is Status.COMPLETED
        assert [w.github.labels(REPOSITORY, n) for n in (1, 2, 3)] == [["bug"], ["bug"], []]
        assert "issue 3: the model gave no decision" in w.summaries()[0]
        w.move(days=1)
        await started(w)
        assert [issue.number for issue in w.agent.asked[-1].issues] == [3]
        assert w.github.labels(REPOSITORY, 3) == ["bug"]
        await nothing_more(w)


async def test_blocked_issue_comes_again() -> None:
    """An issue that another run holds is skipped as blocked. It is not decided, so the next window
    takes it again, and that one alone."""
    async with world(["Bug: a", "Bug: b"], policy=policy_file()) as w:
        await w.install()
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        w.github.fail(POST_COMMENT, "drop", times=2)
        await w.say("alice", 1, "/retriage")
        await w.settle()
        held = (await w.runs())[0]
        assert held.status is Status.NEEDS_REVIEW
        for taken in ([1, 2], [1]):
            w.move(days=1)
            assert (await started(w)).status is Status.COMPLETED
            assert [issue.number for issue in w.agent.asked[-1].issues] == taken
            assert "another run holds them" in w.summaries()[-1]
        assert [w.github.labels(REPOSITORY, n) for n in (1, 2)] == [[], ["bug"]]
        assert w.bot_comments(1) == []
        await nothing_more(w)
