"""Made-up findings, answers and snapshots of reviews; each takes what a test cares about."""

from collections.abc import Mapping
from typing import Any

from tests.triage.samples import REPOSITORY, inputs, snapshot
from triage.contract import RunInputs
from triage.findings import (
    Finding,
    FindingState,
    Opening,
    Remembered,
    Review,
    ReviewInput,
    ReviewVerdict,
    Severity,
    Start,
)
from triage.policy import ReviewPolicy
from triage.review import make_review
from triage.snapshot import Snapshot
from triage.tree import tree_of

SESSION = "0b8a1c1e-0000-4000-8000-000000000001"
KEY = f"nightly-repo-review:R{REPOSITORY}:2026-09-17:p3f2a91c0"
FILES = {"src/app.py": "d1", "src/db.py": "d2", "README.md": "d3"}
COLD = Opening(start=Start.COLD)
RESUMED = Opening(start=Start.RESUMED)


def told(name: str = "a", **changes: Any) -> dict[str, Any]:
    """A finding as the model gives it."""
    return {
        "id": name,
        "file": "src/app.py",
        "line": 10,
        "severity": "medium",
        "summary": "The loop runs one step past the end.",
        **changes,
    }


def answer(*findings: Any, **changes: Any) -> dict[str, Any]:
    """A review as the model gives it."""
    return {
        "review_id": "review-2",
        "verdict": "concerns" if findings else "ok",
        "findings": list(findings),
        **changes,
    }


def follow_up(*findings: Any, **changes: Any) -> dict[str, Any]:
    """A review in a session that knows the one before it."""
    echoed = {"previous_review_id": "review-1", "previous_finding_ids": ["p"], "resolved": []}
    return answer(*findings, **{**echoed, **changes})


def known(name: str = "f-00000001", **changes: Any) -> Finding:
    """A finding of the last review, which its session calls ``p``."""
    return Finding.model_validate(
        {
            "id": name,
            "file": "src/app.py",
            "line": 10,
            "severity": Severity.MEDIUM,
            "summary": "The loop runs one step past the end.",
            "state": FindingState.NEW,
            "told_as": "p",
            "since": "2026-09-10",
            "since_commit": "aaaaaaa",
            **changes,
        }
    )


def prior(*findings: Finding, **changes: Any) -> Remembered:
    """The last review."""
    return Remembered.model_validate(
        {
            "review_id": "review-1",
            "window": "2026-09-16",
            "commit": "aaaaaaa",
            "verdict": ReviewVerdict.CONCERNS,
            "findings": findings,
            "told": tuple(item.told_as for item in findings),
            "tree": tree_of(FILES),
            "began": tree_of(FILES),
            **changes,
        }
    )


def taken(last: Remembered | None = None, opening: Opening = COLD, **changes: Any) -> Snapshot:
    """The snapshot of a review."""
    session = (
        {"session_id": SESSION, "session_length": 12} if opening.start is Start.RESUMED else {}
    )
    part = {"opening": opening, "tree": tree_of(FILES), "prior": last, **session, **changes}
    return snapshot(
        dedupe_key=KEY, source_set="files:base-commit", review=ReviewInput.model_validate(part)
    ).model_copy(update={"issues": ()})


def reviewed(
    given: Mapping[str, Any],
    last: Remembered | None = None,
    opening: Opening = COLD,
    files: Mapping[str, str] | None = None,
    session: str = SESSION,
    **changes: Any,
) -> Review:
    """What is made of an answer."""
    where = FILES if files is None else files
    return make_review(given, taken(last, opening, **changes), where, session_id=session)


def review_inputs(**changes: Any) -> RunInputs:
    """The inputs of a review."""
    return inputs(**{"dedupe_key": KEY, "policy": ReviewPolicy(), **changes})
