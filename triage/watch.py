"""The resource watch: what changed since a resource was read last, and what the model says of it.

Invariant: what changed is found by comparing, never by asking; the model only says what it means.
What it says of a resource that did not change is dropped.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from difflib import unified_diff
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from triage.documents import (
    Change,
    Difference,
    Entry,
    Importance,
    Told,
    Watch,
    WatchDocument,
    WatchInput,
)
from triage.feeds import UnreadableFeedError, entries_of, page_text
from triage.policy import Resource, ResourceKind
from triage.wording import field_problem, text_problem

SUMMARY_LIMIT: Final = 240
COMPARED_LINES: Final = 2_000
"""Lines of each text that are compared: the comparison takes their product in the worst case."""

LINES_LIMIT: Final = 60
LINE_LIMIT: Final = 300

"""Its name is the model's own word, so it is not told."""


# --- What was fetched ---------------------------------------------------------------------------


def document_of(
    resource: Resource,
    *,
    address: str,
    observed_at: datetime,
    status: int,
    text: str,
    digest: str,
    size: int,
) -> WatchDocument:
    """A fetched document as the snapshot holds it. ``digest`` and ``size`` (bytes) are of the
    content as it came. A feed that cannot be read as one is kept as a text, with the reason."""
    entries: tuple[Entry, ...] = ()
    problem = ""
    if resource.kind is not ResourceKind.PAGE:
        try:
            entries = entries_of(resource.kind, text)
        except UnreadableFeedError as error:
            problem = f"not readable as {resource.kind}: {error}"
    is_text = resource.kind is ResourceKind.PAGE or bool(problem)
    return WatchDocument(
        name=resource.name,
        kind=resource.kind,
        url=resource.url,
        address=address,
        observed_at=observed_at,
        status=status,
        digest=digest,
        bytes=size,
        text=page_text(text) if is_text else "",
        entries=entries,
        problem=problem,
    )


def not_read(
    resource: Resource, *, address: str, observed_at: datetime, status: int, problem: str
) -> WatchDocument:
    """A resource that could not be fetched. ``status`` is 0 where there was no answer."""
    return WatchDocument(
        name=resource.name,
        kind=resource.kind,
        url=resource.url,
        address=address,
        observed_at=observed_at,
        status=status,
        problem=problem[:200],
    )


def kept(taken: WatchInput) -> tuple[WatchDocument, ...]:
    """What the next window compares with: of each resource the last document that said something.

    A list that is empty for one night would make all its entries new the night after.
    """
    before = {(item.name, item.url): item for item in taken.prior}
    newest = (_last(item, before.get((item.name, item.url))) for item in taken.documents)
    return tuple(item for item in newest if item is not None)


def _last(now: WatchDocument, before: WatchDocument | None) -> WatchDocument | None:
    if not now.was_read:
        return before
    return now if now.entries or now.text else before or now


# --- What changed -------------------------------------------------------------------------------


def compared(taken: WatchInput) -> tuple[Difference, ...]:
    """What became of each resource, in the policy's order. One whose URL is another than before is
    another resource."""
    before = {(item.name, item.url): item for item in taken.prior if item.was_read}
    return tuple(_compared(item, before.get((item.name, item.url))) for item in taken.documents)


def _compared(now: WatchDocument, before: WatchDocument | None) -> Difference:
    since = before.observed_at if before else None
    if not now.was_read:
        return Difference(name=now.name, change=Change.UNREAD, since=since)
    if before is None:
        return Difference(name=now.name, change=Change.FIRST)
    if now.digest == before.digest:
        return Difference(name=now.name, change=Change.UNCHANGED, since=since)
    if now.text or before.text:
        lines = _lines(_text_of(before), _text_of(now))
        change = Change.CHANGED if lines else Change.UNCHANGED
        return Difference(name=now.name, change=change, since=since, lines=lines)
    added, removed, edited = _entries(before.entries, now.entries)
    change = Change.CHANGED if added or removed or edited else Change.UNCHANGED
    return Difference(
        name=now.name, change=change, since=since, added=added, removed=removed, edited=edited
    )


def _entries(
    before: Sequence[Entry], now: Sequence[Entry]
) -> tuple[tuple[Entry, ...], tuple[Entry, ...], tuple[Entry, ...]]:
    """Entries that are new, gone and changed. Those at the old list's end, behind the last one that
    is still there, made room for new ones: they are not gone."""
    old, new = {item.key: item for item in before}, {item.key: item for item in now}
    common = [n for n, item in enumerate(before) if item.key in new]
    stayed = before[: common[-1]] if common else ()
    return (
        tuple(item for item in now if item.key not in old),
        tuple(item for item in stayed if item.key not in new),
        tuple(item for item in now if item.key in old and item.digest != old[item.key].digest),
    )


def _lines(before: str, now: str) -> tuple[str, ...]:
    """The changed lines of two texts, each behind its sign, cut; none where they are the same."""
    old, new = before.splitlines(), now.splitlines()
    found = unified_diff(old[:COMPARED_LINES], new[:COMPARED_LINES], n=0, lineterm="")
    lines = [line[:LINE_LIMIT] for line in list(found)[2:] if not line.startswith("@@")]
    if not lines and old != new:
        lines = ["+ (something behind what is compared)"]
    rest = len(lines) - LINES_LIMIT
    return (*lines[:LINES_LIMIT], f"+ (and {rest} lines more)") if rest > 0 else tuple(lines)


def _text_of(document: WatchDocument) -> str:
    return document.text or "\n".join(entry.title for entry in document.entries)


def sides(
    difference: Difference, taken: WatchInput
) -> tuple[str, str] | tuple[tuple[str, ...], tuple[str, ...]]:
    """What the model is shown of a change: two texts, or the entries that are gone and those that
    are new or changed, each as one line."""
    if difference.lines:
        now = next(item for item in taken.documents if item.name == difference.name)
        before = next(item for item in taken.prior if (item.name, item.url) == (now.name, now.url))
        return _text_of(before), _text_of(now)
    return (
        tuple(_line_of(entry) for entry in difference.removed),
        tuple(_line_of(entry) for entry in (*difference.added, *difference.edited)),
    )


def _line_of(entry: Entry) -> str:
    return f"{entry.title}: {entry.text}" if entry.text else entry.title


# --- What the model says ------------------------------------------------------------------------


class _Answer(BaseModel):
    """What the model says of one change."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    summary: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1, max_length=SUMMARY_LIMIT)
    ]
    importance: Importance


def make_watch(answers: Iterable[Mapping[str, Any]], taken: WatchInput) -> Watch:
    """Check what the model said. Never raises for it: what fails is held with its reason, and of
    two answers about one resource neither is used."""
    changes = compared(taken)
    wanted = [item.name for item in changes if item.change is Change.CHANGED]
    given: dict[str, list[Mapping[str, Any]]] = {}
    dropped = 0
    for answer in answers:
        name = answer.get("name")
        if isinstance(name, str) and name in wanted:
            given.setdefault(name, []).append(answer)
        else:
            dropped += 1
    told = tuple(_told(name, given.get(name, [])) for name in wanted)
    return Watch(changes=changes, told=told, dropped=dropped)


def _told(name: str, answers: Sequence[Mapping[str, Any]]) -> Told:
    if not answers:
        return Told(name=name, held="the model said nothing")
    if len(answers) > 1:
        return Told(name=name, held="the model answered twice")
    try:
        answer = _Answer.model_validate(answers[0])
    except ValidationError as error:
        return Told(name=name, held=field_problem(error))
    problem = text_problem(answer.summary)
    if not problem and "\n" in answer.summary:
        problem = "the summary is longer than one line"
    if problem:
        return Told(name=name, held=problem)
    return Told(name=name, summary=answer.summary, importance=answer.importance)
