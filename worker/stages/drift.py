"""A manual re-run of what is done: read only, say what differs, change nothing."""

from triage.contract import Evidence, RunEffect, RunRecord
from triage.identifiers import EffectKind, Mode
from triage.marker import read
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
    issue = issues.get(effect.issue)
    if issue is None:
        return [f"issue {effect.issue}: is not listed any more"]
    match effect.kind:
        case EffectKind.LABELS:
            gone = [name for name in effect.labels if name not in issue.labels]
            return [f"issue {effect.issue}: label {name!r} is gone" for name in gone]
        case EffectKind.UNLABEL:
            back = [name for name in effect.labels if name in issue.labels]
            return [f"issue {effect.issue}: label {name!r} is back" for name in back]
        case EffectKind.SUMMARY:
            body: str | None = issue.body
        case _:
            comment = comments.get(effect.github_id or 0)
            body = comment.body if comment is not None else None
    if body is None:
        return [f"issue {effect.issue}: the comment is gone"]
    same = read(body, ports.keys).body_digest == effect.digest
    return [] if same else [f"issue {effect.issue}: the {effect.kind} was changed"]
