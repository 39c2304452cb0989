"""People act while a run is under way, or correct the bot afterwards: what they did stands."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from sandbox.github.faults import DELETE_LABEL, PATCH_COMMENT, POST_COMMENT, POST_LABELS
from sandbox.github.people import Person
from tests.simulation.invariants import nothing_more
from tests.simulation.world import REPOSITORY, TIMING, Faults, World, policy_file, world
from triage.contract import RunRecord, Status
from triage.identifiers import EffectKind

pytestmark = pytest.mark.anyio

Deed = Callable[[World, int], object]

DEEDS: dict[str, Deed] = {
    "human-labelled": lambda w, number: alice(w).label(REPOSITORY, number, "question"),
    "closed": lambda w, number: alice(w).close(REPOSITORY, number),
    "locked": lambda w, number: alice(w).lock(REPOSITORY, number),
    "transferred": lambda w, number: alice(w).transfer(REPOSITORY, number, "acme/web"),
    "deleted": lambda w, number: alice(w).delete_issue(REPOSITORY, number),
}
"""What people do to an issue, by the reason for which it is skipped then."""


def alice(w: World) -> Person:
    """A maintainer at work."""
    w.github.add_collaborator(REPOSITORY, "alice", "triage")
    return w.github.as_user("alice")


def reasons(run: RunRecord, number: int) -> dict[EffectKind, str]:
    """Why the effects on an issue were skipped; empty where they were not."""
    found = [effect for effect in run.effects if effect.issue == number]
    return {effect.kind: effect.reason.partition(":")[0] for effect in found}


@pytest.mark.parametrize("why", list(DEEDS))
async def test_between_snapshot_and_write(why: str) -> None:
    """An issue that a person labels, closes, locks, transfers or deletes while the model thinks is
    skipped with that reason; the others are written, and the run is completed."""
    async with world(["Bug: a", "Question: b"], policy=policy_file()) as w:
        w.github.add_repository("acme/web")
        faults = Faults()

        async def act() -> None:
            DEEDS[why](w, 1)

        faults.at("after runs.save_plan", act)
        assert (await w.run(faults=faults)).status is Status.COMPLETED
        run = (await w.runs())[0]
        assert reasons(run, 1) == {EffectKind.COMMENT: why, EffectKind.LABELS: why}
        assert not w.github.requests("POST", "/issues/1/", applied=True)
        assert w.github.labels(REPOSITORY, 2) == ["question"]
        await nothing_more(w)


@pytest.mark.parametrize("why", list(DEEDS))
async def test_while_another_issue_is_written(why: str) -> None:
    """What people do to an issue just before its turn counts as much."""
    async with world(["Bug: a", "Question: b"], policy=policy_file()) as w:
        w.github.add_repository("acme/web")
        alice(w)
        w.github.fail(POST_COMMENT, "call after applying", call=lambda _: DEEDS[why](w, 2))
        assert (await w.run()).status is Status.COMPLETED
        run = (await w.runs())[0]
        assert reasons(run, 2) == {EffectKind.COMMENT: why, EffectKind.LABELS: why}
        assert not w.github.requests("POST", "/issues/2/", applied=True)
        await nothing_more(w)


@pytest.mark.parametrize(
    ("why", "comment", "labels"),
    [
        ("human-labelled", "", "human-labelled"),
        ("closed", "", ""),
        ("locked", "", "locked"),
        ("transferred", "transferred", "transferred"),
        ("deleted", "deleted", "deleted"),
    ],
)
async def test_between_comment_and_label(why: str, comment: str, labels: str) -> None:
    """Once the comment is there, a person's label of the same group keeps the bot's away, and so do
    a lock, a transfer and a deletion. On a closed issue what was begun is finished."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.add_repository("acme/web")
        alice(w)
        w.github.fail(POST_COMMENT, "call after applying", call=lambda _: DEEDS[why](w, 1))
        assert (await w.run()).status is Status.COMPLETED
        run = (await w.runs())[0]
        assert reasons(run, 1) == {EffectKind.COMMENT: comment, EffectKind.LABELS: labels}
        if why in ("human-labelled", "closed"):
            own = ["question"] if labels else ["bug"]
            assert w.github.labels(REPOSITORY, 1) == own
        await nothing_more(w)


@pytest.mark.parametrize("told", [True, False], ids=["webhook", "no webhook"])
async def test_removed_label_stays_removed(told: bool) -> None:
    """A label that a person removed does not come back, not by ``/retriage`` either, until
    ``/retriage --force``; whether or not the webhook arrived."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        await w.run()
        alice(w).unlabel(REPOSITORY, 1, "bug")
        if not told:
            w.github.outbox.drain()
        again = await w.say("alice", 1, "/retriage")
        assert [report.status for report in again] == [Status.COMPLETED]
        assert w.github.labels(REPOSITORY, 1) == []
        forced = await w.say("alice", 1, "/retriage --force")
        assert [report.status for report in forced] == [Status.COMPLETED]
        assert w.github.labels(REPOSITORY, 1) == ["bug"]
        assert len(w.bot_comments(1)) == 1
        await nothing_more(w)


@pytest.mark.parametrize("told", [True, False], ids=["webhook", "no webhook"])
async def test_removed_label_stays_removed_the_next_day(told: bool) -> None:
    """The next window does not put it back, even where the issue's text has changed since."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        await w.run()
        alice(w).unlabel(REPOSITORY, 1, "bug")
        w.github.as_user("reporter").edit_issue(REPOSITORY, 1, body="It crashes at line 3, too.")
        if told:
            await w.deliver()
        w.move(days=1)
        report = await w.window()
        assert report is not None
        assert report.status is Status.COMPLETED
        assert w.github.labels(REPOSITORY, 1) == []
        assert len(w.bot_comments(1)) == 1
        await nothing_more(w, undone=True)


@pytest.mark.parametrize("told", [True, False], ids=["webhook", "no webhook"])
async def test_deleted_comment_is_not_posted_again(told: bool) -> None:
    """A bot comment that a person deleted is not posted again until ``/retriage --force``, which
    posts it once."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        await w.run()
        alice(w).delete_comment(REPOSITORY, w.own_comments(1)[0].id)
        if not told:
            w.github.outbox.drain()
        again = await w.say("alice", 1, "/retriage")
        assert [report.status for report in again] == [Status.COMPLETED]
        assert w.bot_comments(1) == []
        forced = await w.say("alice", 1, "/retriage --force")
        assert [report.status for report in forced] == [Status.COMPLETED]
        assert len(w.bot_comments(1)) == 1
        once_more = await w.say("alice", 1, "/retriage --force")
        assert [report.status for report in once_more] == [Status.NO_CHANGE]
        await nothing_more(w, undone=True)


async def test_deletion_and_creation_arrive_in_the_wrong_order() -> None:
    """The webhook of the bot's own comment comes after that of its deletion: it stays deleted, and
    ``--force`` posts it once."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        await w.run()
        created = w.github.outbox.drain()
        alice(w).delete_comment(REPOSITORY, w.own_comments(1)[0].id)
        await w.deliver()
        for delivery in created:
            w.github.outbox.put(delivery)
        await w.say("alice", 1, "/retriage")
        assert w.bot_comments(1) == []
        await w.say("alice", 1, "/retriage --force")
        assert len(w.bot_comments(1)) == 1
        await nothing_more(w, undone=True)


async def test_deletion_is_told_of_after_another_was_posted() -> None:
    """The webhook of the deletion comes after ``--force`` has posted another comment: that one is
    not forgotten over it, and the next ``--force`` posts no third."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        await w.run()
        await w.deliver()
        await asyncio.sleep(w.timing.absence_window.total_seconds())
        alice(w).delete_comment(REPOSITORY, w.own_comments(1)[0].id)
        deletion = w.github.outbox.drain()
        await w.say("alice", 1, "/retriage --force")
        second = w.own_comments(1)[0].id
        for delivery in deletion:
            w.github.outbox.put(delivery)
        await w.say("alice", 1, "/retriage --force")
        assert [item.id for item in w.own_comments(1)] == [second]
        await nothing_more(w, undone=True)


async def test_comment_that_took_the_place_of_a_deleted_one_is_found_again() -> None:
    """A replica that knows neither of the deletion nor of the comment that ``--force`` has posted
    since is promoted: the next ``--force`` finds that one, and posts no third."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        await w.run()
        replica = w.server.copy()
        alice(w).delete_comment(REPOSITORY, w.own_comments(1)[0].id)
        await w.say("alice", 1, "/retriage --force")
        second = w.own_comments(1)[0].id
        w.server.restore(replica)
        await w.say("alice", 1, "/retriage --force")
        await w.settle()
        assert [item.id for item in w.own_comments(1)] == [second]
        await nothing_more(w, incidents=1, undone=True, forgotten=True)


@pytest.mark.parametrize("marker", [True, False], ids=["text", "marker"])
async def test_edited_comment_is_left_until_asked(marker: bool) -> None:
    """A person's edit of the bot's comment stays, also where it took the marker away; ``/retriage``
    writes over it."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        await w.run()
        own = w.own_comments(1)[0]
        first, _, rest = own.body.partition("\n")
        edited = f"{first}\n{rest}\nNo, it is fine." if marker else "It is fine."
        alice(w).edit_comment(REPOSITORY, own.id, edited)
        w.move(days=1)
        await w.window()
        assert w.bot_comments(1) == [edited]
        await w.say("alice", 1, "/retriage")
        assert w.bot_comments(1) != [edited]
        assert w.own_comments(1)[0].id == own.id
        assert w.live_markers().count(w.live_markers()[0]) == 1
        await nothing_more(w)


async def test_edited_comment_is_left_by_the_next_window() -> None:
    """The issue's text changed, so the next window decides anew: a comment that a person edited is
    left as it is."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        await w.run()
        own = w.own_comments(1)[0]
        alice(w).edit_comment(REPOSITORY, own.id, own.body + "\nMind the gap.")
        alice(w).unlabel(REPOSITORY, 1, "bug")
        w.github.as_user("reporter").edit_issue(REPOSITORY, 1, title="Question: a")
        w.move(days=1)
        report = await w.window()
        assert report is not None
        assert report.status is Status.COMPLETED
        assert w.bot_comments(1) == [own.body + "\nMind the gap."]
        assert w.github.labels(REPOSITORY, 1) == ["question"]
        await nothing_more(w, undone=True)


async def test_comment_deleted_as_it_is_edited() -> None:
    """The comment goes between the bot's look at it and its edit: skipped as a person's removal;
    the label is written all the same, and nothing is posted again."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        await w.run()
        w.github.as_user("reporter").edit_issue(REPOSITORY, 1, title="Question: a")
        alice(w)
        act = {"actor": "alice", "action": "delete_comment"}
        w.github.fail(PATCH_COMMENT, "act before applying", act=act)
        reports = await w.say("alice", 1, "/retriage")
        assert [report.status for report in reports] == [Status.COMPLETED]
        run = (await w.runs())[-1]
        assert reasons(run, 1)[EffectKind.COMMENT] == "human-removed"
        assert w.github.labels(REPOSITORY, 1) == ["question"]
        await w.say("alice", 1, "/retriage")
        assert w.bot_comments(1) == []
        await nothing_more(w, undone=True)


async def test_own_label_removed_as_the_bot_removes_it() -> None:
    """A person takes the bot's label off at the same moment: it is gone, which is what was wanted,
    and the new label goes on."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        await w.run()
        w.github.as_user("reporter").edit_issue(REPOSITORY, 1, title="Question: a")
        alice(w)
        act = {"actor": "alice", "action": "unlabel", "names": ["bug"]}
        w.github.fail(DELETE_LABEL, "act before applying", act=act)
        reports = await w.say("alice", 1, "/retriage")
        assert [report.status for report in reports] == [Status.COMPLETED]
        assert w.github.labels(REPOSITORY, 1) == ["question"]
        await nothing_more(w, undone=True)


async def test_label_of_a_person_keeps_its_group() -> None:
    """A person's label of an exclusive group: not even ``/retriage`` puts another one beside it,
    nor takes it away."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        alice(w).label(REPOSITORY, 1, "question")
        await w.run()
        assert w.bot_comments(1) == []
        reports = await w.say("alice", 1, "/retriage")
        assert [report.status for report in reports] == [Status.COMPLETED]
        assert w.github.labels(REPOSITORY, 1) == ["question"]
        assert len(w.bot_comments(1)) == 1
        assert reasons((await w.runs())[-1], 1)[EffectKind.LABELS] == "human-labelled"
        await nothing_more(w)


async def test_own_label_that_a_person_put_back_is_theirs() -> None:
    """A person removed the bot's label and put it on again, and no webhook told so: the last
    ``labeled`` event is theirs, so it stays, and no other of its group comes beside it."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        await w.run()
        alice(w).unlabel(REPOSITORY, 1, "bug")
        alice(w).label(REPOSITORY, 1, "bug")
        w.github.outbox.drain()
        w.github.as_user("reporter").edit_issue(REPOSITORY, 1, title="Enhancement: a")
        reports = await w.say("alice", 1, "/retriage")
        assert [report.status for report in reports] == [Status.COMPLETED]
        assert w.github.labels(REPOSITORY, 1) == ["bug"]
        await nothing_more(w)


async def test_label_that_the_repository_lacks_is_never_made() -> None:
    """GitHub would make an unknown label; the bot does not ask for it, and the summary says why."""
    labels = {"bug": "It does not work", "question": "Asks how", "enhancement": "New"}
    async with world(["Bug: a", "Question: b"], policy=policy_file(labels=labels)) as w:
        w.github.as_user("maintainer").delete_label(REPOSITORY, "bug")
        assert (await w.run()).status is Status.COMPLETED
        assert w.github.labels(REPOSITORY, 1) == []
        assert w.github.labels(REPOSITORY, 2) == ["question"]
        assert not [r for r in w.github.requests("POST", "/labels") if '"bug"' in r.body]
        assert "the repository has no label 'bug'" in w.summaries()[0]
        await nothing_more(w)


async def test_label_deleted_in_mid_run() -> None:
    """A label that goes while the run writes is not sent any more, and so not made again."""
    async with world(["Bug: a", "Bug: b"], policy=policy_file()) as w:
        delete = {"actor": "maintainer", "action": "delete_label", "name": "bug"}
        w.github.fail(POST_LABELS, "act after applying", act=delete)
        report = await w.run()
        assert report.status is Status.COMPLETED
        assert len(w.github.requests("POST", "/labels")) == 1
        assert w.github.labels(REPOSITORY, 2) == []
        assert reasons((await w.runs())[0], 2)[EffectKind.LABELS] == "refused"
        await nothing_more(w, undone=True)


async def test_label_deleted_before_it_is_sent_again() -> None:
    """The request for a label got lost, and the label is gone by the time it would be sent once
    more: it is not made anew."""
    async with world(["Bug: a"], policy=policy_file()) as w:
        w.github.fail(POST_LABELS, "drop")
        assert (await w.run()).status is Status.FAILED_AFTER_WRITE
        w.github.as_user("maintainer").delete_label(REPOSITORY, "bug")
        await w.settle()
        assert [run.status for run in await w.runs()] == [Status.COMPLETED]
        assert w.github.labels(REPOSITORY, 1) == []
        assert len(w.github.requests("POST", "/labels")) == 1
        await nothing_more(w)


async def test_second_thoughts_between_two_days() -> None:
    """What people corrected is not asked about again: the next window finds nothing to do, and asks
    the model nothing."""
    async with world(["Bug: a", "Question: b"], policy=policy_file()) as w:
        await w.run()
        alice(w).unlabel(REPOSITORY, 1, "bug")
        alice(w).delete_comment(REPOSITORY, w.own_comments(2)[0].id)
        await w.deliver()
        asked = len(w.agent.asked)
        w.move(days=1)
        report = await w.window()
        assert report is not None
        assert report.status is Status.NO_CHANGE
        assert len(w.agent.asked) == asked
        await nothing_more(w, undone=True)


async def test_own_label_is_exchanged_within_a_minute() -> None:
    """What the bot has just taken off does not count as a person's label, however old the listing
    is by which it writes."""
    timing = replace(TIMING, refresh=timedelta(minutes=1))
    async with world(["Bug: a"], policy=policy_file(), timing=timing) as w:
        alice(w)
        await w.run()
        w.github.as_user("reporter").edit_issue(REPOSITORY, 1, title="Question: a")
        reports = await w.say("alice", 1, "/retriage")
        assert [report.status for report in reports] == [Status.COMPLETED]
        assert w.github.labels(REPOSITORY, 1) == ["question"]
        await nothing_more(w, undone=True)
