"""What changed in a resource, and what is taken of the model's words about it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.triage.samples import NOON
from tests.triage.watches import atom, document, earlier, entry, page, resource, watched
from triage.documents import Change, Importance, WatchDocument, WatchInput
from triage.watch import (
    COMPARED_LINES,
    LINES_LIMIT,
    compared,
    kept,
    make_watch,
    not_read,
    sides,
)

FIRST, CHANGED, UNCHANGED, UNREAD = Change.FIRST, Change.CHANGED, Change.UNCHANGED, Change.UNREAD


def unread(name: str = "valkey") -> WatchDocument:
    """A resource that was not there."""
    return not_read(
        resource(name), address="https://x", observed_at=NOON, status=503, problem="status: 503"
    )


def between(now: WatchDocument, before: WatchDocument | None) -> WatchInput:
    """One resource, now and before."""
    prior = () if before is None else (earlier(before),)
    return WatchInput(documents=(now,), prior=prior)


@pytest.mark.parametrize(
    ("now", "before", "change"),
    [
        (document(atom("1")), None, FIRST),
        (document(atom("1")), document(atom("1")), UNCHANGED),
        (document(atom("2", "1")), document(atom("1")), CHANGED),
        (document(atom("1", text="New")), document(atom("1")), CHANGED),
        (document(atom("1", updated="2026-09-17T00:00:00Z")), document(atom("1")), UNCHANGED),
        (unread(), document(atom("1")), UNREAD),
        (unread(), None, UNREAD),
        (document("broken"), document(atom("1")), CHANGED),
        (document(atom("1")), document("broken"), CHANGED),
        (page("one\ntwo"), page("one\ntwo"), UNCHANGED),
        (page("one\ntwo"), page("one\nthree"), CHANGED),
        (page("<html><p>one</p></html>"), page("<html><p class=x>one</p></html>"), UNCHANGED),
        (page(""), page("one"), CHANGED),
        (document(atom()), document(atom()), UNCHANGED),
    ],
)
def test_what_became_of_a_resource(
    now: WatchDocument, before: WatchDocument | None, change: Change
) -> None:
    """By its digest, then by its entries or lines."""
    [found] = compared(between(now, before))
    assert (found.name, found.change) == (now.name, change)
    assert (found.since is not None) == (before is not None and change is not FIRST)


def test_another_address_is_another_resource() -> None:
    """It keeps its name, and is seen for the first time."""
    before = document(atom("1")).model_copy(update={"url": "https://example.com/old"})
    [found] = compared(between(document(atom("2", "1")), before))
    assert found.change is FIRST


def test_entries_that_came_and_went() -> None:
    """New, edited, and gone from the middle; the old end of the list only made room."""
    was = document(atom("4", "3", "2", "1"))
    now = document(atom("5", "4", "2", text="Fixes"))
    edited = now.entries[1].model_copy(update={"digest": "other"})
    now = now.model_copy(update={"entries": (now.entries[0], edited, now.entries[2])})
    [found] = compared(between(now, was))
    assert [item.title for item in found.added] == ["v5"]
    assert [item.title for item in found.removed] == ["v3"]
    assert [item.title for item in found.edited] == ["v4"]


def test_a_feed_that_has_moved_on_entirely_lost_nothing() -> None:
    """Nothing of the old list is left: all of it is behind the new end."""
    [found] = compared(between(document(atom("9", "8")), document(atom("2", "1"))))
    assert (len(found.added), found.removed) == (2, ())


def test_lines_of_a_page() -> None:
    """Each behind its sign, without what stayed."""
    now, before = page("a\nb\nc"), page("a\nx\nc")
    [found] = compared(between(now, before))
    assert found.lines == ("-x", "+b")
    assert sides(found, between(now, before)) == ("a\nx\nc", "a\nb\nc")


def test_lines_are_bounded() -> None:
    """Many lines are counted; a change behind what is compared is still a change."""
    [many] = compared(between(page("\n".join(map(str, range(500)))), page("x")))
    assert len(many.lines) == LINES_LIMIT + 1
    assert many.lines[-1] == f"+ (and {501 - LINES_LIMIT} lines more)"
    same = "\n".join(str(n) for n in range(COMPARED_LINES))
    [behind] = compared(between(page(f"{same}\nnew"), page(f"{same}\nold")))
    assert (behind.change, behind.lines) == (CHANGED, ("+ (something behind what is compared)",))


def test_what_the_model_is_shown_of_entries() -> None:
    """Those that are gone, and those that are new or changed."""
    taken = between(document(atom("3", "1")), document(atom("2", "1")))
    [found] = compared(taken)
    assert sides(found, taken) == (("v2: Fixes in 2",), ("v3: Fixes in 3",))


def test_a_feed_that_breaks_is_a_text() -> None:
    """With the reason; the next window compares with it like with any other."""
    broken = document("<!DOCTYPE feed><feed/>")
    assert broken.problem == "not readable as feed: it declares a document type"
    assert (broken.entries, broken.was_read) == ((), True)


def test_a_resource_that_was_not_read_changes_nothing() -> None:
    """The next window compares with the last one that was."""
    before = earlier(document(atom("1")))
    taken = WatchInput(documents=(unread(), document(atom("1"), "b"), unread("c")), prior=(before,))
    assert [(item.name, item.observed_at) for item in kept(taken)] == [
        ("valkey", before.observed_at),
        ("b", NOON),
    ]


def test_a_list_that_is_empty_for_a_night_makes_nothing_new() -> None:
    """The night after is compared with what stood there before."""
    before, now = earlier(document(atom("1"))), document(atom("1", "2"))
    [remembered] = kept(between(document(atom()), before))
    [difference] = compared(between(now, remembered))
    assert [item.title for item in difference.added] == ["v2"]
    assert kept(between(document(atom()), None)) == (document(atom()),)


KEYS = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=6)


@given(KEYS, KEYS)
def test_every_entry_is_accounted_for(before: list[str], now: list[str]) -> None:
    """What is there is new or was there; what is gone is named or made room."""
    was = document(atom("0")).model_copy(update={"entries": tuple(map(entry, before))})
    here = document(atom("1")).model_copy(update={"entries": tuple(map(entry, now))})
    [found] = compared(between(here, was))
    assert {item.key for item in found.added} == set(now) - set(before)
    assert {item.key for item in found.removed} <= set(before) - set(now)
    assert found.edited == ()


@given(st.text(max_size=100), st.text(max_size=100))
def test_a_page_changed_when_its_words_did(before: str, now: str) -> None:
    """And only then."""
    taken = between(page(now), page(before))
    [found] = compared(taken)
    changed = taken.documents[0].text != taken.prior[0].text
    assert (found.change is CHANGED) == changed == bool(found.lines)


# --- The model's words --------------------------------------------------------------------------


def says(name: str = "valkey", **changes: Any) -> dict[str, Any]:
    """What the model says of a change."""
    return {"name": name, "summary": "Version 2 is out.", "importance": "medium", **changes}


def both(*answers: Any) -> Any:
    """One resource that changed and one that did not, with what the model said."""
    taken = WatchInput(
        documents=(document(atom("2", "1")), page("same")),
        prior=(document(atom("1")), page("same")),
    )
    return make_watch(answers, taken)


def test_words_about_a_change_are_kept() -> None:
    """With how much it matters."""
    [told] = both(says()).told
    assert (told.summary, told.importance, told.held) == (
        "Version 2 is out.",
        Importance.MEDIUM,
        "",
    )


@pytest.mark.parametrize(
    ("answers", "held"),
    [
        ([], "the model said nothing"),
        ([says(), says()], "the model answered twice"),
        ([says(summary="")], "summary: "),
        ([says(summary="a" * 241)], "summary: "),
        ([says(importance="huge")], "importance: "),
        ([{**says(), "@ada hunter2": 1}], "it has a field that is not asked for"),
        ([{"name": "valkey"}], "summary: Field required"),
        ([says(summary="Ask @ada")], "the text mentions somebody"),
        ([says(summary="See https://evil.example/")], "the text holds a link"),
        ([says(summary="<img src=x>")], "the text holds HTML"),
        ([says(summary="Closes #4")], "the text refers to another issue"),
        ([says(summary="a\u202eb")], "the text holds control characters"),
        ([says(summary="a\nb")], "the summary is longer than one line"),
    ],
)
def test_words_that_fail_are_held(answers: list[Any], held: str) -> None:
    """With the reason, and none of them is kept."""
    watch = both(*answers)
    [told] = watch.told
    assert told.held.startswith(held)
    assert (told.summary, told.importance) == ("", None)
    assert watch.changes[0].change is CHANGED


def test_words_about_what_did_not_change_are_dropped() -> None:
    """Nor does it invent a resource."""
    watch = both(says(), says("docs"), says("other"), {**says(), "name": 5}, {})
    assert [item.name for item in watch.told] == ["valkey"]
    assert watch.dropped == 4


def test_nothing_changed() -> None:
    """Then the model was not asked, and nothing is missing."""
    taken = WatchInput(documents=(page("same"),), prior=(page("same"),))
    assert make_watch((), taken).told == ()


def test_a_watch_goes_through_json() -> None:
    """As the ledger keeps it."""
    snapshot = watched(document(atom("2", "1")), prior=(document(atom("1")),))
    assert type(snapshot).model_validate_json(snapshot.model_dump_json()) == snapshot
    assert snapshot.watch is not None
    watch = make_watch([says()], snapshot.watch)
    assert type(watch).model_validate_json(watch.model_dump_json()) == watch
