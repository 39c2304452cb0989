"""The issue of a review, edited in place, and the report of a review that observes.

Invariant: nothing in them mentions, links, closes or refers: every word of the model and of the
repository is escaped, though it was checked before.
Invariant: the same plan of the same snapshot gives the same body, so a second run has nothing to
write. Ticks are people's: they are carried over, and no digest counts them.
"""

import re
from collections.abc import Sequence
from typing import Final

from triage.comment import escaped
from triage.contract import RunInputs
from triage.difference import with_difference
from triage.findings import Finding, FindingState, Link, Review, ReviewInput, Start
from triage.identifiers import DedupeKey
from triage.marker import cut
from triage.plan import Plan
from triage.snapshot import Snapshot
from triage.window import local_time

TITLE: Final = "Repository review"
"""There is one issue for a repository, so its title says no window."""

MOST_LISTED: Final = 50
"""Lines of one list on the page; the rest is counted."""

INSTRUCTED_SHOWN: Final = 10
"""Files that speak to their reviewer and are named; the rest is counted."""

ROOM: Final = 52_000
"""Characters of all lists together, under GitHub's 65,536 with room for what is around them."""

_TICKED = re.compile(r"^- \[[xX]\] `(f-[0-9a-f]{8}(?:-\d+)?)`", re.MULTILINE)
_OPEN = re.compile(r"^- \[ \] (?=`(f-[0-9a-f]{8}(?:-\d+)?)`)", re.MULTILINE)
_SECTIONS: tuple[tuple[str, FindingState], ...] = (
    ("New", FindingState.NEW),
    ("Still there", FindingState.STILL),
    ("Not seen this time", FindingState.UNSEEN),
)


def body(inputs: RunInputs, snapshot: Snapshot, plan: Plan) -> str:
    """The issue's body, without its marker."""
    review, taken = _parts(snapshot, plan)
    parts = [_head(review, snapshot), *_notes(review, taken)]
    room = ROOM
    for name, lines in _lists(review, taken):
        shown = _shown(lines, room)
        room -= sum(len(line) + 1 for line in shown)
        parts += [f"## {name}", "\n".join(shown)]
    parts += _of_the_run(inputs)
    parts.append(f"{_cost(plan)} Automated, edited in place; what you tick stays ticked.")
    return cut("\n\n".join(parts))


def with_ticks(text: str, standing: str) -> str:
    """The body with the boxes ticked that people ticked in the one that stands on GitHub. Of a
    finding that was resolved in between and is back nothing is carried over."""
    ticked = set(_TICKED.findall(standing.replace("\r\n", "\n")))
    return _OPEN.sub(lambda box: "- [x] " if box[1] in ticked else box[0], text)


def report(inputs: RunInputs, snapshot: Snapshot, plan: Plan, *, earlier: str | None) -> str:
    """The report of a review, whole. ``earlier`` is the file as another run of the window left it:
    then the difference follows."""
    review, taken = _parts(snapshot, plan)
    zone = inputs.policy.schedule.timezone
    lines = [
        f"# {inputs.repository}: nightly review",
        "",
        f"Run `{inputs.dedupe_key}`, observed {local_time(snapshot.observed_at, zone)}.",
        f"{taken.tree.files} files{_left_out(taken)}. Nothing was written to GitHub.",
        "",
        _head(review, snapshot),
    ]
    for note in _notes(review, taken):
        lines += ["", note]
    for name, items in _lists(review, taken):
        lines += ["", f"## {name}", "", *items]
    for note in _of_the_run(inputs):
        lines += ["", note]
    lines += ["", _cost(plan)]
    return with_difference("\n".join(lines) + "\n", earlier)


def has_news(plan: Plan) -> bool:
    """A review that says what none said before: a finding that is new or resolved."""
    review = plan.review
    return bool(review and review.of(FindingState.NEW, FindingState.RESOLVED))


def _parts(snapshot: Snapshot, plan: Plan) -> tuple[Review, ReviewInput]:
    if plan.review is None or snapshot.review is None:
        raise ValueError(f"the run {snapshot.dedupe_key} is no review")
    return plan.review, snapshot.review


def _head(review: Review, snapshot: Snapshot) -> str:
    window = DedupeKey.parse(snapshot.dedupe_key).window
    counts = ", ".join(f"{len(review.of(state))} {state}" for state in FindingState)
    commit = f"`{snapshot.base_commit[:7]}`" if snapshot.base_commit else "no commit"
    return f"**Verdict: {review.verdict}** at {commit}, window {window}: {counts}."


def _notes(review: Review, taken: ReviewInput) -> list[str]:
    """What people should know beside the findings; a paragraph each."""
    notes = [review.verdict_note] if review.verdict_note else []
    notes.append(_opening(taken))
    if review.link is not None:
        notes.append(_link(review.link))
    if review.instructed:
        notes.append(_instructed(review.instructed))
    if review.ignored:
        notes.append(f"It called {review.ignored} resolved that the review before it had not.")
    return notes


def _of_the_run(inputs: RunInputs) -> list[str]:
    """What is wrong with the policy file, and the windows that never were; a paragraph each."""
    parts = ["## Policy", escaped(inputs.policy_notice)] if inputs.policy_notice else []
    if inputs.missed:
        parts.append(f"Windows never started: {', '.join(inputs.missed)}")
    return parts


def _opening(taken: ReviewInput) -> str:
    match taken.opening.start:
        case Start.RESUMED:
            return "It went on in the session of the review before it."
        case Start.FINDINGS:
            return "It was told the findings of the review before it, in a new session."
        case Start.COLD:
            detail = f": {escaped(taken.opening.detail)}" if taken.opening.detail else ""
            return f"It started cold ({taken.opening.why}{detail})."


def _link(link: Link) -> str:
    recalled = f"It recalled {link.recalled} of {link.prior} findings"
    if not link.broken:
        return f"{recalled} of the review before it."
    return (
        f"**Not continuous:** {'; '.join(link.broken)}. {recalled}. "
        "What is new or still there was decided by comparing; its word that something is resolved "
        "was not taken."
    )


def _instructed(files: Sequence[str]) -> str:
    shown = ", ".join(escaped(name) for name in files[:INSTRUCTED_SHOWN])
    rest = f" and {len(files) - INSTRUCTED_SHOWN} more" if len(files) > INSTRUCTED_SHOWN else ""
    return (
        f"**Files that speak to their reviewer:** {shown}{rest}. The program found this itself; "
        "read them, and this review, with care."
    )


def _lists(review: Review, taken: ReviewInput) -> list[tuple[str, list[str]]]:
    """The lists that have something in them, each with all of its lines."""
    found = [(name, [_line(item) for item in review.of(state)]) for name, state in _SECTIONS]
    resolved = review.of(FindingState.RESOLVED)
    there = {item.id for item in review.findings}
    before = [
        item for item in (taken.prior.resolved if taken.prior else ()) if item.id not in there
    ]
    found.append(("Resolved", [_struck(item) for item in (*resolved, *before)]))
    held = [f"- {_named(item.told_as)}{escaped(item.reason)}" for item in review.held]
    found.append(("Held: told by the model, not shown", held))
    return [(name, lines) for name, lines in found if lines]


def _line(finding: Finding) -> str:
    unseen = f", not seen in {finding.unseen}" if finding.unseen > 1 else ""
    return f"- [ ] {_words(finding)} (since {finding.since}{unseen})"


def _struck(finding: Finding) -> str:
    return f"- [x] ~~{_words(finding)}~~ {escaped(finding.note)}".rstrip()


def _words(finding: Finding) -> str:
    place = f"{escaped(finding.file)}:{finding.line}"
    return f"`{finding.id}` **{finding.severity}** {place}: {escaped(finding.summary)}"


def _named(told_as: str) -> str:
    return f"{escaped(told_as)}: " if told_as else ""


def _shown(lines: Sequence[str], room: int) -> list[str]:
    """The lines that fit, and how many did not."""
    shown: list[str] = []
    for line in lines[:MOST_LISTED]:
        room -= len(line) + 1
        if room < 0:
            break
        shown.append(line)
    rest = len(lines) - len(shown)
    return [*shown, f"- and {rest} more, too many for an issue"] if rest else shown


def _left_out(taken: ReviewInput) -> str:
    """What the checkout does not hold, by reason."""
    left = ", ".join(f"{count} {why}" for why, count in sorted(taken.left_out.items()) if count)
    return f", not looked at: {left}" if left else ""


def _cost(plan: Plan) -> str:
    return f"${plan.cost.estimated_usd:.2f} by the SDK's estimate, in {plan.cost.turns} turns."
