"""Reads: retried, never slept out, tolerant of what GitHub adds, and what is gone is a value."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from sandbox.github.faults import (
    GET_ISSUE,
    LIST_COMMENTS,
    LIST_ISSUES,
    POST_ACCESS,
)
from tests.worker.test_github_world import (
    REPOSITORY_ID,
    World,
    either_carrier,  # noqa: F401 - a fixture
    world,
)
from triage.policy import PolicyError
from triage.snapshot import Issue
from worker.github.reads import PAUSE_SECONDS
from worker.github.shapes import CommentShape, EventShape, IssueShape
from worker.ports import Gone, Place, ReadFailed, RepositoryNow, Timing

POLICY = "jobs:\n  daily-issue-triage:\n    labels: {bug: A fault}\n"
SHARED = "jobs:\n  daily-issue-triage:\n    max_issues: 7\n"


pytestmark = pytest.mark.usefixtures("either_carrier")


@pytest.fixture
def anyio_backend() -> str:
    """The program runs on asyncio alone."""
    return "asyncio"


def issue_in(here: World) -> int:
    """A new issue's number."""
    return here.github.add_issue("acme/api", "It crashes", "On start.", author="bob")


# --- Retries ---------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["502", "500", "503", "drop", "408"])
async def test_a_read_is_tried_again_with_growing_pauses(fault: str) -> None:
    """A 5xx and a drop: a GET may be sent again."""
    async with world() as here:
        number = issue_in(here)
        here.github.fail(GET_ISSUE, fault, times=2)
        assert isinstance(await here.reader.issue(here.place, number), Issue)
        assert here.clock.pauses == list(PAUSE_SECONDS[:2])


async def test_a_read_that_takes_too_long_is_tried_again() -> None:
    """Each try has the whole time-out for itself."""
    async with world(timing=Timing(request=timedelta(seconds=0.3))) as here:
        number = issue_in(here)
        here.github.fail(GET_ISSUE, "hang before applying", seconds=1)
        assert isinstance(await here.reader.issue(here.place, number), Issue)
        assert here.clock.pauses == [PAUSE_SECONDS[0]]


async def test_a_read_gives_up_after_four_tries() -> None:
    """Bounded, and not for good: the run may come back."""
    async with world() as here:
        number = issue_in(here)
        here.github.fail(GET_ISSUE, "502", times=None)
        with pytest.raises(ReadFailed) as failure:
            await here.reader.issue(here.place, number)
        assert here.sent("GET", "/issues/") == len(PAUSE_SECONDS) + 1
    assert not failure.value.permanent
    assert failure.value.retry_at is None
    assert "502" in failure.value.detail


@pytest.mark.parametrize("fault", ["403 secondary", "403 primary", "429"])
async def test_a_limit_is_not_slept_out(fault: str) -> None:
    """One request, no pause: the caller is told when to come back."""
    async with world() as here:
        number = issue_in(here)
        here.github.fail(GET_ISSUE, fault)
        with pytest.raises(ReadFailed) as failure:
            await here.reader.issue(here.place, number)
        assert here.sent("GET", "/issues/") == 1
        assert here.clock.pauses == []
    assert not failure.value.permanent
    assert failure.value.retry_at is not None
    assert failure.value.retry_at > datetime.now(UTC) + timedelta(seconds=50)


async def test_a_token_that_github_refuses_is_replaced_at_once() -> None:
    """It is kept until it is over; a refusal before that costs one more request."""
    async with world() as here:
        number = issue_in(here)
        assert isinstance(await here.reader.issue(here.place, number), Issue)
        here.github.move_clock(2 * 3600)
        assert isinstance(await here.reader.issue(here.place, number), Issue)
        assert here.sent("POST", "access_tokens") == 2
        assert here.sent("GET", "/issues/") == 3
        assert here.clock.pauses == []


async def test_a_fresh_token_that_is_refused_too_is_for_good() -> None:
    """Once, not for ever."""
    async with world() as here:
        number = issue_in(here)
        here.github.fail(GET_ISSUE, "401", times=None)
        with pytest.raises(ReadFailed) as failure:
            await here.reader.issue(here.place, number)
        assert here.sent("GET", "/issues/") == 2
    assert failure.value.permanent


async def test_a_suspended_installation_is_for_good() -> None:
    """With a token that is kept, and with one that has to be fetched."""
    async with world() as here:
        number = issue_in(here)
        assert isinstance(await here.reader.issue(here.place, number), Issue)
        here.github.suspend(int(here.installation))
        for _ in range(2):
            with pytest.raises(ReadFailed) as failure:
                await here.reader.issue(here.place, number)
            assert failure.value.permanent
            here.authority.evict(here.installation, "whatever")
            here.clock.ahead = timedelta(hours=2)
        assert await here.reader.installations() == []


async def test_a_token_that_cannot_be_fetched_now_is_tried_again() -> None:
    """A token is no effect: asking again is harmless."""
    async with world() as here:
        number = issue_in(here)
        here.github.fail(POST_ACCESS, "502", times=2)
        assert isinstance(await here.reader.issue(here.place, number), Issue)
        here.clock.ahead = timedelta(hours=2)
        here.github.fail(POST_ACCESS, "403 secondary")
        with pytest.raises(ReadFailed) as failure:
            await here.reader.issue(here.place, number)
        assert failure.value.retry_at is not None


async def test_an_answer_that_cannot_be_read_is_tried_again_and_then_fails() -> None:
    """A gateway's page with status 200 is no issue, and no empty list."""
    async with world() as here:
        issue_in(here)
        here.github.fail(LIST_ISSUES, "200", times=None, message="<html>")
        with pytest.raises(ReadFailed) as failure:
            await here.reader.issues(here.place)
        assert len(here.clock.pauses) == len(PAUSE_SECONDS)
    assert not failure.value.permanent


# --- Lists -----------------------------------------------------------------------------------


async def test_more_than_two_pages_are_read_oldest_first() -> None:
    """250 issues and 250 comments: three requests each."""
    async with world() as here:
        numbers = [issue_in(here) for _ in range(250)]
        for n in range(250):
            here.github.as_user("bob").comment("acme/api", numbers[0], f"words {n}")
        since = datetime.now(UTC) - timedelta(hours=1)
        await here.reader.labels(here.place)
        before = len(here.github.requests())
        issues = await here.reader.issues(here.place)
        comments = await here.reader.comments(here.place, since)
        own = await here.reader.issue_comments(here.place, numbers[0])
        assert len(here.github.requests()) == before + 9
    assert [issue.number for issue in issues] == numbers
    assert [item.body for item in comments] == [f"words {n}" for n in range(250)]
    assert isinstance(own, list)
    assert own == comments
    assert {item.issue for item in comments} == {numbers[0]}


async def test_a_listing_narrows_by_state_creator_and_time() -> None:
    """As GitHub's own parameters do; pull requests are marked."""
    async with world() as here:
        first, second = issue_in(here), issue_in(here)
        here.github.as_user("acme").close("acme/api", first)
        made = here.github.as_app("retriage").open_issue("acme/api", "Triage summary", "…")
        reader, place = here.reader, here.place

        async def numbers(**how: object) -> list[int]:
            return [issue.number for issue in await reader.issues(place, **how)]  # type: ignore[arg-type]

        assert second in await numbers()
        assert first not in await numbers()
        assert first in await numbers(state="all")
        login = await reader.bot_login()
        assert await numbers(state="all", creator=login) == [int(getattr(made, "number", made))]
        assert await numbers(since=datetime.now(UTC) + timedelta(hours=1)) == []


async def test_a_page_that_fails_fails_the_whole_list() -> None:
    """Half a list would prove an absence that is none."""
    async with world() as here:
        for _ in range(150):
            issue_in(here)
        here.github.fail(LIST_ISSUES, "502", occurrence=2, times=None)
        with pytest.raises(ReadFailed):
            await here.reader.issues(here.place)


async def test_nothing_is_cached() -> None:
    """No condition is sent, and no request is saved."""
    async with world() as here:
        number = issue_in(here)
        for title in ("One", "Two"):
            here.github.as_user("bob").edit_issue("acme/api", number, title=title)
            issue = await here.reader.issue(here.place, number)
            assert isinstance(issue, Issue)
            assert issue.title == title
        assert here.sent("GET", "/issues/") == 2


# --- What is gone ----------------------------------------------------------------------------


async def test_what_is_gone_says_how() -> None:
    """404, 410 and 301, for an issue, its comments and a comment."""
    async with world() as here:
        here.github.add_repository("acme/other")
        owner, reader, place = here.github.as_user("acme"), here.reader, here.place
        deleted, moved = issue_in(here), issue_in(here)
        owner.delete_issue("acme/api", deleted)
        owner.transfer("acme/api", moved, "acme/other")
        gone = {999: Gone.NOT_FOUND, deleted: Gone.DELETED, moved: Gone.TRANSFERRED}
        for number, how in gone.items():
            assert await reader.issue(place, number) is how
            assert await reader.issue_comments(place, number) is how
            assert await reader.issue_events(place, number) == []
        assert await reader.comment(place, 1) is Gone.NOT_FOUND
        assert await reader.repository("acme/none") is Gone.NOT_FOUND
        assert await reader.repository("../..") is Gone.NOT_FOUND
        nowhere = Place(1, "acme/none", place.installation)
        assert await reader.repository_by_id(nowhere) is Gone.NOT_FOUND
        with pytest.raises(ReadFailed) as failure:
            await reader.issues(nowhere)
    assert failure.value.permanent


async def test_a_deleted_account_is_a_ghost() -> None:
    """GitHub shows it as null."""
    at = "2026-09-16T01:00:00Z"
    fields = {"id": 1, "number": 2, "user": None, "body": None, "created_at": at, "updated_at": at}
    assert IssueShape.model_validate(fields).value().author == "ghost"
    assert CommentShape.model_validate(fields).value(2).author_id == 0


async def test_unknown_fields_missing_ones_and_new_values_are_tolerated() -> None:
    """Fractions of a second, labels as words, states of the future: read all the same."""
    issue = IssueShape.model_validate_json(
        json.dumps(
            {
                "id": 1,
                "number": 2,
                "title": None,
                "labels": ["bug", {"name": "question", "archived_at": "x"}],
                "state": "hibernating",
                "created_at": "2026-09-16T01:00:00.123456Z",
                "updated_at": "2026-09-16T01:00:00",
                "sub_issues": [{"deep": True}],
            }
        )
    ).value()
    assert issue.labels == ("bug", "question")
    assert issue.state == "hibernating"
    assert issue.updated_at.tzinfo is not None
    event = EventShape.model_validate({"event": "dreamt", "created_at": "2026-09-16T01:00:00Z"})
    assert event.value(2).label == ""


# --- Repositories and accounts ---------------------------------------------------------------


async def test_a_repository_is_found_under_its_former_name() -> None:
    """With its installation; a name is followed, within GitHub's own address alone."""
    async with world() as here:
        here.github.as_user("acme").rename_repository("acme/api", "engine")
        now = await here.reader.repository("acme/api")
        assert now == RepositoryNow(
            Place(REPOSITORY_ID, "acme/engine", here.installation), "main", False, True
        )
        assert await here.reader.repository_by_id(here.place) == now


async def test_a_repository_without_the_app_is_not_found() -> None:
    """There is nothing that the bot may do there."""
    async with world() as here:
        here.github.add_repository("stranger/lib")
        assert await here.reader.repository("stranger/lib") is Gone.NOT_FOUND


async def test_installations_and_their_repositories() -> None:
    """What the clock starts from when the ledger was lost."""
    async with world() as here:
        here.github.add_repository("acme/other")
        assert await here.reader.installations() == [here.installation]
        places = await here.reader.installation_repositories(here.installation)
    assert [place.full_name for place in places] == ["acme/api", "acme/other"]
    assert {place.installation for place in places} == {here.installation}


async def test_who_the_bot_is_is_asked_once() -> None:
    """An App's own user, found by its slug."""
    async with world() as here:
        ids = {await here.reader.bot_user_id() for _ in range(3)}
        assert await here.reader.bot_login() == "retriage[bot]"
        assert ids == {here.github.account("retriage[bot]").id}
        assert here.sent("GET", "^/app$|^/users/") == 2


async def test_the_head_labels_and_roles() -> None:
    """Small things, each in one request."""
    async with world() as here:
        reader, place, github = here.reader, here.place, here.github
        head = github.repository("acme/api").commits[-1].sha
        assert await reader.head_commit(place, "main") == head
        assert await reader.head_commit(place, "no/such") == ""
        assert await reader.head_commit(place, "") == ""
        assert await reader.labels(place) == {"bug", "enhancement", "question"}
        github.add_collaborator("acme/api", "alice", "triage")
        github.add_collaborator("acme/api", "carol", "maintain")
        github.add_user("bob")
        roles = [await reader.role(place, login) for login in ("alice", "carol", "bob", "nobody")]
        assert roles == ["triage", "maintain", "read", "none"]
        assert await reader.role(place, "a/b") == "none"
        assert await reader.role(place, "retriage[bot]") == "none"


async def test_events_tell_who_added_a_label() -> None:
    """Oldest first, with the actor's id."""
    async with world() as here:
        number = issue_in(here)
        alice = here.github.add_user("alice").id
        here.github.as_user("alice").label("acme/api", number, "bug")
        here.github.as_user("alice").unlabel("acme/api", number, "bug")
        events = await here.reader.issue_events(here.place, number)
    assert [(e.event, e.label, e.actor_id, e.issue) for e in events] == [
        ("labeled", "bug", alice, number),
        ("unlabeled", "bug", alice, number),
    ]


# --- The policy ------------------------------------------------------------------------------


async def test_the_policy_of_the_repository_and_of_the_organisation() -> None:
    """Two requests; a file that is not there is None."""
    async with world() as here:
        reader, github = here.reader, here.github
        await reader.labels(here.place)
        before = len(github.requests())
        assert await reader.policy(here.place) == (None, None)
        assert len(github.requests()) == before + 2
        github.put_file("acme/api", ".github/retriage.yml", POLICY)
        shared, own = await reader.policy(here.place)
        assert shared is None
        assert own is not None
        assert own.lines["jobs", "daily-issue-triage", "labels"] == 3
        github.add_repository("acme/.github")
        github.put_file("acme/.github", ".github/retriage.yml", SHARED)
        shared, own = await reader.policy(here.place)
        assert shared is not None
        assert shared.data == {"jobs": {"daily-issue-triage": {"max_issues": 7}}}


async def test_the_organisations_own_repository_is_read_once() -> None:
    """Its file is its own policy, not one over itself."""
    async with world() as here:
        place = here.github.add_repository("acme/.github")
        here.github.put_file("acme/.github", ".github/retriage.yml", POLICY)
        there = Place(place.id, "acme/.github", here.installation)
        shared, own = await here.reader.policy(there)
        assert here.sent("GET", "contents") == 1
    assert shared is None
    assert own is not None


async def test_a_policy_that_is_no_yaml_is_an_error_with_its_line_and_place() -> None:
    """The organisation's file is named, so that the right one is mended."""
    async with world() as here:
        github, reader = here.github, here.reader
        github.put_file("acme/api", ".github/retriage.yml", "jobs:\n  - [\n")
        with pytest.raises(PolicyError, match=r"^line 3: not YAML"):
            await reader.policy(here.place)
        github.put_file("acme/api", ".github/retriage.yml", POLICY)
        github.add_repository("acme/.github")
        github.put_file("acme/.github", ".github/retriage.yml", "a: 1\na: 2\n")
        with pytest.raises(PolicyError, match=r"line 2: in acme/.github: 'a' stands here twice"):
            await reader.policy(here.place)


async def test_a_policy_that_is_no_file_or_too_large_is_an_error() -> None:
    """One clear sentence each."""
    async with world() as here:
        github, reader = here.github, here.reader
        github.put_file("acme/api", ".github/retriage.yml", "#" * (64 * 1024 + 1))
        with pytest.raises(PolicyError, match="larger than 64 KiB"):
            await reader.policy(here.place)
        github.put_file("acme/api", ".github/retriage.yml", None)
        github.put_file("acme/api", ".github/retriage.yml/inside", "x")
        with pytest.raises(PolicyError, match="not a plain file"):
            await reader.policy(here.place)


async def test_an_issue_that_was_read_late_is_read_as_it_was() -> None:
    """The reader adds no staleness of its own, and hides none of GitHub's."""
    async with world() as here:
        number = issue_in(here)
        here.github.move_clock(60)
        here.github.as_user("bob").comment("acme/api", number, "words")
        here.github.fail(LIST_COMMENTS, "flap", lag=30, sequence=[False, True])
        seen = [await here.reader.issue_comments(here.place, number) for _ in range(2)]
    assert [len(each) if isinstance(each, list) else each for each in seen] == [0, 1]
