"""The run as the ledger holds it and as people read it."""

from triage.contract.record import (
    Attempt,
    Evidence,
    Resolution,
    ResourceSummary,
    ReviewFigures,
    ReviewSummary,
    RunEffect,
    RunInputs,
    RunRecord,
    Skip,
    SnapshotSummary,
    Status,
    Verdict,
)
from triage.contract.shown import contract, figures, summarised, write_scope

__all__ = [
    "Attempt",
    "Evidence",
    "Resolution",
    "ResourceSummary",
    "ReviewFigures",
    "ReviewSummary",
    "RunEffect",
    "RunInputs",
    "RunRecord",
    "Skip",
    "SnapshotSummary",
    "Status",
    "Verdict",
    "contract",
    "figures",
    "summarised",
    "write_scope",
]
