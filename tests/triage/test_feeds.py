"""From a fetched text to entries and lines: what is read, and what is refused."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.triage.watches import atom
from triage.feeds import (
    ENTRIES_LIMIT,
    ENTRY_TEXT_LIMIT,
    PAGE_LIMIT,
    UnreadableFeedError,
    entries_of,
    page_text,
)
from triage.policy import ResourceKind

FEED, RELEASES = ResourceKind.FEED, ResourceKind.RELEASES
RSS = """<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel>
<title>News</title><link>https://example.com</link>
<item><title>One &amp; two</title><link>https://example.com/1</link><guid>g1</guid>
<description><![CDATA[<p>It <b>works</b></p>]]></description><pubDate>x</pubDate></item>
<item><title>Three</title><link>https://example.com/3</link></item>
</channel></rss>"""
RDF = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
xmlns="http://purl.org/rss/1.0/"><channel><title>c</title></channel>
<item><title>One</title><link>https://example.com/1</link></item></rdf:RDF>"""


def found(text: str, kind: ResourceKind = FEED) -> list[tuple[str, str, str]]:
    """Key, title and text of each entry."""
    return [(item.key, item.title, item.text) for item in entries_of(kind, text)]


def test_an_atom_feed() -> None:
    """Newest first, as it stands there, without markup; of a feed's own title nothing."""
    assert found(atom("2.0", "1.0")) == [
        ("tag:2.0", "v2.0", "Fixes in 2.0"),
        ("tag:1.0", "v1.0", "Fixes in 1.0"),
    ]


def test_an_rss_feed() -> None:
    """Known by its guid, or else by its address."""
    assert found(RSS) == [
        ("g1", "One & two", "It works"),
        ("https://example.com/3", "Three", ""),
    ]
    assert found(RDF) == [("https://example.com/1", "One", "")]


def test_white_space_before_a_feed() -> None:
    """Many a site's template leaves some."""
    assert found(f"\ufeff\n {atom('1.0')}") == found(atom("1.0"))


def test_a_title_of_another_vocabulary() -> None:
    """A podcast says it twice."""
    text = (
        '<rss xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd" '
        'xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel><item><guid>1</guid>'
        "<title>One</title><itunes:title>One</itunes:title><itunes:summary>x</itunes:summary>"
        "<content:encoded>All of it</content:encoded></item></channel></rss>"
    )
    assert found(text) == [("1", "One", "All of it")]


def test_half_a_letter() -> None:
    """JSON can spell a surrogate that nothing can be stored with."""
    text = '[{"node_id": "a\\ud83d", "name": "b\\ud83d", "body": "c\\udc00"}]'
    assert found(text, ResourceKind.RELEASES) == [("a?", "b?", "c?")]


def test_a_list_of_releases() -> None:
    """GitHub's JSON, or the Atom feed of the same."""
    listed = [
        {"node_id": "R2", "tag_name": "v2", "name": "Two", "body": "New", "prerelease": True},
        {"html_url": "https://x.example/v1", "tag_name": "v1", "name": "v1", "body": None},
        {"tag_name": "v0"},
        {"name": "nothing to know it by"},
    ]
    assert found(json.dumps(listed), RELEASES) == [
        ("R2", "v2 Two (pre-release)", "New"),
        ("https://x.example/v1", "v1", ""),
        ("v0", "v0", ""),
        ("nothing to know it by", "nothing to know it by", ""),
    ]
    assert found(atom("2.0"), RELEASES) == found(atom("2.0"))


def test_a_feeds_dates_are_no_change() -> None:
    """There are feeds that set them at every reading; words and addresses are."""
    one, other = atom("2.0"), atom("2.0", updated="2026-09-17T00:00:00Z")
    assert entries_of(FEED, one) == entries_of(FEED, other)
    assert entries_of(FEED, one) != entries_of(FEED, atom("2.0", text="Breaks"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no element found"),
        ("not a feed", "syntax error"),
        ("<feed>", "no element found"),
        ("<feed></rss>", "mismatched tag"),
        ("<html><body/></html>", "neither Atom nor RSS"),
        ("<!DOCTYPE html><html></html>", "declares a document type"),
        ('<!DOCTYPE feed [<!ENTITY a "b">]><feed>&a;</feed>', "declares a document type"),
        (
            '<!DOCTYPE f [<!ENTITY a "aa"><!ENTITY b "&a;&a;&a;&a;">]><feed><entry>'
            "<id>&b;</id></entry></feed>",
            "declares a document type",
        ),
        (
            '<?xml version="1.0"?><!DOCTYPE r SYSTEM "file:///etc/passwd"><rss/>',
            "declares a document type",
        ),
        ("<feed><entry><id>&unknown;</id></entry></feed>", "undefined entity"),
        ("<feed>" + "<a>" * 60 + "</a>" * 60 + "</feed>", "too many elements"),
        ("<feed>" + "<a/>" * 50_001 + "</feed>", "too many elements"),
        ("<feed>\x00</feed>", "invalid token"),
    ],
)
def test_a_text_that_is_no_feed(text: str, reason: str) -> None:
    """Each has one line for people; nothing of the text is in it."""
    with pytest.raises(UnreadableFeedError, match=reason):
        entries_of(FEED, text)


@pytest.mark.parametrize(
    "text", ["[1]", "{}", "[", '["a"]', "[" * 100_000, '[{"id": ' + "9" * 10_000 + "}]"]
)
def test_a_text_that_is_no_list_of_releases(text: str) -> None:
    """JSON that nests or counts without end is refused like any other."""
    with pytest.raises(UnreadableFeedError):
        entries_of(RELEASES, text)


@given(st.text(alphabet="<>!&;[]/\"'= feedntryitlDOCTYPECDA-", max_size=200) | st.text())
def test_no_text_whatever_raises_anything_else(text: str) -> None:
    """Neither as a feed nor as a list of releases nor as a page."""
    for kind in (FEED, RELEASES):
        with contextlib.suppress(UnreadableFeedError):
            assert len(entries_of(kind, text)) <= ENTRIES_LIMIT
    assert len(page_text(text)) <= PAGE_LIMIT


def test_entries_are_bounded_and_each_is_there_once() -> None:
    """The newest are kept, their texts are cut, and the digest is of the whole."""
    versions = [f"{n}.0" for n in range(ENTRIES_LIMIT + 5)]
    assert len(entries_of(FEED, atom(*versions))) == ENTRIES_LIMIT
    assert [item.key for item in entries_of(FEED, atom("1", "2", "1"))] == ["tag:1", "tag:2"]
    long, longer = (atom("1", text="x" * n) for n in (5000, 5001))
    [one], [other] = entries_of(FEED, long), entries_of(FEED, longer)
    assert len(one.text) == ENTRY_TEXT_LIMIT
    assert (one.text, one.digest == other.digest) == (other.text, False)


def test_signs_that_hide_or_turn_text_are_not_kept() -> None:
    """Nor more than one space."""
    [item] = entries_of(FEED, atom("1", text="a\u202e \u2066b\n\n c"))
    assert item.text == "a b c in 1"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("plain\n  text  here\n\n", ["plain", "text here"]),
        ("a < b and c > d", ["a < b and c > d"]),
        (
            "<!doctype html><html><head><title>T</title><style>p{}</style></head><body>"
            "<h1>Head</h1><p>One <b>two</b>&nbsp;&amp; three</p><ul><li>a<li>b</ul>"
            "<script>var x = '<p>no</p>'</script><!-- no --></body></html>",
            ["Head", "One two & three", "a", "b"],
        ),
        ("<html><script>never closed <p>no</p>", []),
        ("<html><head><title>T</title><body><p>a</html>", ["a"]),
        ("<!doctype html><head><title>T</title><p>a", ["a"]),
        ("<html><!-- never closed <p>no</p>", []),
        ("<html><body>end <a href='", ["end"]),
        ("<html><body>x\u202ey</body></html>", ["x y"]),
    ],
)
def test_what_a_page_says(text: str, lines: list[str]) -> None:
    """A block a line; what nobody sees is no part of it."""
    assert page_text(text).splitlines() == lines


@pytest.mark.parametrize(
    "piece", ["<", "<!--", "<script>", "</p", "<p ", "<a b='", "&", "<head", "<html>", "<!"]
)
def test_a_page_of_nothing_but_beginnings_is_read_once(piece: str) -> None:
    """A million signs of it take no time to speak of: the test's own limit is the bound."""
    text: Any = "<html>" + piece * (1_000_000 // len(piece))
    assert len(page_text(text)) <= PAGE_LIMIT
