"""Sessions: an attempt's copy over what the snapshot says, whole, bounded, gone when it died."""

from datetime import timedelta

import pytest
import redis.asyncio

from ledger.errors import LedgerCorruptError, StateNotSavedError
from ledger.ledger import open_ledger
from ledger.memory import StagedSession, TranscriptLine
from ledger.sessions import MOST_LINE_BYTES, MOST_SESSION_BYTES, copy_key
from ledger.timing import LedgerTiming
from tests.ledger.nights import COLD, SESSION, first_night, kept_words, lines, resumed, words
from tests.ledger.places import AnyLedger, Place
from tests.ledger.samples import REPOSITORY


async def test_lines_come_back_as_they_were(ledger: AnyLedger, place: Place) -> None:
    """In order, with what they are of, and when they were stored."""
    given = [
        TranscriptLine("-a b", SESSION, "", '{"t":"ünï\\ncode"}'),
        TranscriptLine("-a b", SESSION, "subagents/agent-1", "{}"),
        TranscriptLine("", "other", "", ""),
    ]
    before = await place.now()
    await ledger.sessions.append(COLD, given[:1], after=0)
    await ledger.sessions.append(COLD, given[1:], after=1)
    await ledger.sessions.append(COLD, [], after=9)
    found = await ledger.sessions.read(COLD)
    assert found == given
    assert found is not None
    after, millisecond = await place.now(), timedelta(milliseconds=1)
    assert all(line.at and before - millisecond <= line.at <= after for line in found)
    assert await ledger.sessions.length(COLD) == 3


async def test_nothing_is_an_empty_session(ledger: AnyLedger) -> None:
    """A copy that nobody wrote to, and a session that is not kept."""
    assert await ledger.sessions.read(COLD) == []
    assert await ledger.sessions.length(COLD) == 0
    size = await ledger.sessions.kept(REPOSITORY, SESSION)
    assert (size.lines, size.bytes) == (0, 0)


async def test_a_copy_is_the_attempts_own(ledger: AnyLedger) -> None:
    """It shows the first lines of the session and what was added to it; the session stands."""
    await first_night(ledger, "a", "b", "c")
    one, two = resumed(2, "one"), resumed(3, "two")
    await ledger.sessions.append(one, lines("x"), after=0)
    await ledger.sessions.append(two, lines("y", "z"), after=0)
    assert words(await ledger.sessions.read(one)) == "abx"
    assert words(await ledger.sessions.read(two)) == "abcyz"
    assert (await ledger.sessions.length(one), await ledger.sessions.length(two)) == (3, 5)
    assert await kept_words(ledger) == "abc"
    await ledger.sessions.discard(one)
    assert words(await ledger.sessions.read(one)) == "ab"


async def test_a_session_is_of_its_repository(ledger: AnyLedger) -> None:
    """Another one does not get to see it, whatever id it names."""
    await first_night(ledger, "a")
    assert await ledger.sessions.read(StagedSession(8, "x", SESSION, 1)) is None
    assert (await ledger.sessions.kept(8, SESSION)).lines == 0


async def test_a_shorter_session_is_none(ledger: AnyLedger) -> None:
    """It is neither shown nor gone on with: what is left of it would not be missed."""
    await first_night(ledger, "a", "b")
    longer = resumed(3)
    assert await ledger.sessions.read(longer) is None
    with pytest.raises(StateNotSavedError, match="shorter than the snapshot says"):
        await ledger.sessions.append(longer, lines("x"), after=0)
    assert await ledger.sessions.length(longer) == 3


async def test_the_same_append_again_stands_once(ledger: AnyLedger) -> None:
    """Its reply was lost. With other lines, or from another place, it is refused whole."""
    for _ in range(2):
        await ledger.sessions.append(COLD, lines("a", "b"), after=0)
    for _ in range(2):
        await ledger.sessions.append(COLD, lines("c"), after=2)
    assert words(await ledger.sessions.read(COLD)) == "abc"
    for late, after in ((lines("x"), 2), (lines("c"), 1), (lines("b", "x"), 1), (lines("d"), 4)):
        with pytest.raises(StateNotSavedError, match="only writer"):
            await ledger.sessions.append(COLD, late, after=after)
    assert words(await ledger.sessions.read(COLD)) == "abc"


async def test_a_copy_vanishes(ledger: AnyLedger, place: Place) -> None:
    """An hour after the last line that was added, as no attempt lives that long."""
    await ledger.sessions.append(COLD, lines("a"), after=0)
    left = await place.life("session:staged:cold")
    assert left is not None
    assert timedelta(minutes=59) < left <= timedelta(hours=1)


async def test_a_long_line_is_refused(ledger: AnyLedger) -> None:
    """And with it those that come along."""
    longest = TranscriptLine("-work", SESSION, "", "x" * MOST_LINE_BYTES)
    await ledger.sessions.append(COLD, [longest], after=0)
    longer = TranscriptLine("-work", SESSION, "", "x" * (MOST_LINE_BYTES + 1))
    with pytest.raises(StateNotSavedError, match="a line of the session is larger than 4194304"):
        await ledger.sessions.append(COLD, [*lines("a"), longer], after=1)
    assert await ledger.sessions.length(COLD) == 1


async def test_a_long_session_is_refused(ledger: AnyLedger) -> None:
    """What was said before counts, as far as it is gone on with; what was added stands."""
    large = TranscriptLine("-work", SESSION, "", "x" * MOST_LINE_BYTES)
    most = MOST_SESSION_BYTES // MOST_LINE_BYTES
    for at in range(most):
        await ledger.sessions.append(COLD, [large], after=at)
    with pytest.raises(StateNotSavedError, match="the session is larger than 33554432"):
        await ledger.sessions.append(COLD, lines("a"), after=most)
    assert await ledger.sessions.length(COLD) == most


async def test_what_was_said_before_counts(ledger: AnyLedger) -> None:
    """Bytes are those of the session up to where the copy begins."""
    await first_night(ledger, "a", "bb", "c")
    warm = resumed(2)
    await ledger.sessions.append(warm, lines("d"), after=0)
    size = await ledger.sessions.kept(REPOSITORY, SESSION)
    assert (size.lines, size.bytes) == (3, 12 + 13 + 12)


async def test_what_was_not_written_by_us_is_corrupt(client: redis.asyncio.Redis) -> None:
    """A person must look."""
    ledger = open_ledger(client, LedgerTiming())
    await ledger.sessions.append(COLD, lines("a"), after=0)
    for item in ("1 2 three", "1", "1 x y", ""):
        await client.lset(copy_key(COLD), 0, item)
        with pytest.raises(LedgerCorruptError):
            await ledger.sessions.read(COLD)


@pytest.mark.parametrize(("session", "length"), [(None, 1), (SESSION, 0)])
def test_a_copy_knows_what_it_resumes(session: str | None, length: int) -> None:
    """A session and how much of it, or neither."""
    with pytest.raises(ValueError, match="a resumed session has a length"):
        StagedSession(REPOSITORY, "x", session, length)
