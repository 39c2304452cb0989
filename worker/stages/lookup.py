"""After the ledger was lost: what GitHub still tells of one issue, read before the first write."""

from collections.abc import Iterable, Sequence

from ledger.records import EffectRecord
from triage.contract import RunEffect
from triage.identifiers import EffectKind
from triage.marker import Signature
from triage.readback import Found, Hit, find, found
from triage.snapshot import Issue
from worker.ports import Comment, Gone, IssueEvent, Ports
from worker.stages.attempt import Attempt
from worker.stages.converge import converge
from worker.stages.epoch import standing_epoch
from worker.stages.sending import conflict, verify_later


async def look_up(attempt: Attempt, issue: Issue, effects: Sequence[RunEffect]) -> None:
    """Rebuild the shared records of an issue, once, before its first write.

    Its comments are read where it has any, whatever the ledger: an issue that was transferred
    brings the bot's comment along. Where it is older than the epoch of a ledger that was not made
    together with its App, they are read in any case, and its events are.
    """
    epoch = await standing_epoch(attempt.ports)
    forgotten = not epoch.first and issue.created_at < epoch.began
    if not (forgotten or issue.comments):
        return
    wanted = [effect for effect in effects if not _looked_up(attempt, effect)]
    for effect in wanted:
        if effect.kind is EffectKind.COMMENT:
            await _look_for_comment(attempt, effect)
    labels = [effect for effect in wanted if effect.kind is not EffectKind.COMMENT]
    if labels and forgotten:
        await _look_for_labels(attempt, issue, labels)
    await attempt.know(effect.effect_key for effect in wanted)


async def _look_for_comment(attempt: Attempt, effect: RunEffect) -> None:
    """The bot's comment on the issue: the one that bears the effect's key, else a valid one signed
    for another place (the issue was transferred), which is to be edited and signed anew. One with a
    bad signature is a conflict, not an absence."""
    ports = attempt.ports
    comments = await ports.reader.issue_comments(attempt.place, effect.issue)
    if isinstance(comments, Gone):
        return
    bots = await ports.ledger.repositories.bot_ids()
    own = [item for item in found_in(comments, ports) if item.author_id in bots]
    outcome = find(effect.effect_key, own, bots)
    valid = [item for item in own if item.reading.signature is Signature.VALID]
    record = _record(attempt.run.inputs.repository_id, effect)
    if isinstance(outcome, Hit):
        if not await converge(effect, outcome, attempt.run.inputs, attempt.place, ports):
            await verify_later(attempt, effect)
        record = _adopting(record, outcome.found)
    elif valid:
        record = _adopting(record, min(valid, key=lambda item: item.github_id))
    elif any(item.reading.signature is Signature.INVALID for item in own):
        why = "a comment of the bot bears a bad signature"
        await attempt.keep([conflict(effect, why, attempt.now)])
        return
    await ports.ledger.effects.adopt(record)


async def _look_for_labels(attempt: Attempt, issue: Issue, effects: Sequence[RunEffect]) -> None:
    ports = attempt.ports
    events = await ports.reader.issue_events(attempt.place, issue.number)
    bots = await ports.ledger.repositories.bot_ids()
    for effect in effects:
        record = _record(attempt.run.inputs.repository_id, effect)
        await ports.ledger.effects.adopt(_with_labels(record, issue, events, bots))


def found_in(comments: Iterable[Comment], ports: Ports) -> list[Found]:
    """What comments prove."""
    return [
        found(item.id, item.issue, item.author_id, item.body, item.url, ports.keys)
        for item in comments
    ]


def _looked_up(attempt: Attempt, effect: RunEffect) -> bool:
    record = attempt.records.get(effect.effect_key)
    return record is not None and (record.looked_up or record.sends > 0)


def _record(repository_id: int, effect: RunEffect) -> EffectRecord:
    return EffectRecord(
        effect_key=effect.effect_key,
        repository_id=repository_id,
        issue_id=effect.issue_id,
        issue=effect.issue,
        kind=effect.kind,
        looked_up=True,
    )


def _adopting(record: EffectRecord, item: Found) -> EffectRecord:
    digest = item.reading.marker.digest if item.reading.marker else ""
    return record.model_copy(
        update={"github_id": item.github_id, "url": item.url, "digest": digest}
    )


def _with_labels(
    record: EffectRecord, issue: Issue, events: Sequence[IssueEvent], bots: frozenset[int]
) -> EffectRecord:
    """Labels whose last event tells whose they are: added by the bot and there, or removed by a
    person after the bot had added them."""
    own: set[str] = set()
    removed: set[str] = set()
    for event in events:
        if event.event == "labeled":
            removed.discard(event.label)
            (own.add if event.actor_id in bots else own.discard)(event.label)
        elif event.event == "unlabeled" and event.label in own:
            own.discard(event.label)
            if event.actor_id not in bots:
                removed.add(event.label)
    own &= set(issue.labels)
    return record.model_copy(
        update={"own_labels": tuple(sorted(own)), "removed_labels": tuple(sorted(removed))}
    )
