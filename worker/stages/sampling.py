"""Looking for an effect that was sent and not seen: one read of both views, and what it proves."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from ledger.records import EffectRecord
from triage.contract import RunEffect
from triage.identifiers import EffectKind
from triage.readback import (
    Forged,
    Found,
    Hit,
    Nothing,
    counts_as_sample,
    find,
    found,
    proved_absent,
)
from worker.ports import Gone, Place, Ports
from worker.stages.lookup import found_in

SKEW = timedelta(minutes=5)
"""How far listings with ``since`` reach back: GitHub's clock is not ours."""


@dataclass(frozen=True, slots=True)
class Absent:
    """Five reads, spread over the absence window, all empty."""


@dataclass(frozen=True, slots=True)
class Pending:
    """Not seen, not yet proved absent."""

    samples: Sequence[datetime]


Sighting = Hit | Forged | Absent | Pending | Gone


async def look(
    effect: RunEffect, record: EffectRecord | None, place: Place, ports: Ports
) -> Sighting:
    """Read both views once. A hit is noted, an empty read is added to the samples.

    Raises ReadFailed: a read that did not succeed is no sample.
    """
    seen = await views(effect, place, ports)
    if isinstance(seen, Gone):
        return seen
    bots = await ports.ledger.repositories.bot_ids()
    outcome = find(effect.effect_key, seen, bots)
    if isinstance(outcome, Hit):
        reading = outcome.found.reading
        await ports.ledger.effects.note_hit(
            effect.effect_key,
            outcome.found.github_id,
            outcome.found.url,
            reading.marker.digest if reading.marker else "",
            issue=outcome.found.number,
        )
        return outcome
    if not isinstance(outcome, Nothing):
        return outcome
    window, now = ports.timing.absence_window, ports.clock.now()
    samples = record.samples if record is not None else ()
    if counts_as_sample(samples, now, window):
        samples = await ports.ledger.effects.add_sample(effect.effect_key, now)
    return Absent() if proved_absent(samples, window) else Pending(samples)


async def views(effect: RunEffect, place: Place, ports: Ports) -> list[Found] | Gone:
    """What both views show in the effect's place, each comment or issue once."""
    since = (effect.sent_at or ports.clock.now()) - SKEW
    if effect.kind is EffectKind.SUMMARY:
        login = await ports.reader.bot_login()
        own = await ports.reader.issues(place, state="all", creator=login)
        recent = await ports.reader.issues(place, state="all", since=since)
        return [
            found(issue.id, issue.number, issue.author_id, issue.body, issue.url, ports.keys)
            for issue in {issue.id: issue for issue in (*own, *recent)}.values()
        ]
    comments = await ports.reader.issue_comments(place, effect.issue)
    if isinstance(comments, Gone):
        return comments
    recent_comments = [
        comment
        for comment in await ports.reader.comments(place, since)
        if comment.issue == effect.issue
    ]
    return found_in({c.id: c for c in (*comments, *recent_comments)}.values(), ports)
