"""Writes: each request once, and what GitHub's answer makes of it."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from sandbox.github.faults import (
    DELETE_COMMENT,
    DELETE_LABEL,
    PATCH_COMMENT,
    PATCH_ISSUE,
    POST_ACCESS,
    POST_COMMENT,
    POST_ISSUE,
    POST_LABELS,
    POST_REACTION,
)
from tests.worker.test_github_connection import answer, wire
from tests.worker.test_github_world import (
    REPOSITORY_ID,
    TEXT,
    HastyClock,
    World,
    body,
    claim,
    either_carrier,  # noqa: F401 - a fixture
    world,
)
from triage.contract import RunInputs
from triage.identifiers import EffectKind, Mode
from triage.policy import JobPolicy, Summary
from worker.github.auth import Authority, TokenCredentials
from worker.github.connection import Connection
from worker.github.scope import OutOfScopeError
from worker.github.writer import RestWriter
from worker.ports import Gone, Landed, Late, Outcome, Place, Refusal, Refused, Timing, Unknown

pytestmark = pytest.mark.usefixtures("either_carrier")


@pytest.fixture
def anyio_backend() -> str:
    """The program runs on asyncio alone."""
    return "asyncio"


async def comment(here: World, number: int = 1, **how: float) -> Outcome:
    """Post the triage comment."""
    return await here.writer.create_comment(claim(issue=number, **how), here.place, number, body())  # type: ignore[arg-type]


async def label(here: World, *names: str, number: int = 1) -> Outcome:
    """Add labels."""
    right = claim(EffectKind.LABELS, number, labels=names)
    return await here.writer.add_labels(right, here.place, number, list(names))


def issue_in(here: World) -> int:
    """A new issue's number."""
    return here.github.add_issue("acme/api", "It crashes", "On start.", author="bob")


# --- What lands ------------------------------------------------------------------------------


async def test_all_kinds_of_writes_land() -> None:
    """Each acknowledgement says what is there now."""
    async with world() as here:
        number, place, writer = issue_in(here), here.place, here.writer
        made = await comment(here, number)
        assert isinstance(made, Landed)
        assert made.github_id is not None
        assert made.issue == number
        assert made.url.endswith(f"#issuecomment-{made.github_id}")

        right = claim(text="Better.", github_id=made.github_id)
        edited = await writer.edit_comment(right, place, made.github_id, body("Better."))
        assert edited == made
        assert (await label(here, "bug", "question", number=number)) == Landed(
            labels=("bug", "question")
        )
        unlabel = claim(EffectKind.UNLABEL, number, labels=("bug",))
        assert await writer.remove_label(unlabel, place, number, "bug") == Landed(
            labels=("question",)
        )
        removal = claim(EffectKind.REMOVAL, number, github_id=made.github_id)
        assert await writer.delete_comment(removal, place, made.github_id) == Landed()
        assert here.github.comments("acme/api", number) == []


async def test_a_summary_issue_lives() -> None:
    """Made, edited; a duplicate of it loses its marker and is closed."""
    async with world() as here:
        place, writer = here.place, here.writer
        right = claim(EffectKind.SUMMARY, 0)
        stamped = body(kind=EffectKind.SUMMARY)
        made = await writer.create_issue(right, place, "Triage summary 2026-09-16", stamped)
        assert isinstance(made, Landed)
        number = made.issue
        again = claim(EffectKind.SUMMARY, number, text="2 completed")
        edited = await writer.edit_issue(
            again, place, number, body("2 completed", EffectKind.SUMMARY)
        )
        assert edited == replace(made, labels=())
        removal = claim(EffectKind.REMOVAL, number, github_id=made.github_id)
        assert isinstance(await writer.edit_issue(removal, place, number, TEXT, close=True), Landed)
        closed = await here.reader.issue(place, number)
    assert not isinstance(closed, Gone)
    assert (closed.state, closed.body) == ("closed", TEXT)


async def test_labels_differ_by_more_than_their_case() -> None:
    """GitHub answers with the repository's own spelling."""
    async with world() as here:
        number = issue_in(here)
        assert await label(here, "BUG", number=number) == Landed(labels=("bug",))


async def test_a_label_with_any_name_is_removed_alone() -> None:
    """A name is one part of the address, whatever is in it."""
    async with world() as here:
        number = issue_in(here)
        odd = "area/parser: 50% #1?"
        here.github.as_user("acme").label("acme/api", number, odd, "bug")
        right = claim(EffectKind.UNLABEL, number, labels=(odd,))
        landed = await here.writer.remove_label(right, here.place, number, odd)
        assert landed == Landed(labels=("bug",))


async def test_a_reaction_is_true_or_false_and_never_raises() -> None:
    """Nothing hangs on a reaction."""
    async with world() as here:
        number = issue_in(here)
        made = here.github.as_user("bob").comment("acme/api", number, "/retriage")
        comment_id = int(getattr(made, "id", made))
        assert await here.writer.react(here.place, comment_id, "eyes")
        assert await here.writer.react(here.place, comment_id, "eyes")
        for fault in ("drop", "502", "403 secondary", "401"):
            here.github.fail(POST_REACTION, fault)
            assert not await here.writer.react(here.place, comment_id, "+1")
        assert not await here.writer.react(here.place, 1, "+1")
        with pytest.raises(OutOfScopeError):
            await here.writer.react(here.place, comment_id, "heart")


# --- What is refused -------------------------------------------------------------------------

REFUSALS = {
    "401": (Refusal.UNAUTHORISED, None),
    "403 primary": (Refusal.LIMITED, 60),
    "403 secondary": (Refusal.LIMITED, 60),
    "429": (Refusal.LIMITED, 60),
    "400": (Refusal.INVALID, None),
    "403": (Refusal.FORBIDDEN, None),
    "404": (Refusal.GONE, None),
    "409": (Refusal.INVALID, None),
    "410": (Refusal.GONE, None),
    "422": (Refusal.INVALID, None),
    "301": (Refusal.GONE, None),
    "307": (Refusal.GONE, None),
    "308": (Refusal.GONE, None),
}


async def test_every_refusal_was_sent_once_and_did_not_happen() -> None:
    """A refused request is not a send: each is told apart, and nothing is there."""
    async with world() as here:
        number = issue_in(here)
        for fault, (refusal, seconds) in REFUSALS.items():
            here.github.fail(POST_COMMENT, fault)
            before = here.sent("POST", "/comments$")
            outcome = await comment(here, number)
            assert isinstance(outcome, Refused), fault
            assert outcome.refusal is refusal, fault
            if seconds is None:
                assert outcome.retry_at is None, fault
            else:
                assert outcome.retry_at is not None
                wait = outcome.retry_at - datetime.now(UTC)
                assert abs(wait - timedelta(seconds=seconds)) < timedelta(seconds=5), fault
            assert here.sent("POST", "/comments$") == before + 1, fault
        assert here.github.comments("acme/api", number) == []


async def test_retry_after_says_when() -> None:
    """A secondary limit that names its seconds."""
    async with world() as here:
        here.github.fail(POST_COMMENT, "403 secondary", retry_after=7)
        outcome = await comment(here, issue_in(here))
        assert isinstance(outcome, Refused)
        assert outcome.retry_at is not None
        assert outcome.retry_at - datetime.now(UTC) < timedelta(seconds=8)


async def test_what_is_locked_archived_gone_or_elsewhere() -> None:
    """403s are FORBIDDEN, told apart by who reads on; the rest says which way it is gone."""
    async with world() as here:
        here.github.add_repository("acme/other")
        owner = here.github.as_user("acme")
        locked, deleted, moved, kept = (issue_in(here) for _ in range(4))
        owner.lock("acme/api", locked)
        owner.delete_issue("acme/api", deleted)
        owner.transfer("acme/api", moved, "acme/other")

        async def refused(number: int) -> tuple[Refusal, Gone | None]:
            outcome = await comment(here, number)
            assert isinstance(outcome, Refused), outcome
            return outcome.refusal, outcome.gone

        assert await refused(locked) == (Refusal.FORBIDDEN, None)
        assert await refused(deleted) == (Refusal.GONE, Gone.DELETED)
        assert await refused(moved) == (Refusal.GONE, Gone.TRANSFERRED)
        assert await refused(999) == (Refusal.GONE, Gone.NOT_FOUND)
        owner.archive_repository("acme/api")
        assert await refused(kept) == (Refusal.FORBIDDEN, None)
        assert here.github.comments("acme/other", 1) == []


async def test_a_redirect_of_a_write_is_not_followed() -> None:
    """A 301 on POST would become a GET that "succeeds": one request, and nothing after it."""
    async with world() as here:
        here.github.add_repository("acme/other")
        number = issue_in(here)
        here.github.as_user("acme").transfer("acme/api", number, "acme/other")
        before = len(here.github.requests())
        await comment(here, number)
        sent = here.github.requests()[before:]
    writes = [each for each in sent if "access_tokens" not in each.path]
    assert [(each.method, each.status) for each in writes] == [("POST", 301)]


async def test_a_renamed_repository_takes_writes() -> None:
    """By its id it is where it was, whatever it is called now."""
    async with world() as here:
        number = issue_in(here)
        here.github.as_user("acme").rename_repository("acme/api", "engine")
        assert isinstance(await comment(here, number), Landed)


async def test_a_label_that_is_not_there_is_gone() -> None:
    """404 for the label; the pipeline re-reads the issue."""
    async with world() as here:
        number = issue_in(here)
        right = claim(EffectKind.UNLABEL, number, labels=("bug",))
        outcome = await here.writer.remove_label(right, here.place, number, "bug")
    assert isinstance(outcome, Refused)
    assert (outcome.refusal, outcome.gone) == (Refusal.GONE, Gone.NOT_FOUND)


# --- What is unknown -------------------------------------------------------------------------

UNKNOWN = {
    "apply then drop": 1,
    "apply then 502": 1,
    "apply then 500": 1,
    "apply then 504": 1,
    "drop": 0,
    "502": 0,
    "503": 0,
    "408": 0,
    "202": 0,
}


async def test_what_may_have_landed_is_unknown_and_sent_once() -> None:
    """A 5xx, a drop and a strange success cannot be told from what landed: one request each."""
    async with world() as here:
        for fault, landed in UNKNOWN.items():
            number = issue_in(here)
            here.github.fail(POST_COMMENT, fault)
            outcome = await comment(here, number)
            assert isinstance(outcome, Unknown), fault
            assert here.sent("POST", f"/issues/{number}/comments$") == 1, fault
            assert len(here.github.comments("acme/api", number)) == landed, fault


async def test_a_request_ends_within_its_total_time() -> None:
    """An answer that never comes is Unknown once the time is over, and not asked for again."""
    timing = Timing(request=timedelta(seconds=0.3))
    async with world(timing=timing) as here:
        number = issue_in(here)
        here.github.fail(POST_COMMENT, "hang after applying", seconds=5)
        began = asyncio.get_running_loop().time()
        outcome = await comment(here, number)
        assert asyncio.get_running_loop().time() - began < 2
        assert isinstance(outcome, Unknown)
        assert here.sent("POST", "/comments$") == 1


async def test_every_kind_of_write_is_sent_once_against_a_502() -> None:
    """No retry, whatever the method."""
    async with world() as here:
        number, place, writer = issue_in(here), here.place, here.writer
        made = await comment(here, number)
        assert isinstance(made, Landed)
        mine = made.github_id or 0
        here.github.as_user("acme").label("acme/api", number, "bug")
        summary = body(kind=EffectKind.SUMMARY)
        writes: dict[str, Callable[[], Awaitable[Outcome]]] = {
            PATCH_COMMENT: lambda: writer.edit_comment(claim(github_id=mine), place, mine, body()),
            DELETE_COMMENT: lambda: writer.delete_comment(
                claim(EffectKind.REMOVAL, github_id=mine), place, mine
            ),
            POST_LABELS: lambda: label(here, "question", number=number),
            DELETE_LABEL: lambda: writer.remove_label(
                claim(EffectKind.UNLABEL, number, labels=("bug",)), place, number, "bug"
            ),
            POST_ISSUE: lambda: writer.create_issue(
                claim(EffectKind.SUMMARY, 0), place, "Summary", summary
            ),
            PATCH_ISSUE: lambda: writer.edit_issue(
                claim(EffectKind.SUMMARY, number), place, number, summary
            ),
        }
        for where, write in writes.items():
            here.github.fail(where, "apply then 502")
            before = len(here.github.requests())
            assert isinstance(await write(), Unknown), where
            assert len(here.github.requests()) == before + 1, where


async def test_an_acknowledgement_without_what_was_sent_is_unknown() -> None:
    """A label that was only suggested, an edit that a person overtook: read-back decides."""
    async with world() as here:
        number = issue_in(here)
        suggestion = here.github.fail(POST_LABELS, "suggest", times=1)
        assert suggestion is not None
        assert isinstance(await label(here, "bug", number=number), Unknown)
        assert isinstance(await label(here, "bug", number=number), Landed)


@pytest.mark.parametrize(
    ("there", "lands"),
    [
        (body(), True),
        (body().replace("\n", "\r\n") + "  \r\n", True),
        (body("What a person wrote."), False),
        (TEXT, False),
        (None, False),
    ],
)
async def test_an_edit_lands_only_with_the_intended_body(there: str | None, lands: bool) -> None:
    """GitHub changes line ends and trailing white space; anything else is read back."""
    at = "2026-09-16T01:00:00Z"
    content = {"id": 5, "number": 7, "body": there, "created_at": at, "updated_at": at}
    said = json.dumps(content)
    async with wire(answer("200 OK", body=said), answer("200 OK", body=said)) as (url, heads):
        async with Connection(clock=HastyClock(), timing=Timing(), api_url=url) as connection:
            authority = Authority(TokenCredentials("t"), connection, HastyClock())
            writer = RestWriter(connection, authority, HastyClock())
            place = Place(REPOSITORY_ID, "acme/api", "token")
            edited = await writer.edit_comment(claim(github_id=5), place, 5, body())
            assert isinstance(edited, Landed if lands else Unknown)
            right = claim(EffectKind.REMOVAL, 7, github_id=9)
            closed = await writer.edit_issue(right, place, 7, TEXT, close=True)
            assert isinstance(closed, Unknown)  # not closed, whatever the body
        assert [head.split()[0] for head in heads] == ["patch", "patch"]


# --- When nothing is sent --------------------------------------------------------------------


async def test_a_claim_past_its_deadline_is_late() -> None:
    """Tested right before sending: nothing goes out."""
    async with world() as here:
        number = issue_in(here)
        assert await comment(here, number, seconds=0) == Late()
        assert here.sent("POST", "/comments$") == 0


async def test_the_deadline_is_tested_after_a_new_token_was_fetched() -> None:
    """Fetching a token takes its time, and the claim's runs meanwhile."""
    async with world() as here:
        number = issue_in(here)
        here.github.fail(POST_ACCESS, "hang before applying", seconds=0.3)
        assert await comment(here, number, seconds=0.1) == Late()
        assert here.sent("POST", "/comments$") == 0


@pytest.mark.parametrize(
    ("fault", "refusal", "comes_back"),
    [
        ("502", Refusal.UNAUTHORISED, True),
        ("drop", Refusal.UNAUTHORISED, True),
        ("403 secondary", Refusal.LIMITED, True),
        ("403", Refusal.FORBIDDEN, False),
        ("404", Refusal.FORBIDDEN, False),
        ("401", Refusal.FORBIDDEN, False),
    ],
)
async def test_without_a_token_nothing_was_sent(
    fault: str, refusal: Refusal, comes_back: bool
) -> None:
    """A refusal, not Unknown: no proof of absence is needed for what never went out."""
    async with world() as here:
        number = issue_in(here)
        here.github.fail(POST_ACCESS, fault)
        outcome = await comment(here, number)
        assert isinstance(outcome, Refused)
        assert outcome.refusal is refusal
        assert (outcome.retry_at is not None) is comes_back
        assert here.sent("POST", "/comments$") == 0


async def test_a_token_that_github_refuses_is_replaced_for_the_next_request() -> None:
    """The write is refused and not sent again; the next one has a fresh token."""
    async with world() as here:
        number = issue_in(here)
        assert isinstance(await label(here, "bug", number=number), Landed)
        here.github.move_clock(2 * 3600)  # GitHub's clock: the token is over, ours says it is not
        outcome = await comment(here, number)
        assert isinstance(outcome, Refused)
        assert outcome.refusal is Refusal.UNAUTHORISED
        assert here.sent("POST", "/comments$") == 1
        assert isinstance(await comment(here, number), Landed)


async def test_a_token_near_its_end_is_renewed_before_it_is_used() -> None:
    """By our own clock, two minutes ahead of time."""
    async with world() as here:
        number = issue_in(here)
        assert isinstance(await label(here, "bug", number=number), Landed)
        here.clock.ahead = timedelta(minutes=59)
        assert isinstance(await comment(here, number), Landed)
        assert here.sent("POST", "access_tokens") == 2


# --- What no claim allows --------------------------------------------------------------------

RUN_OF_ANOTHER = f"daily-issue-triage:R{REPOSITORY_ID + 1}:2026-09-16:p3f2a91c0"


async def test_what_a_claim_does_not_allow_is_never_sent() -> None:
    """A bug of ours raises; GitHub sees no request."""
    async with world() as here:
        writer, place = here.writer, here.place
        elsewhere = Place(REPOSITORY_ID + 1, "acme/other", place.installation)
        labels = claim(EffectKind.LABELS, 1, labels=("bug",))
        unlabel = claim(EffectKind.UNLABEL, 1, labels=("bug", ".", ".."))
        summary = body(kind=EffectKind.SUMMARY)
        wrong: list[Awaitable[Outcome]] = [
            writer.create_comment(claim(issue=1), place, 2, body()),
            writer.create_comment(claim(issue=1), elsewhere, 1, body()),
            writer.create_comment(claim(issue=1), place, 1, "no marker"),
            writer.create_comment(claim(issue=1), place, 1, body("other words")),
            writer.create_comment(claim(issue=1), place, 1, summary),
            writer.create_comment(labels, place, 1, body()),
            writer.edit_comment(claim(), place, 5, body()),
            writer.edit_comment(claim(github_id=4), place, 5, body()),
            writer.edit_comment(claim(EffectKind.REMOVAL, github_id=5), place, 5, body()),
            writer.delete_comment(claim(github_id=5), place, 5),
            writer.delete_comment(claim(EffectKind.REMOVAL, github_id=4), place, 5),
            writer.delete_comment(claim(EffectKind.REMOVAL, github_id=5), elsewhere, 5),
            writer.add_labels(labels, place, 1, ["bug", "wontfix"]),
            writer.add_labels(labels, place, 1, []),
            writer.add_labels(labels, place, 2, ["bug"]),
            writer.add_labels(unlabel, place, 1, ["bug"]),
            writer.remove_label(unlabel, place, 1, "question"),
            writer.remove_label(unlabel, place, 1, "."),
            writer.remove_label(unlabel, place, 1, ".."),
            writer.remove_label(labels, place, 1, "bug"),
            writer.create_issue(claim(EffectKind.SUMMARY, 7), place, "Summary", summary),
            writer.create_issue(claim(), place, "Summary", body()),
            writer.create_issue(
                claim(EffectKind.SUMMARY, 0, run="verify:abc"), place, "Summary", summary
            ),
            writer.edit_issue(claim(EffectKind.SUMMARY, 7), place, 8, summary),
            writer.edit_issue(claim(EffectKind.SUMMARY, 7), place, 7, summary, close=True),
            writer.edit_issue(
                claim(EffectKind.REMOVAL, 7, github_id=5), place, 7, summary, close=True
            ),
        ]
        for write in wrong:
            with pytest.raises(OutOfScopeError):
                await write
        assert here.github.requests() == []


def inputs(mode: Mode, *, target: int | None = None, summary: Summary = Summary.DAILY) -> RunInputs:
    """A run's inputs."""
    return RunInputs(
        dedupe_key=claim().lease.dedupe_key,
        repository_id=REPOSITORY_ID,
        repository="acme/api",
        installation="1",
        policy=JobPolicy(labels={"bug": "A fault"}, summary=summary),
        mode=mode,
        by="cron",
        due_at=datetime.now(UTC),
        target_issue=target,
    )


async def test_a_run_writes_only_what_its_mode_and_policy_allow() -> None:
    """The writer of a run keeps to its write scope, claims or not."""
    async with world() as here:
        number, place = issue_in(here), here.place
        stamped = body(kind=EffectKind.SUMMARY)
        right = claim(issue=number)

        async def refused(run: RunInputs, write: str) -> bool:
            writer = here.writer.within(run)
            attempts: dict[str, Callable[[], Awaitable[object]]] = {
                "comment": lambda: writer.create_comment(right, place, number, body()),
                "label": lambda: writer.add_labels(
                    claim(EffectKind.LABELS, number, labels=("bug",)), place, number, ["bug"]
                ),
                "question": lambda: writer.add_labels(
                    claim(EffectKind.LABELS, number, labels=("question",)),
                    place,
                    number,
                    ["question"],
                ),
                "summary": lambda: writer.create_issue(
                    claim(EffectKind.SUMMARY, 0), place, "Summary", stamped
                ),
                "react": lambda: writer.react(place, 1, "eyes"),
            }
            try:
                await attempts[write]()
            except OutOfScopeError:
                return True
            return False

        allowed = {
            "observe": (inputs(Mode.OBSERVE), set()),
            "label": (inputs(Mode.LABEL), {"label", "summary", "react"}),
            "comment": (inputs(Mode.COMMENT), {"comment", "label", "summary", "react"}),
            "its issue": (inputs(Mode.COMMENT, target=number), {"comment", "label", "react"}),
            "another": (inputs(Mode.COMMENT, target=number + 1), {"react"}),
            "no summary": (inputs(Mode.LABEL, summary=Summary.OFF), {"label", "react"}),
        }
        for name, (run, may) in allowed.items():
            for write in ("comment", "label", "question", "summary", "react"):
                assert await refused(run, write) is (write not in may), (name, write)


async def test_a_credential_that_may_only_observe_writes_nothing() -> None:
    """Not even a reaction."""
    async with world(as_account="alice", may_write=False) as here:
        number = issue_in(here)
        with pytest.raises(OutOfScopeError):
            await comment(here, number)
        with pytest.raises(OutOfScopeError):
            await here.writer.react(here.place, 1, "eyes")
        assert here.github.requests() == []
