"""Needs-review, and what a person decides about it."""

import asyncio

import pytest

from sandbox.github.faults import POST_COMMENT
from tests.simulation.invariants import nothing_more
from tests.simulation.world import BOT, REPOSITORY, World, policy_file, world
from triage.contract import RunRecord, Status
from worker.resolving import UnresolvableError, resolution_of, resolve
from worker.stages.settling import RunReport

pytestmark = pytest.mark.anyio


async def under_review(w: World, *, landing: bool = False) -> RunRecord:
    """A run whose comment was sent twice and never seen; ``landing``: the last one lands after all,
    when nobody looks any more."""
    w.github.fail(POST_COMMENT, "drop")
    w.github.fail(POST_COMMENT, "drop then apply" if landing else "drop", occurrence=2)
    for _ in range(24):
        report = await w.run()
        if report.status is Status.NEEDS_REVIEW:
            break
        await asyncio.sleep(w.timing.absence_window.total_seconds() / 8)
    assert report.status is Status.NEEDS_REVIEW
    assert (await w.run()).outcome == "stopped"
    if landing:
        w.github.land_late()
    return (await w.runs())[0]


async def decide(w: World, run: RunRecord, verdict: str) -> RunReport:
    """As ``retriage resolve`` does it."""
    key = run.inputs.dedupe_key
    ports = w.ports("a-person")
    decided = resolution_of([key, verdict, "I", "looked"], by="alice", at=ports.clock.now())
    return await resolve(key, decided, ports)


@pytest.mark.parametrize("verdict", ["done", "abandon"])
async def test_what_is_not_there_is_given_up(verdict: str) -> None:
    """GitHub is read once more; what is unseen is skipped as resolved, nothing is sent, and who
    decided stands in the run."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        run = await under_review(w)
        sent = len(w.github.requests("POST", "issues/1/"))
        assert (await decide(w, run, verdict)).status is Status.COMPLETED
        assert len(w.github.requests("POST", "issues/1/")) == sent
        decided = (await w.runs())[0]
        assert {e.reason for e in decided.effects if e.issue == 1} == {"resolved"}
        assert [(r.verdict, r.by, r.why) for r in decided.resolutions] == [
            (verdict, "alice", "I looked")
        ]


async def test_what_landed_after_all_is_adopted() -> None:
    """The last request landed late: ``done`` sees the comment and keeps it, the only one."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        run = await under_review(w, landing=True)
        assert (await decide(w, run, "done")).status is Status.COMPLETED
        effects = {e.kind: e.evidence for e in (await w.runs())[0].effects if e.issue == 1}
        assert effects == {"comment": "confirmed", "labels": "skipped"}
        assert len(w.bot_comments(1)) == 1


async def test_retry_sends_it_again() -> None:
    """Intent, sends and continuations start anew: the comment and its label are written once."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        run = await under_review(w)
        assert (await decide(w, run, "retry")).status is Status.COMPLETED
        assert len(w.bot_comments(1)) == 1
        assert w.github.labels(REPOSITORY, 1) == ["bug"]
        await nothing_more(w)


async def test_retry_signs_anew_what_was_tampered_with() -> None:
    """The bot's comment bears a bad signature: a person who says ``retry`` has it written over."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        await w.run()
        comment = w.own_comments(1)[0]
        first, _, rest = comment.body.partition("\n")
        tampered = first[:-6] + ("0" if first[-6] != "0" else "1") + first[-5:] + "\n" + rest
        w.github.as_user("maintainer").edit_comment(REPOSITORY, comment.id, tampered)
        w.github.as_user("reporter").edit_issue(REPOSITORY, 1, title="Question: a")
        reports = await w.say("alice", 1, "/retriage")
        assert [report.status for report in reports] == [Status.NEEDS_REVIEW]
        run = next(r for r in await w.runs() if r.status is Status.NEEDS_REVIEW)
        assert (await decide(w, run, "retry")).status is Status.COMPLETED
        assert [item.id for item in w.own_comments(1)] == [comment.id]
        assert "`question`" in w.bot_comments(1)[0]


async def test_by_a_comment_on_the_summary() -> None:
    """``/retriage resolve KEY done why`` does the same for who may say ``/retriage``; the summary
    names the command."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        run = await under_review(w)
        summary = next(i for i in w.github.issues(REPOSITORY) if i.author == BOT)
        command = f"/retriage resolve {run.inputs.dedupe_key} done"
        assert command in summary.body
        await w.say("mallory", summary.number, f"{command} because")
        assert (await w.runs())[0].status is Status.NEEDS_REVIEW
        await w.say("alice", summary.number, command)
        assert (await w.runs())[0].status is Status.NEEDS_REVIEW
        await w.say("alice", summary.number, f"{command} nobody misses it")
        resolved = (await w.runs())[0]
        assert resolved.status is Status.COMPLETED
        assert [(r.by, r.why) for r in resolved.resolutions] == [("alice", "nobody misses it")]


async def test_only_what_is_under_review() -> None:
    """A run that is done, a run that is not there, a decision that is none: one clear line each."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        await w.run()
        run = (await w.runs())[0]
        with pytest.raises(UnresolvableError, match="completed: only needs-review"):
            await decide(w, run, "done")
        with pytest.raises(UnresolvableError, match="one of done, retry, abandon"):
            await decide(w, run, "maybe")
        gone = resolution_of(["x", "done", "why"], by="alice", at=w.clock.now())
        with pytest.raises(UnresolvableError, match="no run key"):
            await resolve("nonsense", gone, w.ports())
