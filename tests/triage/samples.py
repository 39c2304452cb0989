"""Made-up issues, policies, decisions, runs and effects; each takes what a test cares about."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from triage.contract import RunEffect, RunInputs, RunRecord
from triage.identifiers import EffectKind, Family, Mode, effect_key
from triage.marker import MarkerKeys
from triage.plan import Decision
from triage.policy import JobPolicy
from triage.snapshot import Issue, Snapshot, SnapshotIssue, frozen

NOON = datetime(2026, 9, 16, 12, tzinfo=UTC)
REPOSITORY = 1296269
WINDOW = "2026-09-16"
DEDUPE_KEY = f"daily-issue-triage:R{REPOSITORY}:{WINDOW}:p3f2a91c0"
BOT = 9000
BOTS = frozenset([BOT])
PERSON = 7
KEYS = MarkerKeys.parse("k1:" + "ab" * 16)

LABELS = {
    "bug": "Something that should work does not",
    "enhancement": "A request for something new",
    "question": "Asks how, reports no fault",
    "docs": "About the documentation",
}


def policy(**settings: Any) -> JobPolicy:
    """A policy with four labels, three of which exclude each other."""
    return JobPolicy.model_validate(
        {"labels": LABELS, "exclusive": [["bug", "enhancement", "question"]], **settings}
    )


def inputs(**changes: Any) -> RunInputs:
    """The inputs of a window's run in comment mode."""
    return RunInputs.model_validate(
        {
            "dedupe_key": DEDUPE_KEY,
            "repository_id": REPOSITORY,
            "repository": "acme/api",
            "installation": "5",
            "policy": policy(),
            "mode": Mode.COMMENT,
            "by": "cron",
            "due_at": NOON,
            **changes,
        }
    )


def run(**changes: Any) -> RunRecord:
    """A run as the ledger holds it."""
    return RunRecord.model_validate(
        {"inputs": inputs(), "created_at": NOON, "updated_at": NOON, **changes}
    )


def issue(number: int = 1, **changes: Any) -> Issue:
    """An open issue without labels, by a person. Its id is its number and 1000."""
    return Issue.model_validate(
        {
            "id": 1000 + number,
            "number": number,
            "title": f"Title {number}",
            "body": f"Body {number}: index out of range",
            "author": "ada",
            "author_id": PERSON,
            "labels": (),
            "state": "open",
            "locked": False,
            "created_at": NOON + timedelta(minutes=number),
            "updated_at": NOON + timedelta(hours=1),
            "url": f"https://github.example/acme/api/issues/{number}",
            **changes,
        }
    )


def frozen_issue(number: int = 1, *, labels_only: bool = False) -> SnapshotIssue:
    """The same issue in a snapshot."""
    return frozen(issue(number), labels_only=labels_only)


def snapshot(*issues: Issue | SnapshotIssue, **changes: Any) -> Snapshot:
    """A snapshot of these issues; of issue 1 where none is named."""
    held = [frozen(item) if isinstance(item, Issue) else item for item in issues or (issue(),)]
    return Snapshot.model_validate(
        {
            "dedupe_key": DEDUPE_KEY,
            "source_set": "issues:open:unlabeled",
            "query_cutoff": NOON,
            "base_commit": "6dcb09b5b57875f334f61aebed695e2e4193db5e",
            "observed_at": NOON + timedelta(seconds=4),
            "fence": 1,
            "issues": tuple(held),
            **changes,
        }
    )


def answer(number: int = 1, **changes: Any) -> dict[str, Any]:
    """What a model answers of an issue, as plain data."""
    return {
        "number": number,
        "labels": ["bug"],
        "confidence": 0.9,
        "verdict": "Crashes on an empty file since 2.3.",
        "evidence": [{"label": "bug", "quote": "index out of range"}],
        "considered": [{"label": "question", "reason": "it asks nothing"}],
        "language": "en",
        **changes,
    }


def decision(number: int = 1, **changes: Any) -> Decision:
    """A decision that passed."""
    return Decision.model_validate({"issue_id": 1000 + number, **answer(number, **changes)})


def effect(kind: EffectKind = EffectKind.LABELS, number: int = 1, **changes: Any) -> RunEffect:
    """An intended write on an issue, never sent."""
    on_issue = kind not in (EffectKind.SUMMARY, EffectKind.REPORT)
    issue_id = 1000 + number if on_issue else 0
    return RunEffect.model_validate(
        {
            "effect_key": effect_key(REPOSITORY, issue_id, Family.TRIAGE, kind),
            "kind": kind,
            "issue": number if on_issue else 0,
            "issue_id": issue_id,
            "labels": ("bug",) if kind in (EffectKind.LABELS, EffectKind.UNLABEL) else (),
            **changes,
        }
    )


@dataclass(frozen=True)
class Record:
    """What the ledger's shared record tells of an effect."""

    github_id: int | None = None
    tombstone: bool = False
    own_labels: tuple[str, ...] = ()
    removed_labels: tuple[str, ...] = ()


def known(effects: Sequence[RunEffect], kind: EffectKind, **fields: Any) -> dict[str, Record]:
    """The record of the one effect of this kind, by its key."""
    [key] = [item.effect_key for item in effects if item.kind is kind]
    return {key: Record(**fields)}
