"""Whose marker it is: only a valid signature of the bot itself counts."""

import pytest

from sandbox.github.faults import POST_COMMENT
from tests.simulation.invariants import nothing_more
from tests.simulation.sight import comment_key
from tests.simulation.world import (
    KEYS,
    REPOSITORY,
    policy_file,
    world,
)
from triage.contract import Status
from triage.identifiers import EffectKind, Family, effect_key
from triage.marker import MarkerKey, MarkerKeys, stamp

pytestmark = pytest.mark.anyio


OTHER_KEYS = MarkerKeys((MarkerKey("k2", b"fedcba9876543210"),))


async def test_marker_of_another_author_is_ignored() -> None:
    """Anybody can paste a marker: neither a copy of the bot's own comment nor a fresh one with the
    right key is the bot's."""
    async with world(["Bug: a", "Bug: b"], policy=policy_file()) as w:
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


async def test_own_comment_with_a_bad_signature() -> None:
    """In the place of the comment that is looked for stands one of the bot's that no key verifies:
    that is a conflict, not an absence. Nothing is posted beside it."""
    async with world(["Bug: a"], policy=policy_file()) as w:
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


async def test_bad_signature_before_the_first_write() -> None:
    """The same where nothing was written yet: the signing key was lost together with the ledger."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        body = stamp("It was a bug.", effect_key=comment_key(w, 1), run="x", keys=OTHER_KEYS)
        w.github.as_app("retriage").comment(REPOSITORY, 1, body)
        assert (await w.run()).status is Status.NEEDS_REVIEW
        assert not w.github.requests("POST", "issues/1/")
        assert w.bot_comments(1) == [body]
        await nothing_more(w)


async def test_own_marker_that_a_person_changed() -> None:
    """Somebody edited the marker itself: a conflict, also for ``/retriage``."""
    async with world(["Bug: a"], policy=policy_file()) as w:
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


async def test_rotated_keys() -> None:
    """A new key signs, the old one still verifies: the same comment is edited, and signed anew."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        await w.run()
        w.keys = MarkerKeys((*OTHER_KEYS.keys, *KEYS.keys))
        w.github.as_user("reporter").edit_issue(REPOSITORY, 1, title="Question: a")
        await w.say("alice", 1, "/retriage")
        assert len(w.own_comments(1)) == 1
        assert "kid=k2" in w.bot_comments(1)[0]
        await nothing_more(w, undone=True)


@pytest.mark.parametrize("commanded", [True, False], ids=["command", "window"])
async def test_comment_of_a_transferred_issue_is_adopted(commanded: bool) -> None:
    """An issue comes from another repository with the bot's comment on it, word for word what would
    be written here: that one is signed anew, there is no second one."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        await w.run()
        words = w.bot_comments(1)[0].partition("\n")[2]
        w.github.add_repository("acme/web")
        w.github.add_collaborator(REPOSITORY, "alice", "triage")
        number = w.github.add_issue("acme/web", "Bug: a", author="reporter")
        issue = w.github.issue("acme/web", number)
        key = effect_key(800000001, issue.id, Family.TRIAGE, EffectKind.COMMENT)
        body = stamp(words, effect_key=key, run="elsewhere", keys=KEYS)
        w.github.as_app("retriage").comment("acme/web", number, body)
        moved = w.github.as_user("alice").transfer("acme/web", number, REPOSITORY)
        comment = w.own_comments(moved)[0].id
        w.move(days=1)
        if commanded:
            await w.say("alice", moved, "/retriage")
        else:
            await w.window()
        assert [item.id for item in w.own_comments(moved)] == [comment]
        assert comment_key(w, moved) in w.live_markers()
        assert w.github.labels(REPOSITORY, moved) == ["bug"]
        w.move(days=1)
        await w.window()
        await nothing_more(w, forgotten=True)
