"""GitHub refuses, limits, is down; the model fails: who comes back when, and what was written."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from sandbox.github.faults import LIST_ISSUES, POST_COMMENT, POST_ISSUE, POST_LABELS
from tests.simulation.invariants import check, nothing_more, writes
from tests.simulation.stand_ins import Mute
from tests.simulation.world import (
    REPOSITORY,
    REPOSITORY_ID,
    SECOND,
    TIMING,
    Faults,
    World,
    policy_file,
    world,
)
from triage.contract import Evidence, Status
from triage.plan import Cost
from worker.ports import AgentFailed

pytestmark = pytest.mark.anyio

MINUTE = timedelta(minutes=1)


def posts(w: World) -> int:
    """Writes that were tried, reactions and tokens apart."""
    return len([r for r in w.github.requests("POST", "/issues") if "/reactions" not in r.path])


def soon(w: World, at: object, least: timedelta, most: timedelta) -> bool:
    """Whether a time to come back lies within these bounds from now."""
    return isinstance(at, type(w.clock.now())) and least < at - w.clock.now() <= most


# --- Limits -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "options"),
    [("403 secondary", {"retry_after": 20}), ("429", {"retry_after": 20}), ("403 primary", {})],
)
async def test_limit_before_anything_was_written(fault: str, options: dict[str, int]) -> None:
    """A refusal proves that nothing happened: failed-before-write, after one request. Asked again
    when GitHub said, the same plan is written."""
    async with world(["Bug: a", "Bug: b"], policy=policy_file()) as w:
        w.github.fail(POST_COMMENT, fault, **options, **({} if options else {"seconds": 1}))
        report = await w.run()
        assert report.status is Status.FAILED_BEFORE_WRITE
        assert report.reason.startswith("GitHub asked to come back")
        assert posts(w) == 1
        await check(w)
        assert (await w.run()).status is Status.COMPLETED
        assert len(w.agent.asked) == 1
        await nothing_more(w)


@pytest.mark.parametrize("fault", ["403 secondary", "429"])
async def test_limit_without_a_time(fault: str) -> None:
    """GitHub does not say how long: a minute. Until then the whole installation writes nothing, and
    who asks by hand finds the budget spent."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.fail(POST_COMMENT, fault)
        report = await w.run()
        assert report.status is Status.FAILED_BEFORE_WRITE
        assert soon(w, report.until, MINUTE * 0.9, MINUTE)
        again = await w.run()
        assert again.status is Status.WAITING
        assert soon(w, again.until, MINUTE * 0.9, MINUTE)
        assert posts(w) == 1
        assert (await w.runs())[0].attempts_charged == 1
        await check(w)


async def test_limit_in_mid_run() -> None:
    """The comment is there, the label is refused: failed-after-write until GitHub's time has come,
    then the clock goes on where it stopped."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.fail(POST_LABELS, "403 secondary", retry_after=60)
        report = await w.run()
        assert report.status is Status.FAILED_AFTER_WRITE
        early = await w.run()
        assert (early.outcome, early.reason) == ("refused", "GitHub asked to come back later")
        assert early.until == report.until
        await w.settle()
        assert (await w.runs())[0].status is Status.COMPLETED
        assert len(w.github.requests("POST", "/comments")) == 1
        await nothing_more(w)


async def test_write_budget_is_spent() -> None:
    """Other runs of the installation used the minute up: the run gives its lease up as waiting, is
    refused with the time until then, goes on from its plan, and neither an attempt nor a
    continuation is counted."""
    titles = ["Bug: a", "Bug: b"]
    async with world(titles, policy=policy_file(), pacing_scale=1) as w:
        await w.record()
        for _ in range(79):
            await w.ledger.budgets.spend(w.installation)
        report = await w.run()
        assert report.status is Status.WAITING
        assert posts(w) == 1
        early = await w.run()
        assert (early.outcome, early.until) == ("refused", report.until)
        assert await w.ledger.leases.acquire("another run", "worker-2", "token") is not None
        await check(w)
        await w.settle()
        run = (await w.runs())[0]
        assert run.status is Status.COMPLETED
        assert (run.attempts_charged, run.continuations) == (0, 0)
        assert len(w.agent.asked) == 1
        await nothing_more(w)


async def test_one_write_at_a_time() -> None:
    """With a pause between writes that is longer than a run waits, every write is a wait of its
    own: the run is completed all the same, after as many returns as it has writes."""
    timing = replace(TIMING, longest_pause=SECOND * 5)
    async with world(
        ["Bug: a", "Bug: b", "Bug: c"],
        policy=policy_file(),
        timing=timing,
        write_interval=SECOND * 20,
    ) as w:
        await w.run()
        reports = await w.settle()
        assert [r.status for r in reports if r.outcome == "ran"][-1] is Status.COMPLETED
        run = (await w.runs())[0]
        assert len(run.attempts) == 7
        assert (run.attempts_charged, run.continuations) == (0, 0)
        await nothing_more(w)


# --- Refusals -----------------------------------------------------------------------------------


async def test_token_expires_before_the_first_write() -> None:
    """GitHub's clock is ahead, and the token that was kept is refused: nothing was written; the
    next attempt has a fresh one."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        faults = Faults()

        async def expire() -> None:
            w.github.move_clock(7200)

        faults.at("before writer.create_comment", expire)
        report = await w.run(faults=faults)
        assert report.status is Status.FAILED_BEFORE_WRITE
        assert posts(w) == 1
        await check(w)
        assert (await w.run()).status is Status.COMPLETED
        await nothing_more(w)


async def test_token_expires_in_mid_run() -> None:
    """Between comment and label: the clock goes on at once with a fresh token."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        faults = Faults()

        async def expire() -> None:
            w.github.move_clock(7200)

        faults.at("before writer.add_labels", expire)
        assert (await w.run(faults=faults)).status is Status.FAILED_AFTER_WRITE
        await w.settle()
        assert (await w.runs())[0].status is Status.COMPLETED
        await nothing_more(w)


async def test_token_that_is_always_refused() -> None:
    """Something was written, and GitHub refuses every token since: the sixth continuation goes to a
    person."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.fail(POST_LABELS, "401", times=None)
        await w.run()
        reports = [report for report in await w.settle() if report.outcome == "ran"]
        assert [report.status for report in reports] == [
            *[Status.FAILED_AFTER_WRITE] * 5,
            Status.NEEDS_REVIEW,
        ]
        assert (await w.run()).outcome == "stopped"
        assert w.github.labels(REPOSITORY, 1) == []
        await nothing_more(w)


@pytest.mark.parametrize(
    ("fault", "message"),
    [("422", "Validation Failed"), ("403", "Resource not accessible by integration")],
)
async def test_what_a_person_must_decide(fault: str, message: str) -> None:
    """A request that GitHub cannot accept, or may not accept from the App: needs-review, which the
    summary says; the other issues are written."""
    async with world(["Bug: a", "Question: b"], policy=policy_file()) as w:
        w.github.fail(POST_COMMENT, fault, message=message)
        report = await w.run()
        assert report.status is Status.NEEDS_REVIEW
        assert [w.github.labels(REPOSITORY, n) for n in (1, 2)] == [[], ["question"]]
        assert "**1 need review, 1 completed, 0 failed**" in w.summaries()[0]
        assert message in w.summaries()[0]
        assert (await w.run()).outcome == "stopped"
        await nothing_more(w)


async def test_archived_in_mid_run() -> None:
    """What is archived is left: the rest is skipped, the run is completed; the next one fails
    before any write, and is not tried again."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        await w.install()
        act = {"actor": "maintainer", "action": "archive_repository"}
        w.github.fail(POST_COMMENT, "act before applying", act=act)
        assert (await w.run()).status is Status.COMPLETED
        run = (await w.runs())[0]
        assert {effect.reason for effect in run.effects} == {"refused: archived"}
        assert writes(w) == []
        w.move(days=1)
        report = await w.window()
        assert report is not None
        assert (report.status, report.until) == (Status.FAILED_BEFORE_WRITE, None)
        await nothing_more(w)


async def test_renamed_in_mid_run() -> None:
    """Repositories are addressed by their id: a new name changes nothing."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        act = {"actor": "maintainer", "action": "rename_repository", "name": "core"}
        w.github.fail(POST_COMMENT, "act before applying", act=act)
        assert (await w.run()).status is Status.COMPLETED
        await w.deliver()
        record = await w.ledger.repositories.get(REPOSITORY_ID)
        assert record is not None
        assert record.full_name == "acme/core"
        await nothing_more(w)


async def test_suspended_in_mid_run() -> None:
    """The installation is suspended: after one refused request the run stops; once it is back, the
    run goes on."""
    timing, titles = replace(TIMING, refresh=MINUTE), ["Bug: a", "Bug: b"]
    async with world(titles, policy=policy_file(), timing=timing) as w:
        faults = Faults()

        async def suspend() -> None:
            w.github.suspend(int(w.installation))

        faults.at("before writer.create_comment", suspend)
        report = await w.run(faults=faults)
        assert report.status is Status.FAILED_BEFORE_WRITE
        assert posts(w) == 1
        w.github.unsuspend(int(w.installation))
        assert (await w.run()).status is Status.COMPLETED
        await nothing_more(w)


async def test_suspended_installation_starts_nothing() -> None:
    """The webhook says so: its windows are not due any more, until it is back."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        await w.install()
        w.github.suspend(int(w.installation))
        await w.deliver()
        w.move(days=1)
        assert await w.tick() == []
        w.github.unsuspend(int(w.installation))
        await w.deliver()
        reports = await w.settle()
        assert [report.status for report in reports] == [Status.COMPLETED]
        await nothing_more(w)


# --- GitHub is down -----------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["502", "drop", "apply then 502"])
async def test_github_does_not_answer_writes(fault: str) -> None:
    """Every write gets no answer: the run stops after three in doubt, not after all of them. When
    GitHub is back, each is read back, and sent again where it is proved absent."""
    titles = [f"Bug: {n}" for n in range(8)]
    async with world(titles, policy=policy_file()) as w:
        w.github.fail(r"POST ^/repos/", fault, times=None)
        report = await w.run()
        assert report.status is Status.FAILED_AFTER_WRITE
        assert posts(w) == 3
        run = (await w.runs())[0]
        assert sum(1 for effect in run.effects if effect.in_doubt) == 3
        await check(w)
        w.github.faults.clear()
        await w.settle()
        assert (await w.runs())[0].status is Status.COMPLETED
        assert all(len(w.bot_comments(number)) == 1 for number in range(1, 9))
        await nothing_more(w)


async def test_github_does_not_answer_reads() -> None:
    """Nothing can be read: failed-before-write, with a pause; nothing was asked of the model."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.fail(LIST_ISSUES, "502", times=4)
        report = await w.run()
        assert report.status is Status.FAILED_BEFORE_WRITE
        assert soon(w, report.until, MINUTE * 0.9, MINUTE)
        assert not w.agent.asked
        assert (await w.run()).status is Status.COMPLETED
        await nothing_more(w)


# --- The model ----------------------------------------------------------------------------------


async def test_model_spends_all_and_decides_nothing() -> None:
    """A spent budget is not tried again by itself, and what was spent is told."""
    async with world(["Bug: a", "Bug: b"], policy=policy_file()) as w:
        w.agent = Mute(most=1)
        assert (await w.run()).status is Status.FAILED_BEFORE_WRITE
        run = (await w.runs())[0]
        assert (run.retry_at, run.cost.estimated_usd, run.cost.sessions) == (None, 2.5, 1)
        await check(w)


async def test_model_fails_again_and_again() -> None:
    """A failure that may pass is tried three times in an attempt, and in five attempts with growing
    pauses; the clock stops then, a person may still ask."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        failure = AgentFailed("overloaded", "529", retryable=True, cost=Cost(estimated_usd=0.01))
        w.agent.fails = [failure] * 15
        for minutes in (1, 2, 4, 8):
            report = await w.run()
            assert report.status is Status.FAILED_BEFORE_WRITE
            assert soon(w, report.until, MINUTE * minutes * 0.9, MINUTE * minutes)
            early = await w.again()
            assert early is not None
            assert (early.outcome, early.until) == ("refused", report.until)
        last = await w.run()
        assert (last.status, last.until) == (Status.FAILED_BEFORE_WRITE, None)
        stopped = await w.again()
        assert stopped is not None
        assert stopped.outcome == "stopped"
        assert len(w.agent.asked) == 15
        await check(w)
        assert (await w.run()).status is Status.COMPLETED
        assert round((await w.runs())[0].cost.estimated_usd, 2) == 0.16
        await nothing_more(w)


async def test_model_refuses_for_good() -> None:
    """Out of turns: one session, no second attempt by the clock; a person may ask again."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.agent.fails = [AgentFailed("turns", "spent", retryable=False, cost=Cost())]
        report = await w.run()
        assert (report.status, report.until) == (Status.FAILED_BEFORE_WRITE, None)
        assert len(w.agent.asked) == 1
        stopped = await w.again()
        assert stopped is not None
        assert stopped.outcome == "stopped"
        assert await w.settle() == []
        assert (await w.run()).status is Status.COMPLETED
        await nothing_more(w)


async def test_model_that_answers_nonsense() -> None:
    """Answers that do not pass the check are held, each with its reason; nothing is written for
    them, and nobody asks again about the same text."""
    async with world(["Bug: a", "Nonsense: b"], policy=policy_file()) as w:
        w.agent.verdict = "See https://example.org and ask @alice."
        assert (await w.run()).status is Status.COMPLETED
        assert [w.bot_comments(n) for n in (1, 2)] == [[], []]
        assert "the text mentions somebody" in w.summaries()[0]
        assert "@alice" not in w.summaries()[0]
        w.move(days=1)
        await w.window()
        assert len(w.agent.asked) == 1
        run = (await w.runs())[0]
        assert [effect.evidence for effect in run.effects] == [Evidence.CONFIRMED]
        await nothing_more(w)


async def test_what_was_written_is_known_before_anything_is_read() -> None:
    """A continuation that cannot even read the repository is not failed-before-write: comment and
    label stand on GitHub."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.fail(POST_ISSUE, "apply then drop")
        assert (await w.run()).status is Status.FAILED_AFTER_WRITE
        await asyncio.sleep(TIMING.absence_window.total_seconds())
        w.github.fail(r"GET ^/repos/[^/]+/[^/]+$", "502", times=4)
        report = await w.again()
        assert report is not None
        assert report.status is Status.FAILED_AFTER_WRITE
        await check(w)
        await w.settle()
        assert [run.status for run in await w.runs()] == [Status.COMPLETED]
        await nothing_more(w)
