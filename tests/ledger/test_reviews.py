"""What is remembered of a review: with its plan or not at all, given up once, never set back."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis.asyncio

from ledger.codec import text
from ledger.errors import LeaseLost, LedgerUnavailableError, StateNotSavedError
from ledger.memory import Promotion, StagedSession
from ledger.timing import LedgerTiming
from tests.ledger.conftest import LAPSE
from tests.ledger.nights import (
    COLD,
    OTHER_SESSION,
    SESSION,
    begin,
    first_night,
    kept_words,
    lines,
    plan,
    promotion,
    recall,
    resumed,
    state,
    words,
)
from tests.ledger.places import AnyLedger, OwnValkey, Place, Valkey
from tests.ledger.samples import NOON, REPOSITORY
from triage.identifiers import Family


async def test_a_review_comes_back_as_it_was(ledger: AnyLedger) -> None:
    """With the session that its attempt had, which is kept from then on; the copy is gone."""
    assert await ledger.reviews.last(REPOSITORY) is None
    lease = await begin(ledger, 1)
    await ledger.sessions.append(COLD, lines("a", "b"), after=0)
    given = promotion(lease, COLD, 2, session_since=NOON, review='{"ü": [1]}')
    assert await ledger.runs.save_plan(lease, plan(), staged=given) == plan()
    assert await ledger.reviews.last(REPOSITORY) == given.state
    assert await ledger.reviews.last(REPOSITORY + 1) is None
    assert await kept_words(ledger) == "ab"
    assert await ledger.sessions.length(COLD) == 0


async def test_the_session_goes_on(ledger: AnyLedger, place: Place) -> None:
    """The copy of the next night becomes the session, and all of it is kept for a month."""
    await first_night(ledger, "a", "b", "c")
    lease = await begin(ledger, 2)
    warm = resumed(3)
    many = [str(number) for number in range(250)]
    await ledger.sessions.append(warm, lines(*many), after=0)
    given = promotion(lease, warm, 253, recall=recall(lease))
    await ledger.runs.save_plan(lease, plan(), staged=given)
    assert await kept_words(ledger) == "abc" + "".join(many)
    found = await ledger.reviews.last(REPOSITORY)
    assert found == given.state.model_copy(update={"recalls": (recall(lease),)})
    left = await place.life(f"session:R{REPOSITORY}:{SESSION}")
    assert left is not None
    assert timedelta(days=29) < left <= timedelta(days=30)
    assert await ledger.sessions.kept(REPOSITORY, SESSION) != await ledger.sessions.kept(8, SESSION)


async def test_bytes_of_a_session_follow_its_lines(ledger: AnyLedger) -> None:
    """They are summed on over what it goes on from, and what was cut off is not in it."""
    await first_night(ledger, "a", "b", "c")
    lease = await begin(ledger, 2)
    await ledger.sessions.append(resumed(2), lines("dd"), after=0)
    await ledger.runs.save_plan(lease, plan(), staged=promotion(lease, resumed(2), 3))
    size = await ledger.sessions.kept(REPOSITORY, SESSION)
    assert (size.lines, size.bytes) == (3, 12 + 12 + 13)
    assert await kept_words(ledger) == "abdd"


async def test_reviews_and_watches_do_not_meet(ledger: AnyLedger) -> None:
    """A watch leaves a state of its own, whichever of them is newer."""
    review = await first_night(ledger, "a")
    before = await ledger.reviews.last(REPOSITORY)
    lease = await begin(ledger, 2)
    watch = state(lease, family=Family.WATCH, fence=review.fence - 1, review="{}")
    await ledger.runs.save_plan(lease, plan(), staged=Promotion(watch))
    assert await ledger.reviews.last(REPOSITORY, Family.WATCH) == watch
    assert await ledger.reviews.last(REPOSITORY) == before
    assert await kept_words(ledger) == "a"


async def test_without_its_session_a_review_is_kept(ledger: AnyLedger, place: Place) -> None:
    """For where the copy is not whole: the next one is cold, and knows what was found."""
    await first_night(ledger, "a")
    lease = await begin(ledger, 2)
    whole = promotion(lease, resumed(1), 2, session_since=NOON, recall=recall(lease))
    with pytest.raises(StateNotSavedError):
        await ledger.runs.save_plan(lease, plan(), staged=whole)
    await ledger.runs.save_plan(lease, plan(), staged=whole.without_session())
    found = await ledger.reviews.last(REPOSITORY)
    assert found is not None
    assert (found.session_id, found.session_length, found.session_since) == (None, 0, None)
    assert (found.review_id, found.recalls) == (whole.state.review_id, (recall(lease),))


async def test_a_cold_session_begins_anew(ledger: AnyLedger) -> None:
    """Nothing of one that stood under its id is in it: a run may be asked again after its plan was
    lost."""
    await first_night(ledger, "a", "b")
    lease = await begin(ledger, 2)
    again = replace(COLD, name="again")
    await ledger.sessions.append(again, lines("x"), after=0)
    await ledger.runs.save_plan(lease, plan(), staged=promotion(lease, again, 1))
    assert await kept_words(ledger) == "x"


async def test_an_earlier_plan_keeps_its_state(ledger: AnyLedger) -> None:
    """A second attempt of the run, and the same call again: nothing is promoted."""
    lease = await first_night(ledger, "a")
    again = replace(COLD, name="again")
    await ledger.sessions.append(again, lines("x", "y"), after=0)
    before = await ledger.reviews.last(REPOSITORY)
    late = promotion(lease, again, 2, review_id="late", recall=recall(lease))
    assert await ledger.runs.save_plan(lease, plan(9), staged=late) == plan()
    assert await ledger.runs.save_plan(lease, plan(9)) == plan()
    assert await ledger.reviews.last(REPOSITORY) == before
    assert await kept_words(ledger) == "a"
    assert words(await ledger.sessions.read(again)) == "xy"


async def test_the_same_call_again_is_harmless(ledger: AnyLedger) -> None:
    """Its reply was lost: the copy is gone, and the plan is given back."""
    lease = await begin(ledger, 1)
    await ledger.sessions.append(COLD, lines("a"), after=0)
    given = promotion(lease, COLD, 1, recall=recall(lease))
    for _ in range(2):
        assert await ledger.runs.save_plan(lease, plan(), staged=given) == plan()
    assert await kept_words(ledger) == "a"
    assert await ledger.reviews.recalls(REPOSITORY) == (recall(lease),)


@pytest.mark.parametrize("expired", [False, True])
async def test_a_copy_that_is_not_whole(ledger: AnyLedger, place: Place, expired: bool) -> None:
    """It has fewer or more lines than its attempt knows of: neither plan nor state is written."""
    await first_night(ledger, "a")
    lease = await begin(ledger, 2)
    await ledger.sessions.append(resumed(1), lines("b"), after=0)
    if expired:
        await ledger.sessions.discard(resumed(1))
    before = await place.everything()
    given = promotion(lease, resumed(1), 2 if expired else 3, recall=recall(lease))
    with pytest.raises(StateNotSavedError, match="does not have as many lines"):
        await ledger.runs.save_plan(lease, plan(), staged=given)
    assert await place.everything() == before


async def test_a_session_that_was_cut_off(ledger: AnyLedger, place: Place) -> None:
    """The same of what the copy goes on from."""
    await first_night(ledger, "a", "b")
    lease = await begin(ledger, 2)
    await ledger.sessions.append(resumed(2), lines("c"), after=0)
    other = resumed(1, "other")
    third = await begin(ledger, 3)
    await ledger.reviews.clear_session(third, resumed(2), "broken")
    before = await place.everything()
    with pytest.raises(StateNotSavedError, match="shorter than the snapshot says"):
        await ledger.runs.save_plan(lease, plan(), staged=promotion(lease, resumed(2), 3))
    assert await place.everything() == before
    assert await ledger.sessions.read(other) is None


async def test_without_the_lease_nothing_is_written(
    brief: AnyLedger, place: Place, timing: LedgerTiming
) -> None:
    """Neither plan nor state, and no session is given up."""
    lease = await first_night(brief, "a")
    await place.pass_time(LAPSE)
    before = await place.everything()
    given = promotion(lease, resumed(1), 2)
    for call in (
        brief.runs.save_plan(lease, plan(), staged=given),
        brief.reviews.clear_session(lease, resumed(1), "broken"),
    ):
        with pytest.raises(LeaseLost):
            await call
    assert await place.everything() == before


async def test_an_older_snapshot_changes_nothing(ledger: AnyLedger) -> None:
    """A run that took long: its plan is written, and what the newer one left stands."""
    old = await begin(ledger, 1)
    await ledger.sessions.append(COLD, lines("a"), after=0)
    new = await begin(ledger, 2)
    newer = StagedSession(REPOSITORY, "newer")
    await ledger.sessions.append(newer, lines("x", session=OTHER_SESSION), after=0)
    left = promotion(new, newer, 1, session_id=OTHER_SESSION)
    await ledger.runs.save_plan(new, plan(), staged=left)
    late = promotion(old, COLD, 1, recall=recall(old))
    assert await ledger.runs.save_plan(old, plan(7), staged=late) == plan(7)
    assert await ledger.reviews.last(REPOSITORY) == left.state
    assert (await kept_words(ledger, OTHER_SESSION), await kept_words(ledger)) == ("x", "")


async def test_a_session_that_was_replaced_stays_for_a_day(ledger: AnyLedger, place: Place) -> None:
    """An attempt may be at it still; by findings alone, or cold, there is another or none."""
    await first_night(ledger, "a")
    lease = await begin(ledger, 2)
    fresh = StagedSession(REPOSITORY, "fresh")
    await ledger.sessions.append(fresh, lines("b", session=OTHER_SESSION), after=0)
    given = promotion(lease, fresh, 1, session_id=OTHER_SESSION)
    await ledger.runs.save_plan(lease, plan(), staged=given)
    await ledger.runs.save_plan(
        third := await begin(ledger, 3), plan(), staged=Promotion(state(third))
    )
    for session in (SESSION, OTHER_SESSION):
        left = await place.life(f"session:R{REPOSITORY}:{session}")
        assert left is not None
        assert timedelta(hours=23) < left <= timedelta(days=1)
    assert (await kept_words(ledger), await kept_words(ledger, OTHER_SESSION)) == ("a", "b")
    found = await ledger.reviews.last(REPOSITORY)
    assert found is not None
    assert found.session_id is None


async def test_a_session_is_given_up_once(ledger: AnyLedger, place: Place) -> None:
    """It is gone, the review stays, and says why the next one is cold; until that was."""
    await first_night(ledger, "a")
    before = await ledger.reviews.last(REPOSITORY)
    assert before is not None
    lease = await begin(ledger, 2)
    for _ in range(2):
        assert await ledger.reviews.clear_session(lease, resumed(1), "error_during_execution")
    found = await ledger.reviews.last(REPOSITORY)
    assert found is not None
    assert found.cleared is not None
    assert found.cleared.model_dump() == {
        "session_id": SESSION,
        "run": lease.dedupe_key,
        "reason": "error_during_execution",
    }
    assert (found.session_id, found.session_length, found.session_since) == (None, 0, None)
    assert (found.review_id, found.review) == (before.review_id, before.review)
    assert await kept_words(ledger) == ""
    stands = await place.everything()
    assert not await ledger.reviews.clear_session(await begin(ledger, 3), resumed(1), "again")
    assert await ledger.reviews.last(REPOSITORY) == found
    assert stands != await place.everything()  # the third run itself
    fresh = StagedSession(REPOSITORY, "fresh")
    await ledger.sessions.append(fresh, lines("b", session=OTHER_SESSION), after=0)
    given = promotion(lease, fresh, 1, session_id=OTHER_SESSION, fence=lease.fence + 5)
    await ledger.runs.save_plan(lease, plan(), staged=given)
    assert await ledger.reviews.last(REPOSITORY) == given.state


async def test_what_another_run_went_on_with_is_not_given_up(ledger: AnyLedger) -> None:
    """A session that is longer by now was not broken; nor is one of another night, or none."""
    await first_night(ledger, "a")
    slow, quick = await begin(ledger, 2), await begin(ledger, 3)
    await ledger.sessions.append(resumed(1), lines("b"), after=0)
    await ledger.runs.save_plan(quick, plan(), staged=promotion(quick, resumed(1), 2))
    elsewhere = StagedSession(REPOSITORY + 1, "x", SESSION, 2)
    for copy in (resumed(1), resumed(2, session=OTHER_SESSION), elsewhere, COLD):
        assert not await ledger.reviews.clear_session(slow, copy, "broken")
    found = await ledger.reviews.last(REPOSITORY)
    assert found is not None
    assert (found.session_id, found.cleared) == (SESSION, None)
    assert await kept_words(ledger) == "ab"


async def test_recall_is_kept_newest_first(ledger: AnyLedger) -> None:
    """A bounded number of figures; the newest ten come with the review."""
    lease = await begin(ledger, 1)
    assert await ledger.reviews.recalls(REPOSITORY) == ()
    for number in range(103):
        key = f"{lease.dedupe_key}:forced-{number}"
        one = await ledger.leases.acquire(key, "w", f"f{number}")
        assert one is not None
        told = Promotion(state(one), recall=recall(one, number % 3))
        await ledger.runs.save_plan(one, plan(), staged=told)
    found = await ledger.reviews.recalls(REPOSITORY, 1000)
    assert [figure.run.rpartition("-")[2] for figure in found] == [
        str(number) for number in range(102, 2, -1)
    ]
    assert [figure.share for figure in found[:3]] == [0.0, 1.0, 0.5]
    assert await ledger.reviews.recalls(REPOSITORY, 2) == found[:2]
    last = await ledger.reviews.last(REPOSITORY)
    assert last is not None
    assert last.recalls == found[:10]


async def test_it_is_forgotten_with_the_runs(ledger: AnyLedger, place: Place) -> None:
    """A repository that nobody reviews any more leaves nothing."""
    lease = await begin(ledger, 1)
    told = Promotion(state(lease), recall=recall(lease))
    await ledger.runs.save_plan(lease, plan(), staged=told)
    for key in (f"review:{REPOSITORY}", f"review:{REPOSITORY}:recall"):
        left = await place.life(key)
        assert left is not None
        assert timedelta(days=89) < left <= timedelta(days=90)


@asynccontextmanager
async def full(client: redis.asyncio.Redis) -> AsyncIterator[None]:
    """No memory is left."""
    await client.config_set("maxmemory", "1")
    yield
    await client.config_set("maxmemory", "0")


@asynccontextmanager
async def read_only(client: redis.asyncio.Redis) -> AsyncIterator[None]:
    """It is a replica of a server that nobody reaches."""
    await client.replicaof("127.0.0.1", "1")
    yield
    await client.replicaof("NO", "ONE")


@pytest.mark.parametrize("refusing", [full, read_only])
async def test_a_server_that_refuses_has_nothing_of_it(
    tmp_path: Path, timing: LedgerTiming, refusing: Any
) -> None:
    """Neither plan nor state, though the session would have been cut and gone on with; asked again
    when it takes writes, it has all."""
    server = await OwnValkey(tmp_path).start()
    try:
        ledger = server.open(timing)
        await ledger.epochs.ensure(first=True)
        await first_night(ledger, "a", "b")
        lease = await begin(ledger, 2)
        await ledger.sessions.append(resumed(1), lines("c"), after=0)
        given = promotion(lease, resumed(1), 2, recall=recall(lease))
        before = await server.everything()
        async with refusing(server.client):
            for call in (
                ledger.runs.save_plan(lease, plan(), staged=given),
                ledger.sessions.append(resumed(1), lines("d"), after=1),
                ledger.reviews.clear_session(lease, resumed(2), "broken"),
            ):
                with pytest.raises(LedgerUnavailableError):
                    await call
        assert await server.everything() == before
        await ledger.runs.save_plan(lease, plan(), staged=given)
        assert await kept_words(ledger) == "ac"
    finally:
        await server.stop()


async def test_keys_are_those_that_are_written_down(
    client: redis.asyncio.Redis, timing: LedgerTiming
) -> None:
    """As the architecture names them."""
    ledger = Valkey(client).open(timing)
    await ledger.epochs.ensure(first=True)
    lease = await begin(ledger, 1)
    await ledger.sessions.append(COLD, lines("a"), after=0)
    assert await client.exists("session:staged:cold") == 1
    given = promotion(lease, COLD, 1, recall=recall(lease))
    await ledger.runs.save_plan(lease, plan(), staged=given)
    names = {text(name) async for name in client.scan_iter(match="*")}
    assert {name for name in names if name.startswith(("session", "review", "recall"))} == {
        f"session:R{REPOSITORY}:{SESSION}",
        f"review:{REPOSITORY}",
        f"review:{REPOSITORY}:recall",
    }


@pytest.mark.parametrize(
    ("copy", "fields", "why"),
    [
        (COLD, {"session_id": None, "session_length": 0}, "kept of a copy"),
        (None, {"session_id": SESSION, "session_length": 1}, "kept of a copy"),
        (resumed(2), {"session_length": 2}, "longer than before"),
        (resumed(2), {"session_id": OTHER_SESSION, "session_length": 3}, "keeps its id"),
        (COLD, {"repository_id": 8, "session_length": 1}, "another repository"),
    ],
)
async def test_what_cannot_be_promoted(
    ledger: AnyLedger, copy: StagedSession | None, fields: dict[str, Any], why: str
) -> None:
    """A caller's mistake is no state of the ledger."""
    lease = await begin(ledger, 1)
    given = {"session_id": copy and (copy.session_id or SESSION), **fields}
    left = state(lease).model_copy(update=given)
    with pytest.raises(ValueError, match=why):
        Promotion(left, copy)
