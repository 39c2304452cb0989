"""A manual re-run of what is done: read only, say what differs, change nothing."""

from triage.contract import Evidence, RunEffect, RunRecord
from triage.identifiers import EffectKind, Mode
from triage.marker import Signature, read
from triage.snapshot import Issue
from worker.ports import Comment, Place, Ports
from worker.stages.sampling import SKEW


async def drift(run: RunRecord, ports: Ports) -> list[str]:
    """One line for each confirmed effect that GitHub does not show as it was confirmed.

    Raises ReadFailed.
    """
    kept = [item for item in run.effects if item.evidence is Evidence.CONFIRMED]
    if run.inputs.mode is Mode.OBSERVE or not kept:
        return []
    place = Place(run.inputs.repository_id, run.inputs.repository, run.inputs.installation)
    since = min(effect.sent_at or run.created_at for effect in kept) - SKEW
    comments = {item.id: item for item in await ports.reader.comments(place, since)}
    listed = await ports.reader.issues(place, state="all", since=since)
    issues = {issue.number: issue for issue in listed}
    lines: list[str] = []
    for effect in kept:
        lines += _differences(effect, comments, issues, ports)
    return lines


def _differences(
    effect: RunEffect, comments: dict[int, Comment], issues: dict[int, Issue], ports: Ports
) -> list[str]:
    """What is not listed was not updated since, and is as it was confirmed."""
    if effect.kind is EffectKind.COMMENT:
        comment = comments.get(effect.github_id or 0)
        gone = f"issue {effect.issue}: the comment is gone"
        return _text_differs(effect, comment.body, ports) if comment is not None else [gone]
    issue = issues.get(effect.issue)
    if issue is None:
        return []
    match effect.kind:
        case EffectKind.LABELS:
            missing = [name for name in effect.labels if name not in issue.labels]
            return [f"issue {effect.issue}: label {name!r} is gone" for name in missing]
        case EffectKind.UNLABEL:
            back = [name for name in effect.labels if name in issue.labels]
            return [f"issue {effect.issue}: label {name!r} is back" for name in back]
        case _:
            return _text_differs(effect, issue.body, ports)


def _text_differs(effect: RunEffect, body: str, ports: Ports) -> list[str]:
    """A text that a later run of the bot wrote is no difference; one of a person is."""
    reading = read(body, ports.keys)
    signed = reading.signature is Signature.VALID and not reading.edited_by_person
    return [] if signed else [f"issue {effect.issue}: the {effect.kind} was changed"]
