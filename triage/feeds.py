"""From a fetched text to what is compared: entries of a feed or list of releases, text of a page.

The texts come from anywhere. Invariant: a feed with a document type is refused before anything in
it is read, so no entity is ever declared; depth, elements and entries are bounded; every expression
reads a text once.
"""

import html
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final
from xml.parsers import expat

from triage.documents import Entry
from triage.identifiers import digest_of
from triage.policy import ResourceKind
from triage.wording import CONTROL

ENTRIES_LIMIT: Final = 200
ENTRY_TEXT_LIMIT: Final = 600
TITLE_LIMIT: Final = 200
PAGE_LIMIT: Final = 60_000
"""Characters of a page that are compared."""

_DEPTH_LIMIT = 50
_ELEMENTS_LIMIT = 50_000
_ROOTS = frozenset({"feed", "rss", "RDF"})
_ENTRIES = frozenset({"entry", "item"})
_FIELDS = {
    "id": "key",
    "guid": "key",
    "title": "title",
    "link": "link",
    "summary": "text",
    "description": "text",
    "content": "text",
    "encoded": "text",
}
_UNSEEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|template|noscript|svg|title)\b.*?(?:</\1\s*>|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_BLOCK = re.compile(
    r"</?(?:p|div|li|ul|ol|tr|table|h[1-6]|br|hr|section|article|header|footer|nav|main|pre|dd|dt"
    r"|blockquote)\b[^>]*(?:>|\Z)",
    re.IGNORECASE,
)
_TAG = re.compile(r"</?[A-Za-z!?][^>]*(?:>|\Z)")
_LOOKS_LIKE_HTML = re.compile(r"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)


class UnreadableFeedError(ValueError):
    """A text is no feed that is read. The message is one line for people, and quotes nothing."""


def entries_of(kind: ResourceKind, text: str) -> tuple[Entry, ...]:
    """The entries of a feed or list of releases, in its order, each key once, the first
    ENTRIES_LIMIT. Raises UnreadableFeedError."""
    if kind is ResourceKind.RELEASES and text.lstrip()[:1] in ("[", "{"):
        found = _releases(text)
    else:
        found = _feed(text)
    once: dict[str, Entry] = {}
    for entry in filter(None, map(_entry, found)):
        once.setdefault(entry.key, entry)
    return tuple(once.values())[:ENTRIES_LIMIT]


def page_text(text: str) -> str:
    """What a page says, a block a line, without markup; a text that is no HTML as it is. Cut."""
    if _LOOKS_LIKE_HTML.search(text[:4000]):
        text = _UNSEEN.sub(" ", text)
        text = html.unescape(_TAG.sub(" ", _BLOCK.sub("\n", text)))
    lines = (" ".join(CONTROL.sub(" ", line).split()) for line in text.splitlines())
    return "\n".join(line for line in lines if line)[:PAGE_LIMIT]


def _entry(fields: Mapping[str, str]) -> Entry | None:
    """An entry; None where nothing in it could be known again. Its date is no part of its digest:
    there are feeds that set it at every reading."""
    title, text = _plain(fields.get("title", "")), _plain(fields.get("text", ""))
    link = fields.get("link", "").strip()
    key = fields.get("key", "").strip() or link or title
    if not key:
        return None
    return Entry(
        key=key[:TITLE_LIMIT] if len(key) <= TITLE_LIMIT else digest_of(key),
        title=title[:TITLE_LIMIT],
        text=text[:ENTRY_TEXT_LIMIT],
        digest=digest_of([title, text, link]),
    )


def _plain(text: str) -> str:
    return " ".join(CONTROL.sub(" ", html.unescape(_TAG.sub(" ", text))).split())


def _releases(text: str) -> Iterable[dict[str, str]]:
    """GitHub's JSON: ``[{"id", "tag_name", "name", "body", "draft", …}]``."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableFeedError("it is no JSON that can be read") from error
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise UnreadableFeedError("it is no list of releases")
    return [_release(item) for item in data[:ENTRIES_LIMIT]]


def _release(item: Mapping[str, Any]) -> dict[str, str]:
    def word(name: str) -> str:
        value = item.get(name)
        return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""

    tag, name = word("tag_name"), word("name")
    title = tag if not name or name == tag else f"{tag} {name}".strip()
    if item.get("prerelease") is True:
        title += " (pre-release)"
    return {"key": word("node_id") or word("html_url") or tag, "title": title, "text": word("body")}


def _feed(text: str) -> Iterable[dict[str, str]]:
    reader = _FeedReader()
    parser = expat.ParserCreate("utf-8", " ")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = reader.doctype
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.characters
    try:
        parser.Parse(text.lstrip("\ufeff \t\r\n").encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        reason = expat.errors.messages.get(error.code, "an error")
        raise UnreadableFeedError(f"line {error.lineno}: {reason}") from error
    return reader.entries


class _FeedReader:
    """Atom, RSS 2 and RSS 1 alike: the fields right below an entry that are of the same vocabulary;
    others have titles of their own (podcasts, media)."""

    def __init__(self) -> None:
        self.entries: list[dict[str, str]] = []
        self._depth = 0
        self._elements = 0
        self._entry: dict[str, list[str]] | None = None
        self._entry_depth = 0
        self._space = ""
        self._field = ""

    def doctype(self, *_: object) -> None:
        """No feed needs one, and what it declares may grow without end."""
        raise UnreadableFeedError("it declares a document type")

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        self._depth += 1
        self._elements += 1
        if self._depth > _DEPTH_LIMIT or self._elements > _ELEMENTS_LIMIT:
            raise UnreadableFeedError("it has too many elements")
        space, _, word = name.rpartition(" ")
        if self._depth == 1 and word not in _ROOTS:
            raise UnreadableFeedError("it is neither Atom nor RSS")
        if self._entry is None and word in _ENTRIES and len(self.entries) < ENTRIES_LIMIT:
            self._entry, self._entry_depth, self._space = {}, self._depth, space
        elif self._entry is not None and self._depth == self._entry_depth + 1:
            own = space == self._space or word == "encoded"
            self._field = _FIELDS.get(word, "") if own else ""
            if self._field == "link" and attributes.get("rel", "alternate") == "alternate":
                self._entry.setdefault("link", []).append(attributes.get("href", ""))

    def end(self, _name: str) -> None:
        """An element ends."""
        if self._entry is not None and self._depth == self._entry_depth:
            self.entries.append({name: "".join(text) for name, text in self._entry.items()})
            self._entry = None
        elif self._entry is not None and self._depth == self._entry_depth + 1:
            self._field = ""
        self._depth -= 1

    def characters(self, text: str) -> None:
        """Text, of the field and of what is in it."""
        if self._entry is not None and self._field:
            self._entry.setdefault(self._field, []).append(text)
