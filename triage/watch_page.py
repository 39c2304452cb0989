"""The report of a watch: a section for each run of the window, newest last.

Invariant: a section is of one run, and that run's again replaces it; no run removes what another
one found.
Invariant: nothing of a document can begin a section, leave its block or format: texts are escaped,
addresses and changed lines stand as code.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from triage.comment import escaped
from triage.contract import RunInputs
from triage.documents import (
    Change,
    Difference,
    Entry,
    Told,
    Watch,
    WatchDocument,
    WatchInput,
)
from triage.identifiers import DedupeKey
from triage.plan import Plan
from triage.snapshot import Snapshot
from triage.window import local_time
from triage.wording import CONTROL

MOST_LISTED: Final = 20
"""Entries of one list; the rest is counted."""

BEGINNING: Final = 600
"""Characters of a text that are shown of a snapshot."""

MOST_SECTIONS: Final = 50
"""Runs of one window that a file holds; of more, the newest."""

_SECTION = re.compile(r"^## Run `([^`\n]+)`$", re.MULTILINE)


def report(inputs: RunInputs, snapshot: Snapshot, plan: Plan, *, earlier: str | None) -> str:
    """The window's file with this run's section. ``earlier`` is the file as it stands."""
    if plan.watch is None or snapshot.watch is None:
        raise ValueError(f"the run {snapshot.dedupe_key} is no watch")
    sections = dict(_sections(earlier or ""))
    sections[inputs.dedupe_key] = _section(inputs, snapshot, plan, plan.watch, snapshot.watch)
    window = DedupeKey.parse(inputs.dedupe_key).window
    head = f"# {inputs.repository}: resource watch, {window}\n"
    return "\n".join([head, *[*sections.values()][-MOST_SECTIONS:]])


def has_news(plan: Plan) -> bool:
    """A watch that found a change, or a resource for the first time."""
    changes = plan.watch.changes if plan.watch else ()
    return any(item.change in (Change.FIRST, Change.CHANGED) for item in changes)


def _sections(text: str) -> Iterable[tuple[str, str]]:
    """The sections of a file by their runs, in order."""
    heads = [*_SECTION.finditer(text)]
    borders = [*(head.start() for head in heads), len(text)]
    for head, (start, end) in zip(heads, pairwise(borders), strict=True):
        yield head[1], text[start:end].rstrip("\n") + "\n"


def _section(
    inputs: RunInputs, snapshot: Snapshot, plan: Plan, watch: Watch, taken: WatchInput
) -> str:
    zone = inputs.policy.schedule.timezone
    told = {item.name: item for item in watch.told}
    counts = {change: [c.name for c in watch.changes if c.change is change] for change in Change}
    summed = ", ".join(f"{len(names)} {change}" for change, names in counts.items())
    lines = [
        f"## Run `{inputs.dedupe_key}`",
        "",
        f"Observed {local_time(snapshot.observed_at, zone)}: {summed}. "
        "Nothing was written anywhere else.",
        f"${plan.cost.estimated_usd:.2f} by the SDK's estimate, in {plan.cost.sessions} sessions.",
    ]
    if inputs.policy_notice:
        lines += ["", escaped(inputs.policy_notice)]
    if inputs.missed:
        lines += ["", f"Windows never started: {', '.join(inputs.missed)}"]
    for document, change in zip(taken.documents, watch.changes, strict=True):
        lines += _resource(document, change, told.get(document.name), zone)
    return "\n".join(lines) + "\n"


def _resource(
    document: WatchDocument, change: Difference, told: Told | None, zone: str
) -> list[str]:
    since = f" since {local_time(change.since, zone)}" if change.since else ""
    lines = ["", f"### {escaped(document.name)}", "", f"- {change.change}{since}"]
    if told is not None and told.importance:
        lines.append(f"- importance {told.importance}: {escaped(told.summary)}")
    elif told is not None:
        lines.append(f"- held: {escaped(told.held)}")
    lines.append(f"- address: {_code(document.address)}")
    if document.url != document.address:
        lines.append(f"- asked for: {_code(document.url)}")
    lines.append(f"- observed at {document.observed_at.isoformat(timespec='seconds')}")
    if document.problem:
        lines.append(f"- problem: {escaped(document.problem)}")
    if document.was_read:
        lines.append(
            f"- status {document.status}, {document.bytes} bytes, digest `{document.digest}`"
        )
    return [*lines, *_changed(change), *_snapshot(document)]


def _changed(change: Difference) -> list[str]:
    """What came and went, as it was found."""
    lines: list[str] = []
    for word, entries in (
        ("New", change.added),
        ("Gone", change.removed),
        ("Edited", change.edited),
    ):
        if entries:
            lines += ["", f"{word}:", "", *_listed(entries)]
    if change.lines:
        shown = (CONTROL.sub(" ", line).replace("```", "'''") for line in change.lines)
        lines += ["", "```diff", *shown, "```"]
    return lines


def _snapshot(document: WatchDocument) -> list[str]:
    """The resource as it is now: what the next window is compared with."""
    if document.entries:
        return ["", f"Snapshot, {len(document.entries)} entries:", "", *_listed(document.entries)]
    if not document.text:
        return []
    beginning = escaped(document.text[:BEGINNING])
    more = f" … ({len(document.text)} characters)" if len(document.text) > BEGINNING else ""
    return ["", "Snapshot:", "", f"> {beginning}{more}"]


def _listed(entries: Sequence[Entry]) -> list[str]:
    lines = [f"- {escaped(entry.title or entry.key)}" for entry in entries[:MOST_LISTED]]
    rest = len(entries) - len(lines)
    return [*lines, f"- and {rest} more"] if rest else lines


def _code(address: str) -> str:
    """An address as it is, where nothing makes a link of it. It has no white space."""
    plain = "".join(CONTROL.sub("", address).split()).replace("`", "%60")
    return f"`{plain or '-'}`"
