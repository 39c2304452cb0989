"""What the lines of a run on the way say: of its snapshot, and of its plan."""

from collections import Counter
from datetime import datetime

from cli.terminal import clean, hour
from triage.contract import RunInputs
from triage.documents import Watch, WatchInput
from triage.effects import derive
from triage.findings import Review, ReviewInput
from triage.identifiers import EffectKind, digest_of
from triage.plan import Plan
from triage.snapshot import Snapshot


def snapshot_said(snapshot: Snapshot, inputs: RunInputs) -> str:
    """What the frozen input holds."""
    cutoff = _cutoff(snapshot.query_cutoff, inputs)
    if snapshot.review is not None:
        return f"{_tree(snapshot.review)}, base {snapshot.base_commit[:7]}; {_opening(snapshot)}"
    if snapshot.watch is not None:
        return f"{_documents(snapshot.watch)}, {cutoff}"
    base = f", base {snapshot.base_commit[:7]}" if snapshot.base_commit else ""
    left = f", {snapshot.left_over} left for the next run" if snapshot.left_over else ""
    return f"{_count(len(snapshot.issues), 'issue')}{left}, {cutoff}{base}"


def plan_said(plan: Plan, snapshot: Snapshot, inputs: RunInputs) -> str:
    """What was decided, and what that cost."""
    if plan.review is not None:
        what = _reviewed(plan.review)
    elif plan.watch is not None:
        what = _watched(plan.watch)
    else:
        what = _triaged(plan, snapshot, inputs)
    name = digest_of(plan.model_dump(mode="json"))[:4]
    return f"p{name}: {what}  ~${plan.cost.estimated_usd:.3f}"


def _cutoff(moment: datetime, inputs: RunInputs) -> str:
    return f"cut-off {hour(moment, inputs.policy.schedule.timezone)}"


def _tree(taken: ReviewInput) -> str:
    left_out = sum(taken.left_out.values())
    return _count(taken.tree.files, "file") + (f", {left_out} left out" if left_out else "")


def _opening(snapshot: Snapshot) -> str:
    """``cold (first-review)``, ``resumed (after 2026-09-15)``."""
    taken = snapshot.review
    if taken is None:
        return ""
    opening = taken.opening
    if opening.why is not None:
        detail = f": {clean(opening.detail)}" if opening.detail else ""
        return f"{opening.start} ({opening.why}{detail})"
    return f"{opening.start} (after {taken.prior.window})" if taken.prior else str(opening.start)


def _documents(taken: WatchInput) -> str:
    unread = sum(not document.was_read for document in taken.documents)
    not_read = f", {unread} not read" if unread else ""
    return _count(len(taken.documents), "resource") + not_read


def _reviewed(review: Review) -> str:
    states = Counter(finding.state for finding in review.findings)
    told = ", ".join(f"{number} {state}" for state, number in states.items())
    held = f", {len(review.held)} held" if review.held else ""
    return f"{review.verdict}, {told or 'no finding'}{held}"


def _watched(watch: Watch) -> str:
    kinds = Counter(difference.change for difference in watch.changes)
    return ", ".join(f"{number} {change}" for change, number in kinds.items()) or "nothing"


def _triaged(plan: Plan, snapshot: Snapshot, inputs: RunInputs) -> str:
    effects = derive(plan, snapshot, inputs)
    labels = sum(len(item.labels) for item in effects if item.kind is EffectKind.LABELS)
    comments = sum(item.kind is EffectKind.COMMENT for item in effects)
    held = f", {len(plan.held)} held" if plan.held else ""
    return (
        f"{_count(len(plan.decisions), 'issue')}, {_count(labels, 'label')}, "
        f"{_count(comments, 'comment')}{held}"
    )


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
