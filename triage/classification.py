"""The status of a run from the evidence of its effects: the first row that fits.

The rows stand in the order of the design. Before-write, after-write and needs-review are never
folded into one "failed": each has another next action.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from triage.contract import Evidence, RunEffect, Status
from triage.readback import is_overdue

MOST_CONTINUATIONS = 6
"""The continuation at which a run that is still not settled goes to a person."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the rows look at.

    ``planned`` is False where the run ended before its plan was saved; ``continuations`` counts
    this attempt if it is one; ``budget_spent``: the attempt stopped for the write budget.
    """

    effects: Sequence[RunEffect]
    now: datetime
    planned: bool = True
    continuations: int = 0
    budget_spent: bool = False


Row = tuple[str, Callable[[Facts], bool], Status]


def _all(facts: Facts, *allowed: Evidence) -> bool:
    return facts.planned and all(effect.evidence in allowed for effect in facts.effects)


def _any(facts: Facts, evidence: Evidence) -> bool:
    return any(effect.evidence is evidence for effect in facts.effects)


def _nothing_sent(facts: Facts) -> bool:
    return all(effect.sends == 0 for effect in facts.effects)


def _unsettled_too_long(facts: Facts) -> bool:
    return any(is_overdue(effect, facts.now) for effect in facts.effects)


def _no_claim_open(facts: Facts) -> bool:
    return not any(effect.open for effect in facts.effects)


def _all_sent_proved_absent(facts: Facts) -> bool:
    return all(effect.evidence is Evidence.ABSENT for effect in facts.effects if effect.sends)


CLASSIFICATION: tuple[Row, ...] = (
    (
        "a conflict, or unsettled for 24 hours",
        lambda facts: _any(facts, Evidence.CONFLICT) or _unsettled_too_long(facts),
        Status.NEEDS_REVIEW,
    ),
    (
        "an empty plan, or everything in place before the first write",
        lambda facts: _all(facts, Evidence.CONFIRMED) and _nothing_sent(facts),
        Status.NO_CHANGE,
    ),
    (
        "every effect confirmed or skipped",
        lambda facts: _all(facts, Evidence.CONFIRMED, Evidence.SKIPPED),
        Status.COMPLETED,
    ),
    (
        "the sixth continuation",
        lambda facts: facts.continuations >= MOST_CONTINUATIONS,
        Status.NEEDS_REVIEW,
    ),
    (
        "an effect is unsettled",
        lambda facts: _any(facts, Evidence.UNSETTLED),
        Status.FAILED_AFTER_WRITE,
    ),
    (
        "the write budget is spent and no claim is open",
        lambda facts: facts.budget_spent and _no_claim_open(facts),
        Status.WAITING,
    ),
    (
        "nothing confirmed, and nothing sent or all that was sent proved absent",
        lambda facts: not _any(facts, Evidence.CONFIRMED) and _all_sent_proved_absent(facts),
        Status.FAILED_BEFORE_WRITE,
    ),
    ("the rest", lambda _: True, Status.FAILED_AFTER_WRITE),
)


def classify(facts: Facts) -> Status:
    """The status of the first row that fits."""
    return _first_row(facts)[2]


def row_of(facts: Facts) -> str:
    """The words of the first row that fits: why the status is what it is."""
    return _first_row(facts)[0]


def _first_row(facts: Facts) -> Row:
    return next(row for row in CLASSIFICATION if row[1](facts))
