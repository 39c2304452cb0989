"""What each misbehaviour does to a decision."""

from typing import Any

from sandbox.model.behaviour import Misbehaviour, Order
from sandbox.model.classifier import Json
from sandbox.model.task import Issue

MARKUP = 'See https://example.com, @everyone: <img src=x onerror="alert(1)"> fixes #1'


def changed(decision: Json, issue: Issue, order: Order) -> Json:
    """A decision after a misbehaviour."""
    if not order.touches(issue.number):
        return decision
    match order.kind:
        case Misbehaviour.LOW_CONFIDENCE:
            return {**decision, "confidence": 0.2}
        case Misbehaviour.MARKUP:
            return {**decision, "verdict": MARKUP}
        case Misbehaviour.TOO_LONG:
            return {**decision, "verdict": "All work and no play. " * 100}
        case Misbehaviour.FORBIDDEN_LABEL:
            return {**decision, "labels": ["pwned"]}
        case Misbehaviour.OUTSIDE_SCHEMA:
            return {"number": issue.number, "labels": "bug", "confidence": "high"}
        case Misbehaviour.UNKNOWN_ISSUE:
            return {**decision, "number": issue.number + 1_000_000}
        case _:
            return decision


def changed_items(items: list[dict[str, Any]], order: Order) -> Any:
    """A review's findings or a watch's changes after a misbehaviour."""
    match order.kind:
        case Misbehaviour.MARKUP:
            return [{**item, "summary": MARKUP} for item in items]
        case Misbehaviour.TOO_LONG:
            return [{**item, "summary": "All work and no play. " * 100} for item in items]
        case Misbehaviour.OUTSIDE_SCHEMA:
            return "none"
        case _:
            return items
