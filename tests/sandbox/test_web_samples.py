"""What the sandbox web shows of releases can be read as what it says it is."""

import json
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

from sandbox.web.samples import Release, feed, page, release_list

ATOM = "{http://www.w3.org/2005/Atom}"
RELEASES = [
    Release("1.0", datetime(2026, 9, 1, tzinfo=UTC), "first"),
    Release("1.1", datetime(2026, 9, 8, tzinfo=UTC), "<script>&amp; 'more'"),
]


def test_a_feed() -> None:
    made = feed("valkey releases", RELEASES)
    assert made.media_type.startswith("application/atom+xml")
    entries = ET.fromstring(made.body).findall(f"{ATOM}entry")
    assert [each.findtext(f"{ATOM}title") for each in entries] == ["1.1", "1.0"]
    assert [each.findtext(f"{ATOM}content") for each in entries] == [
        "<script>&amp; 'more'",
        "first",
    ]
    assert entries[0].findtext(f"{ATOM}updated") == "2026-09-08T00:00:00+00:00"


def test_a_release_list() -> None:
    shown = json.loads(release_list(RELEASES).body)
    assert [each["tag_name"] for each in shown] == ["1.1", "1.0"]
    assert shown[0]["body"] == RELEASES[1].notes


def test_a_page() -> None:
    made = page("Releases", RELEASES)
    assert isinstance(made.body, str)
    assert "<h2>1.1</h2>" in made.body
    assert "<script>" not in made.body
