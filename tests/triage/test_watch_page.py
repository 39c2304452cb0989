"""The report of a watch: what people read, and that each run of the window keeps its section."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.triage.markdown import headings, kinds
from tests.triage.samples import KEYS, NOON
from tests.triage.watches import (
    WATCH_KEY,
    atom,
    document,
    page,
    resource,
    watch_inputs,
    watched,
)
from triage.documents import WatchDocument
from triage.marker import Signature, read
from triage.plan import Cost, Plan
from triage.snapshot import Snapshot
from triage.watch import make_watch, not_read
from triage.watch_page import MOST_LISTED, MOST_SECTIONS, has_news, report

SAID = {"name": "valkey", "summary": "Version 2 is out.", "importance": "medium"}


def planned(snapshot: Snapshot, *answers: dict[str, str]) -> Plan:
    """The plan of a watch."""
    assert snapshot.watch is not None
    cost = Cost(estimated_usd=0.012, sessions=1)
    return Plan(watch=make_watch(answers, snapshot.watch), cost=cost)


def written(
    *documents: WatchDocument,
    prior: tuple[WatchDocument, ...] = (),
    earlier: str | None = None,
    key: str = WATCH_KEY,
) -> str:
    """The file after a run."""
    snapshot = watched(*documents, prior=prior)
    plan = planned(snapshot, SAID)
    return report(watch_inputs(dedupe_key=key), snapshot, plan, earlier=earlier)


def test_the_report_reads_like_this() -> None:
    """Of each resource the real address, when it was read, what changed, and what is there."""
    lost = not_read(
        resource("lost"),
        address="https://x.example/",
        observed_at=NOON,
        status=0,
        problem="tls: no",
    )
    now = document(atom("2", "1"), digest="d" * 64)
    found = written(now, page("same\ntext"), lost, prior=(document(atom("1")), page("old\ntext")))
    assert found.splitlines() == [
        "# acme/api: resource watch, 2026-09-16",
        "",
        f"## Run `{WATCH_KEY}`",
        "",
        "Observed 2026-09-16 12:00 UTC: 0 first seen, 2 changed, 0 unchanged, 1 not read. "
        "Nothing was written anywhere else.",
        "$0.01 by the SDK's estimate, in 1 sessions.",
        "",
        "### valkey",
        "",
        "- changed since 2026-09-15 12:00 UTC",
        "- importance medium: Version 2 is out.",
        "- address: `https://cdn.example.com/valkey`",
        "- asked for: `https://example.com/valkey`",
        "- observed at 2026-09-16T12:00:00+00:00",
        f"- status 200, {now.bytes} bytes, digest `{'d' * 64}`",
        "",
        "New:",
        "",
        "- v2",
        "",
        "Snapshot, 2 entries:",
        "",
        "- v2",
        "- v1",
        "",
        "### docs",
        "",
        "- changed since 2026-09-15 12:00 UTC",
        "- held: the model said nothing",
        "- address: `https://cdn.example.com/docs`",
        "- asked for: `https://example.com/docs`",
        "- observed at 2026-09-16T12:00:00+00:00",
        f"- status 200, 9 bytes, digest `{page('same' + chr(10) + 'text').digest}`",
        "",
        "```diff",
        "-old",
        "+same",
        "```",
        "",
        "Snapshot:",
        "",
        "> same text",
        "",
        "### lost",
        "",
        "- not read",
        "- address: `https://x.example/`",
        "- asked for: `https://example.com/lost`",
        "- observed at 2026-09-16T12:00:00+00:00",
        "- problem: tls: no",
    ]


def test_a_forced_run_adds_to_the_file() -> None:
    """The section of the run before it stays as it was."""
    first = written(document(atom("1")))
    forced = f"{WATCH_KEY}:forced-7"
    both = written(
        document(atom("2", "1")), prior=(document(atom("1")),), earlier=first, key=forced
    )
    assert both.startswith(first)
    assert [line for line in both.splitlines() if line.startswith("## Run")] == [
        f"## Run `{WATCH_KEY}`",
        f"## Run `{forced}`",
    ]
    assert both.count("- v2") == 2


def test_the_policys_notice_and_missed_windows_are_there() -> None:
    """A watch has no other place to say so."""
    snapshot = watched(document(atom("1")))
    given_inputs = watch_inputs(policy_notice="It is @broken", missed=("2026-09-15",))
    found = report(given_inputs, snapshot, planned(snapshot), earlier=None)
    assert "It is @\u200bbroken" in found
    assert "Windows never started: 2026-09-15" in found


def test_the_same_run_again_replaces_its_own_section() -> None:
    """In its place: a second attempt doubles nothing and removes nothing."""
    first = written(document(atom("1")))
    forced = f"{WATCH_KEY}:forced-7"
    both = written(document(atom("2")), earlier=first, key=forced)
    again = written(document(atom("1")), earlier=both)
    assert again == both
    assert written(document(atom("2")), earlier=again, key=forced) == both


def test_a_file_holds_so_many_runs() -> None:
    """The newest of them."""
    text: str | None = None
    for n in range(MOST_SECTIONS + 2):
        text = written(page("x"), earlier=text, key=f"{WATCH_KEY}:forced-{n}")
    assert text is not None
    assert text.count("## Run") == MOST_SECTIONS
    assert ":forced-0`" not in text
    assert f":forced-{MOST_SECTIONS + 1}`" in text


def test_long_lists_and_texts_are_cut_and_said() -> None:
    """The snapshot itself is in the ledger."""
    found = written(document(atom(*map(str, range(30)))), page("a" * 700))
    assert f"- and {30 - MOST_LISTED} more" in found
    assert "… (700 characters)" in found


@pytest.mark.parametrize(
    ("text", "before", "news"),
    [("a", None, True), ("a", "a", False), ("a", "b", True)],
)
def test_what_is_news(text: str, before: str | None, news: bool) -> None:
    """A change, or something that is seen for the first time."""
    snapshot = watched(page(text), prior=(page(before),) if before else ())
    assert has_news(planned(snapshot)) is news
    assert not has_news(Plan())


SPITEFUL = [
    "```\n## Run `x`\n```",
    f"## Run `{WATCH_KEY}:forced-1`",
    "@everyone see #1 https://evil.example",
    "<img src=x> <!-- retriage v1 -->",
    "~~~\n# Heading",
    "| a | b |\n|---|---|",
    "[x](https://evil.example)",
    "\r## Run `y`",
    "\u2028## Run `z`",
]
WORDS = st.sampled_from(SPITEFUL) | st.text(max_size=80)


@given(WORDS, WORDS)
def test_no_document_leaves_its_place(words: str, before: str) -> None:
    """No section, heading, link, HTML or mention comes of what was fetched."""
    feed = document(atom("1")).entries[0].model_copy(update={"title": words, "key": before or "k"})
    listing = document(atom("1")).model_copy(update={"entries": (feed,), "address": words})
    odd = page(words, status=200).model_copy(update={"problem": words, "text": words})
    old = page(before).model_copy(update={"text": before, "digest": "0"})
    found = written(listing, odd, prior=(document(atom("1")), old))
    assert len(re.findall(r"(?m)^## Run", found)) == 1
    assert headings(found) == [
        "acme/api: resource watch, 2026-09-16",
        f"Run `{WATCH_KEY}`",
        "valkey",
        "docs",
    ]
    assert not kinds(found) & {"link_open", "image", "html_inline", "html_block", "table_open"}
    outside = re.sub(r"(?ms)^```diff$.*?^```$|`[^`\n]*`", "", found)
    assert not re.search(r"(?i)@\w|#\d|://[^\s\u200b]|\bwww\.", outside)
    assert read(found, KEYS).signature is Signature.NONE
    again = written(page("x"), earlier=found, key=f"{WATCH_KEY}:forced-9")
    assert again.startswith(found)


def test_another_run_is_not_shown_as_a_watch() -> None:
    """A bug of ours, and it raises."""
    with pytest.raises(ValueError, match="is no watch"):
        report(watch_inputs(), watched(page("x")), Plan(), earlier=None)
