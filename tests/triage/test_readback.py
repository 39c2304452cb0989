"""What reading GitHub back proves: a hit at once, an absence only by five reads, well apart."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.triage.samples import BOT, BOTS, DEDUPE_KEY, KEYS, NOON, PERSON, effect
from triage.contract import Evidence, RunEffect, Skip
from triage.identifiers import EffectKind
from triage.marker import MarkerKeys, body_digest, stamp
from triage.readback import (
    SAMPLES,
    UNSETTLED_LIMIT,
    Forged,
    Found,
    Hit,
    Nothing,
    adopted,
    counts_as_sample,
    find,
    found,
    is_overdue,
    next_sample,
    proof_until,
    proved_absent,
)

COMMENT = effect(EffectKind.COMMENT, digest=body_digest("the text"))
WINDOW = timedelta(minutes=15)
QUARTER = WINDOW / 4


def seen(
    github_id: int,
    *,
    by: int = BOT,
    body: str = "the text",
    key: str = COMMENT.effect_key,
    keys: MarkerKeys = KEYS,
    added: str = "",
) -> Found:
    """A comment on the issue."""
    text = stamp(body, effect_key=key, run=DEDUPE_KEY, keys=keys) + added
    return found(github_id, 1, by, text, f"https://github.example/{github_id}", KEYS)


FORGED = MarkerKeys.parse("k1:" + "ff" * 16)
PLAIN = found(5, 1, PERSON, "I have this too", "", KEYS)


# --- Finding ------------------------------------------------------------------------------------


def test_the_bots_comment_is_found_among_others() -> None:
    """It is told by its marker and its author."""
    assert find(COMMENT.effect_key, [PLAIN, seen(6)], BOTS) == Hit(seen(6))


def test_of_two_the_lowest_id_wins() -> None:
    """The others are told too: they are to go."""
    hit = find(COMMENT.effect_key, [seen(9), seen(6), seen(7)], BOTS)
    assert hit == Hit(seen(6), (seen(7), seen(9)))


def test_a_marker_that_somebody_pasted_is_nothing() -> None:
    """A valid signature is not enough: anyone can copy the bot's comment."""
    assert find(COMMENT.effect_key, [seen(6, by=PERSON)], BOTS) == Nothing()


def test_a_copy_by_somebody_else_hides_nothing() -> None:
    """Neither does its lower id win, nor is it one of those that are to go."""
    copies = [seen(1, by=PERSON), seen(6), seen(8, by=PERSON)]
    assert find(COMMENT.effect_key, copies, BOTS) == Hit(seen(6))


def test_an_earlier_account_of_the_bot_counts() -> None:
    """The bot's user id changes with a new App; the old one's comments stay its own."""
    assert find(COMMENT.effect_key, [seen(6, by=8999)], BOTS | {8999}) == Hit(seen(6, by=8999))


def test_the_comment_of_another_effect_is_nothing() -> None:
    """Each marker names the one effect that it is."""
    assert find(COMMENT.effect_key, [seen(6, key="f" * 64)], BOTS) == Nothing()


def test_an_own_comment_with_a_bad_signature_is_forged() -> None:
    """That is a conflict, not an absence: nothing may be sent again."""
    bad = seen(6, keys=FORGED)
    assert find(COMMENT.effect_key, [bad], BOTS) == Forged(bad)


def test_a_forged_one_beside_the_true_one_does_not_count() -> None:
    """Any single hit wins."""
    assert find(COMMENT.effect_key, [seen(6, keys=FORGED), seen(7)], BOTS) == Hit(seen(7))


def test_an_empty_list_is_nothing() -> None:
    """And proves nothing: lists flap."""
    assert find(COMMENT.effect_key, [], BOTS) == Nothing()


# --- Adopting -----------------------------------------------------------------------------------


def doubtful(**changes: object) -> RunEffect:
    """A comment that was sent, whose answer never came."""
    return COMMENT.model_copy(
        update={
            "evidence": Evidence.UNSETTLED,
            "open": True,
            "sends": 1,
            "reason": "502",
            "sent_at": NOON,
            **changes,
        }
    )


def test_a_hit_with_the_intended_digest_confirms() -> None:
    """The id and address are kept, the doubt is over."""
    after = adopted(doubtful(), Hit(seen(6)), NOON + WINDOW)
    assert after == doubtful(
        evidence=Evidence.CONFIRMED,
        open=False,
        reason="",
        github_id=6,
        url="https://github.example/6",
        when=NOON + WINDOW,
    )


def test_a_hit_with_an_older_digest_is_an_edit_that_has_not_landed() -> None:
    """The comment is there, the intended text is not: absent, to be edited by its id."""
    after = adopted(doubtful(), Hit(seen(6, body="an older text")), NOON)
    assert (after.evidence, after.github_id, after.open) == (Evidence.ABSENT, 6, False)


def test_a_comment_that_came_with_a_transferred_issue_is_to_be_signed_anew() -> None:
    """Its marker is valid, but names another place: the id is known, the edit is to be done."""
    after = adopted(doubtful(), Hit(seen(6, key="f" * 64)), NOON)
    assert (after.evidence, after.github_id, after.open) == (Evidence.ABSENT, 6, False)


def test_a_hit_that_a_person_edited_is_left() -> None:
    """People win, whatever the marker above their words says."""
    after = adopted(doubtful(), Hit(seen(6, added="\n\nI disagree.")), NOON)
    assert (after.evidence, after.reason) == (Evidence.SKIPPED, Skip.HUMAN_EDITED)
    assert (after.github_id, after.open) == (6, False)


def test_a_box_that_a_person_ticked_still_confirms() -> None:
    """A tick is an answer, not an edit."""
    wanted = doubtful(digest=body_digest("- [ ] close"))
    ticked = found(6, 1, BOT, _ticked("- [ ] close"), "", KEYS)
    assert adopted(wanted, Hit(ticked), NOON).evidence is Evidence.CONFIRMED


def _ticked(body: str) -> str:
    text = stamp(body, effect_key=COMMENT.effect_key, run=DEDUPE_KEY, keys=KEYS)
    return text.replace("- [ ]", "- [x]")


# --- Proving absence ----------------------------------------------------------------------------


def on_time(samples: Sequence[datetime], now: datetime, window: timedelta) -> list[datetime]:
    """The samples once each further read is taken when it falls due."""
    taken = list(samples)
    while (due := next_sample(taken, now, window)) is not None:
        now = max(now, due)
        assert counts_as_sample(taken, now, window)
        taken.append(now)
    return taken


def test_reads_fall_at_the_quarters_of_the_window() -> None:
    """Five of them: now, and four quarters."""
    assert on_time([], NOON, WINDOW) == [NOON + QUARTER * n for n in range(SAMPLES)]


def test_a_read_before_its_time_is_no_sample() -> None:
    """Asking a hundred times in a minute proves no more than asking once."""
    assert counts_as_sample([], NOON, WINDOW)
    for seconds in range(1, int(QUARTER.total_seconds())):
        assert not counts_as_sample([NOON], NOON + timedelta(seconds=seconds), WINDOW)
    assert counts_as_sample([NOON], NOON + QUARTER, WINDOW)


def test_late_reads_still_keep_apart() -> None:
    """After a long silence the missing reads are not made up for in one go."""
    late = NOON + timedelta(days=1)
    taken = on_time([NOON], late, WINDOW)
    assert taken == [NOON] + [late + QUARTER / 2 * n for n in range(4)]


def test_four_reads_prove_nothing_however_far_apart() -> None:
    """Fewer than five are never a proof."""
    days = [NOON + timedelta(days=n) for n in range(4)]
    assert not proved_absent(days, WINDOW)
    assert proved_absent([*days, NOON + timedelta(days=4)], WINDOW)


def test_reads_of_several_workers_at_one_moment_are_one() -> None:
    """Two who look at the same time may both be recorded: no burst passes for a spread."""
    burst = [NOON + timedelta(seconds=n) for n in range(4)]
    assert not proved_absent([*burst, NOON + WINDOW], WINDOW)
    assert on_time(burst, NOON + timedelta(seconds=5), WINDOW)[4:] == [
        NOON + QUARTER * n for n in range(1, 5)
    ]


def test_reads_count_apart_from_a_quarter_of_a_quarter_on() -> None:
    """However they came to be recorded; five of them still need the whole window."""
    apart = QUARTER / 4
    near = [NOON + n * (apart - timedelta(microseconds=1)) for n in range(5)]
    far = [NOON + n * apart for n in range(5)]
    assert not proved_absent([*near, NOON + WINDOW], WINDOW)
    assert proved_absent([*far, NOON + WINDOW], WINDOW)
    assert next_sample(far, NOON + QUARTER, WINDOW) == NOON + WINDOW


def test_once_proved_no_read_is_due() -> None:
    """The proof is complete with the fifth."""
    five = on_time([], NOON, WINDOW)
    assert next_sample(five, NOON + WINDOW, WINDOW) is None
    assert not counts_as_sample(five, NOON + WINDOW, WINDOW)
    assert proof_until(five, NOON + WINDOW, WINDOW) == five[-1]


WINDOWS = st.integers(100, 3_600_000).map(lambda n: timedelta(milliseconds=n))
GAPS = st.lists(st.floats(0, 2), max_size=30)


def sampled(gaps: Sequence[float], window: timedelta) -> tuple[list[datetime], datetime]:
    """Reads at any moments, the gaps between them in windows; those that count, and the last."""
    samples: list[datetime] = []
    now = NOON
    for gap in gaps:
        now += window * gap
        if counts_as_sample(samples, now, window):
            samples.append(now)
    return samples, now


@given(GAPS, WINDOWS)
def test_absence_is_proved_by_five_reads_spread_over_the_window(
    gaps: list[float], window: timedelta
) -> None:
    """Under any sampling: five at least, half a quarter apart at least, over a window at least."""
    samples, _ = sampled(gaps, window)
    apart = window / (SAMPLES - 1) / 2
    assert all(later - earlier >= apart for earlier, later in pairwise(samples))
    spread = len(samples) >= SAMPLES and samples[-1] - samples[0] >= window
    assert proved_absent(samples, window) == spread


@given(GAPS, WINDOWS)
def test_the_promised_time_is_that_of_the_last_read(gaps: list[float], window: timedelta) -> None:
    """Whatever came late, who comes back when told finds the proof complete, and not earlier."""
    samples, now = sampled(gaps, window)
    promised = proof_until(samples, now, window)
    rest = on_time(samples, now, window)
    assert promised == rest[-1]
    assert proved_absent(rest, window)
    assert not proved_absent(rest[:-1], window) or rest == samples


@given(GAPS, st.floats(0, 3), WINDOWS)
def test_the_promised_time_never_moves_to_an_earlier_one(
    gaps: list[float], wait: float, window: timedelta
) -> None:
    """A read that is missed moves it on; nobody who was told a time is told an earlier one."""
    samples, now = sampled(gaps, window)
    later = now + window * wait
    assert proof_until(samples, later, window) >= proof_until(samples, now, window)


@given(st.lists(st.floats(0, 3), max_size=12), WINDOWS)
def test_any_recorded_reads_come_to_a_proof(offsets: list[float], window: timedelta) -> None:
    """Even where what was recorded came from several workers at once, the end is near."""
    samples = sorted(NOON + window * offset for offset in offsets)
    now = samples[-1] if samples else NOON
    assert proof_until(samples, now, window) - now <= window * 2
    if proved_absent(samples, window):
        assert len(samples) >= SAMPLES
        assert samples[-1] - samples[0] >= window


# --- Overdue ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("evidence", "hours", "overdue"),
    [
        (Evidence.UNSETTLED, 23.99, False),
        (Evidence.UNSETTLED, 24, True),
        (Evidence.CONFIRMED, 48, False),
        (Evidence.ABSENT, 48, False),
    ],
)
def test_after_a_day_a_person_is_asked(evidence: Evidence, hours: float, overdue: bool) -> None:
    """Counted from the first intent, and only while it is unsettled."""
    sent = doubtful(evidence=evidence, sent_at=NOON - timedelta(hours=hours))
    assert is_overdue(sent, NOON) is overdue


def test_what_was_never_sent_is_not_overdue() -> None:
    """There is no intent to count from."""
    assert not is_overdue(doubtful(sent_at=None), NOON + 2 * UNSETTLED_LIMIT)
