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
from worker.stages.epoch import standing_epoch


async def look_up(attempt: Attempt, issue: Issue, effects: Sequence[RunEffect]) -> None:
    """Rebuild the shared records of an issue older than the epoch, once, from its comments and
    events. Nothing is read where the ledger was made together with its App."""
    ports = attempt.ports
    epoch = await standing_epoch(ports)
    wanted = [e for e in effects if not _looked_up(attempt, e)]
    if epoch.first or not wanted or issue.created_at >= epoch.began:
        return
    comments = await ports.reader.issue_comments(attempt.place, issue.number)
    if isinstance(comments, Gone):
        return
    events = await ports.reader.issue_events(attempt.place, issue.number)
    bots = await ports.ledger.repositories.bot_ids()
    for effect in wanted:
        record = _record(attempt.run.inputs.repository_id, effect)
        if effect.kind is EffectKind.COMMENT:
            record = _with_comment(record, found_in(comments, ports), bots)
        else:
            record = _with_labels(record, issue, events, bots)
        await ports.ledger.effects.adopt(record)
    await attempt.know(effect.effect_key for effect in wanted)


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


def _with_comment(
    record: EffectRecord, seen: Sequence[Found], bots: frozenset[int]
) -> EffectRecord:
    """The bot's comment on the issue: the one that bears the effect's key, else a valid one signed
    for another place (the issue was transferred), which is to be edited and signed anew."""
    outcome = find(record.effect_key, seen, bots)
    if isinstance(outcome, Hit):
        return _adopting(record, outcome.found)
    elsewhere = [
        item
        for item in seen
        if item.author_id in bots and item.reading.signature is Signature.VALID
    ]
    return _adopting(record, min(elsewhere, key=lambda f: f.github_id)) if elsewhere else record


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
