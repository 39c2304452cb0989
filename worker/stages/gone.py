"""What is not there any more, and why: told apart by reading again."""

from datetime import datetime
from typing import Final

from triage.contract import RunEffect, Skip
from triage.effects import confirmed, skipped
from triage.identifiers import EffectKind
from worker.ports import Gone, Refused
from worker.stages.attempt import Attempt

GONE: Final[dict[Gone, Skip]] = {
    Gone.NOT_FOUND: Skip.DELETED,
    Gone.DELETED: Skip.DELETED,
    Gone.TRANSFERRED: Skip.TRANSFERRED,
    Gone.LOCKED: Skip.LOCKED,
    Gone.ARCHIVED: Skip.REFUSED,
}


async def comment_gone(attempt: Attempt, effect: RunEffect) -> RunEffect:
    """A comment that a read by its id does not show: gone with its issue, or by a person's hand.

    As it was where GitHub may only not show it yet: it was written less than an absence window ago.
    """
    issue = await attempt.ports.reader.issue(attempt.place, effect.issue)
    if isinstance(issue, Gone):
        return skipped(effect, GONE[issue])
    await attempt.know([effect.effect_key])
    record = attempt.records.get(effect.effect_key)
    if record is not None and not record.tombstone and too_soon(attempt, record.claimed_at):
        return effect
    return await removed_by_person(attempt, effect)


async def removed_by_person(attempt: Attempt, effect: RunEffect) -> RunEffect:
    """A comment that somebody deleted: the fact is kept."""
    await attempt.ports.ledger.effects.note_tombstone(effect.effect_key)
    return skipped(effect, Skip.HUMAN_REMOVED)


def summary_gone(attempt: Attempt, effect: RunEffect, gone: Gone) -> RunEffect:
    """A summary issue that a read by its number does not show: somebody deleted or moved it.

    As it was where GitHub may only not show it yet.
    """
    record = attempt.records.get(effect.effect_key)
    written = record.claimed_at if record is not None else None
    if gone is Gone.NOT_FOUND and too_soon(attempt, written):
        return effect
    return skipped(effect, Skip.HUMAN_REMOVED)


def too_soon(attempt: Attempt, written: datetime | None) -> bool:
    """Whether a read that shows nothing may only lag behind a write of that time."""
    return written is not None and attempt.now - written < attempt.ports.timing.absence_window


async def refused_as_gone(attempt: Attempt, effect: RunEffect, outcome: Refused) -> RunEffect:
    """What a write was refused for, as not there: the issue, or what the bot had on it.

    Raises ReadFailed where that cannot be told.
    """
    on_the_bots_own = effect.github_id is not None or effect.kind is EffectKind.UNLABEL
    if not on_the_bots_own or effect.kind is EffectKind.SUMMARY:
        return skipped(effect, GONE[outcome.gone or Gone.NOT_FOUND], outcome.detail)
    issue = await attempt.ports.reader.issue(attempt.place, effect.issue)
    if isinstance(issue, Gone):
        return skipped(effect, GONE[issue], outcome.detail)
    if effect.kind is EffectKind.UNLABEL:
        return confirmed(effect)
    return await removed_by_person(attempt, effect)


async def why_forbidden(attempt: Attempt, number: int) -> Gone | None:
    """A 403 is told apart by re-reading: the issue, then the repository. None: the permission.

    Raises ReadFailed where that cannot be told.
    """
    reader = attempt.ports.reader
    if number:
        issue = await reader.issue(attempt.place, number)
        if isinstance(issue, Gone):
            return issue
        if issue.locked:
            return Gone.LOCKED
    repository = await reader.repository_by_id(attempt.place)
    if isinstance(repository, Gone):
        return repository
    return Gone.ARCHIVED if repository.archived else None
