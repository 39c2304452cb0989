"""I1 to I7 for a fleet, and the epoch: checked on GitHub, in the ledger, and in what passed.

Where ``tests/simulation/invariants.py`` counts, this can be stricter: the proxies saw each claim
and each write, in their order, whatever the ledger has forgotten since. It says what is wrong
instead of raising, so that a round tells everything.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sandbox.github import GitHub
from tests.processes.faults import Planned
from tests.processes.fleet import BOT, REPOSITORY
from tests.processes.proxies import Journal, Noted
from tests.processes.stage import KEYS
from triage.contract import Evidence, RunEffect, RunRecord, Status
from triage.identifiers import EffectKind
from triage.marker import Marker, Signature, read

DUPLICATE = "duplicate"
"""The incident that the promise is about; ``ledger-lost`` says that an epoch was replaced."""


@dataclass(frozen=True, slots=True)
class Stood:
    """What stood when a round was looked at. ``incidents`` by their kind; the epoch as the ledger
    holds it, at the beginning and at the end."""

    planned: Planned
    github: GitHub
    runs: list[RunRecord]
    journal: Journal
    incidents: Mapping[str, int]
    before: Mapping[str, str]
    after: Mapping[str, str]


def violated(stood: Stood) -> Iterator[str]:
    """Every invariant that does not hold, and what stood there."""
    yield from _once(stood)
    yield from _claimed_before_written(stood.journal)
    yield from _seen_or_not_there(stood)
    yield from _in_scope(stood.journal)
    yield from _under_the_fence(stood)
    yield from _ended(stood.runs)
    yield from _epoch(stood)
    yield from _asked_once(stood)


def incidents_allowed(planned: Planned) -> int:
    """How many duplicates there may have been: one, and only where the fault is a request that was
    held until a second one had landed."""
    return 1 if planned.kind.may_duplicate else 0


# --- The invariants -----------------------------------------------------------------------------


def _once(stood: Stood) -> Iterator[str]:
    """I1, and what every issue must end with."""
    markers = list(_markers(stood.github))
    for key, count in Counter(marker.effect_key for _, marker in markers).items():
        if count > 1:
            yield f"I1: {count} live markers of {key[:12]}"
    duplicates = stood.incidents.get(DUPLICATE, 0)
    if duplicates > incidents_allowed(stood.planned):
        yield f"I1: {duplicates} incidents"
    if any(run.status is Status.NEEDS_REVIEW for run in stood.runs):
        return
    marked = {number for number, _ in markers}
    issues = stood.github.issues(REPOSITORY)
    summaries = [item.number for item in issues if item.author == BOT and item.number in marked]
    if len(summaries) > 1 or (not summaries and not stood.planned.kind.loses_ledger):
        yield f"I1: {len(summaries)} summaries"
    for issue in issues:
        if issue.author == BOT:
            continue
        comments, labels = len(_bodies(stood.github, issue.number)), issue.labels
        if comments != 1 or len(labels) != 1:
            yield f"I1: issue {issue.number} has {comments} comments and the labels {labels}"


def _claimed_before_written(journal: Journal) -> Iterator[str]:
    """I2: of each kind no write was sent, at any instant, but for a claim that was granted."""
    granted = [
        (note.answered_at, _claimed_kind(note.text))
        for note in journal.notes
        if note.text.startswith("CLAIM ") and "claimed" in note.reply and note.answered_at
    ]
    sent: Counter[str] = Counter()
    for note in _writes(journal):
        kind = _written_kind(note.text)
        sent[kind] += 1
        claims = sum(at < note.asked_at and claimed == kind for at, claimed in granted)
        if sent[kind] > claims:
            yield f"I2: {sent[kind]} writes of {kind} on {claims} claims: {note.text[:80]}"


def _seen_or_not_there(stood: Stood) -> Iterator[str]:
    """I3: what is completed is there. I4: what failed before a write is not."""
    found = [marker for _, marker in _markers(stood.github)]
    live, writers = {marker.effect_key for marker in found}, {marker.run for marker in found}
    for run in stood.runs:
        key = run.inputs.dedupe_key
        if run.status is Status.FAILED_BEFORE_WRITE and key in writers:
            yield f"I4: {key} failed before a write, and something of it is there"
        if run.status is Status.COMPLETED:
            wrong = [_unseen(effect, stood.github, live) for effect in run.effects]
            yield from (f"I3: {key} is completed, and {why}" for why in wrong if why)


def _unseen(effect: RunEffect, github: GitHub, live: set[str]) -> str:
    """Why an effect does not make its run completed; empty where it does."""
    if effect.evidence is Evidence.SKIPPED and effect.reason:
        return ""
    if effect.evidence is not Evidence.CONFIRMED:
        return f"{effect.target} is {effect.evidence}"
    match effect.kind:
        case EffectKind.LABELS if not set(effect.labels) <= set(
            github.labels(REPOSITORY, effect.issue)
        ):
            return f"{effect.target} are not there"
        case EffectKind.COMMENT | EffectKind.SUMMARY if effect.effect_key not in live:
            return f"{effect.target} is not there"
        case _:
            return ""


def _in_scope(journal: Journal) -> Iterator[str]:
    """I5: comments, labels of the allow-list, the summary, and own duplicates: nothing else."""
    for note in _writes(journal):
        if not _written_kind(note.text):
            yield f"I5: {note.text[:120]}"


def _under_the_fence(stood: Stood) -> Iterator[str]:
    """I6: of the status writes that the ledger took, none bears an older fence than one before."""
    newest: dict[tuple[str, str], int] = {}
    saves = [note for note in stood.journal.notes if note.text.startswith("SAVE ")]
    for note in sorted(saves, key=lambda note: note.answered_at or 0):
        if not re.match(r"(\$2\r\n|\+)ok\b", note.reply):
            continue
        # The script's name and four keys, then token, fence and epoch.
        words = note.text.split(" ", 8)
        run, fence = (words[2], words[7]), int(words[6])
        if fence < newest.get(run, 0):
            yield f"I6: {run[0]} was saved under fence {fence}, after {newest[run]}"
        newest[run] = max(newest.get(run, 0), fence)
    for record in stood.runs:
        fences = [attempt.fence for attempt in record.attempts]
        if fences != sorted(set(fences)):
            yield f"I6: the attempts of {record.inputs.dedupe_key} have the fences {fences}"


def _ended(runs: list[RunRecord]) -> Iterator[str]:
    """I7: every run has ended, or waits for a person."""
    if not runs:
        yield "I7: there is no run"
    for run in runs:
        if not (run.status.final or run.status is Status.NEEDS_REVIEW):
            yield f"I7: {run.inputs.dedupe_key} is {run.status}: {run.reason}"


def _epoch(stood: Stood) -> Iterator[str]:
    """A ledger that may have lost something has a new epoch, any other the one that it had."""
    changed = stood.after.get("id") != stood.before["id"]
    if changed and not stood.planned.kind.loses_ledger:
        yield f"epoch: nothing was lost, and {stood.after} came after {stood.before}"
    if not changed and stood.planned.kind.loses_ledger:
        yield f"epoch: acknowledged writes may be gone, and {stood.after} stands"
    if changed and stood.after.get("quiet_until", "0") == "0":
        yield "epoch: it is new, and there was no quiet"


def _asked_once(stood: Stood) -> Iterator[str]:
    """The plan is frozen: once it is saved the model is not asked again, but by a lost ledger."""
    plans = [
        note.answered_at
        for note in stood.journal.notes
        if note.text.startswith("SAVE_PLAN ") and "ok" in note.reply and note.answered_at
    ]
    if not plans or stood.planned.kind.loses_ledger:
        return
    notes = stood.journal.notes
    again = [note for note in notes if note.way == "model" and note.asked_at > min(plans)]
    if again:
        yield f"plan: the model was asked {len(again)} times after it was saved"


# --- What passed --------------------------------------------------------------------------------

_LABEL = "(bug|enhancement|question)"

_WRITTEN = (
    (r"POST \S+/issues/\d+/comments ", EffectKind.COMMENT),
    (r"PATCH \S+/issues/comments/\d+ ", EffectKind.COMMENT),
    (rf'POST \S+/issues/\d+/labels {{"labels": \["{_LABEL}"\]}}$', EffectKind.LABELS),
    (rf"DELETE \S+/issues/\d+/labels/{_LABEL} ", EffectKind.UNLABEL),
    (r"POST \S+/issues ", EffectKind.SUMMARY),
    (r'PATCH \S+/issues/\d+ .*"state": "closed"', EffectKind.REMOVAL),
    (r"PATCH \S+/issues/\d+ ", EffectKind.SUMMARY),
    (r"DELETE \S+/issues/comments/\d+ ", EffectKind.REMOVAL),
)
"""What a write is of: the first that fits."""


def _writes(journal: Journal) -> Iterator[Noted]:
    """The writes to GitHub, in the order in which they were passed on; reactions and the requests
    for tokens are none."""
    for note in journal.notes:
        if note.way != "github" or note.text.startswith("GET "):
            continue
        path = note.text.split(" ", 2)[1]
        if not path.endswith(("/access_tokens", "/reactions")):
            yield note


def _written_kind(text: str) -> str:
    """The kind of effect of a write; empty where it is none."""
    return next((str(kind) for pattern, kind in _WRITTEN if re.match(pattern, text)), "")


def _claimed_kind(text: str) -> str:
    """The kind of effect that a claim is of."""
    fact, _ = json.JSONDecoder().raw_decode(text, text.index('{"key": '))
    return str(fact["kind"])


def _markers(github: GitHub) -> Iterator[tuple[int, Marker]]:
    """All valid markers, one for each live comment or issue of the bot, with the issue's number."""
    for issue in github.issues(REPOSITORY):
        own = [issue.body] if issue.author == BOT else []
        for body in (*own, *_bodies(github, issue.number)):
            reading = read(body, KEYS)
            if reading.signature is Signature.VALID and reading.marker is not None:
                yield issue.number, reading.marker


def _bodies(github: GitHub, number: int) -> list[str]:
    """The bot's live comments on an issue."""
    return [item.body for item in github.comments(REPOSITORY, number) if item.author == BOT]
