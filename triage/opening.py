"""How a nightly review starts: cold, with the last findings, or in the session that knows them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from triage.findings import ColdFor, Opening, Remembered, Start, Tree
from triage.policy import ResetEvery, ReviewPolicy
from triage.tree import changed_share

_DAYS: Mapping[ResetEvery, int] = {ResetEvery.WEEKLY: 7, ResetEvery.MONTHLY: 30}


@dataclass(frozen=True, slots=True)
class Past:
    """What the ledger holds of the last review. ``session_id`` is None where no session is kept;
    ``cleared`` says why it was given up, empty where it was not; ``session_since`` is when it ran
    cold."""

    prior: Remembered | None = None
    session_id: str | None = None
    session_since: datetime | None = None
    cleared: str = ""


def opening_of(policy: ReviewPolicy, past: Past, tree: Tree, now: datetime) -> Opening:
    """How the review starts, and why; ``tree`` is what is reviewed, ``now`` is aware."""
    if policy.memory == "fresh":
        return Opening(start=Start.COLD, why=ColdFor.FRESH)
    if past.prior is None:
        return Opening(start=Start.COLD, why=ColdFor.FIRST)
    if policy.memory == "findings":
        return Opening(start=Start.FINDINGS)
    cold = _why_cold(policy, past, past.prior, tree, now)
    if cold is None:
        return Opening(start=Start.RESUMED)
    return Opening(start=Start.COLD, why=cold[0], detail=cold[1])


def _why_cold(
    policy: ReviewPolicy, past: Past, prior: Remembered, tree: Tree, now: datetime
) -> tuple[ColdFor, str] | None:
    """Why a review that should resume does not, or None."""
    reset = policy.reset
    if prior.broken:
        return ColdFor.BROKEN, "the last answer was not continuous"
    if past.session_id is None:
        return (ColdFor.CLEARED, past.cleared[:200]) if past.cleared else (ColdFor.NO_SESSION, "")
    days = _days_between(past.session_since, now, policy.schedule.timezone)
    if days is not None and days >= _DAYS.get(reset.every, days + 1):
        return ColdFor.DUE, f"the session is {days} days old"
    changed = changed_share(prior.began, tree)
    if changed >= reset.changed:
        return ColdFor.CHANGED, f"{changed:.0%} of the files changed since it began"
    if prior.recall is not None and prior.recall < reset.recall:
        return ColdFor.RECALL, f"it recalled {prior.recall:.0%} of the findings"
    return None


def _days_between(since: datetime | None, now: datetime, timezone: str) -> int | None:
    """Days by the calendar of the repository: a window that starts a minute early is not a day
    younger."""
    if since is None:
        return None
    zone = ZoneInfo(timezone)
    return (now.astimezone(zone).date() - since.astimezone(zone).date()).days
