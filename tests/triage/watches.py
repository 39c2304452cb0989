"""Made-up resources, documents and snapshots of a watch."""

from datetime import timedelta
from typing import Any

from tests.triage.samples import NOON, REPOSITORY, inputs, snapshot
from triage.contract import RunInputs
from triage.documents import Entry, WatchDocument, WatchInput
from triage.identifiers import Mode, digest_of
from triage.policy import Resource, WatchPolicy
from triage.snapshot import Snapshot
from triage.watch import document_of

WATCH_KEY = f"resource-watch:R{REPOSITORY}:2026-09-16:p3f2a91c0"

ATOM = """<?xml version="1.0" encoding="UTF-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:media="http://search.yahoo.com/mrss/">
  <id>tag:github.com,2008:https://github.com/acme/api/releases</id>
  <title>Release notes</title>
  <updated>{updated}</updated>
  {entries}
</feed>"""


def atom(*versions: str, updated: str = "2026-09-16T00:00:00Z", text: str = "Fixes") -> str:
    """A list of releases as GitHub's Atom feed, newest first."""
    entries = "".join(
        f"<entry><id>tag:{version}</id><updated>{updated}</updated><title>v{version}</title>"
        f'<link rel="alternate" href="https://example.com/v{version}"/>'
        f'<content type="html">&lt;p&gt;{text} in {version}&lt;/p&gt;</content>'
        f"<author><name>ada</name></author></entry>"
        for version in versions
    )
    return ATOM.format(updated=updated, entries=entries)


def resource(name: str = "valkey", kind: str = "feed", **changes: Any) -> Resource:
    """A resource of the policy."""
    url = f"https://example.com/{name}"
    return Resource.model_validate({"name": name, "url": url, "kind": kind, **changes})


def document(
    text: str = "", name: str = "valkey", kind: str = "feed", **changes: Any
) -> WatchDocument:
    """A resource as it was fetched, redirected once."""
    what = {
        "address": f"https://cdn.example.com/{name}",
        "observed_at": NOON,
        "status": 200,
        "digest": digest_of(text),
        "size": len(text.encode()),
        **changes,
    }
    return document_of(resource(name, kind), text=text, **what)


def page(text: str, name: str = "docs", **changes: Any) -> WatchDocument:
    """A page as it was fetched."""
    return document(text, name, "page", **changes)


def earlier(found: WatchDocument) -> WatchDocument:
    """The same, the day before."""
    return found.model_copy(update={"observed_at": NOON - timedelta(days=1)})


def entry(key: str, text: str = "x") -> Entry:
    """An entry of a feed."""
    return Entry(key=key, title=f"v{key}", text=text, digest=digest_of(text))


def watched(*documents: WatchDocument, prior: tuple[WatchDocument, ...] = ()) -> Snapshot:
    """The snapshot of a watch."""
    part = WatchInput(documents=documents, prior=tuple(earlier(item) for item in prior))
    found = snapshot(dedupe_key=WATCH_KEY, source_set="resources:allow-list", watch=part)
    return found.model_copy(update={"issues": ()})


def watch_inputs(**changes: Any) -> RunInputs:
    """The inputs of a watch."""
    settings = WatchPolicy(resources=(resource(),))
    values = {"dedupe_key": WATCH_KEY, "policy": settings, "mode": Mode.OBSERVE, **changes}
    return inputs(**values)
