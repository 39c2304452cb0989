"""The crash matrix as a table: boundaries of a run, and what a fault there must lead to.

A cell is the status when the run is classified, and the next action. Boundaries are points of the
ports, where a fault can be put exactly. Before them lies the enqueueing of a trigger, whose faults
are tested with the receiver: a delivery and its job are one transaction (``tests/bot``).

The words of an action: ``t`` take over when the lease lapses, ``w`` the same after the lock delay;
then ``n`` a new snapshot, ``m`` the model again on the same snapshot, ``p`` go on with the saved
plan, ``v`` look for a create (seen: adopt it; proved absent: send it once more), ``vL`` read the
issue and do what is missing, ``g`` ask our own record again and go on, ``z`` nothing.

What a fault cannot do is not in its table: the model's lost reply is a failed session, which has
no answer; and a 5xx that was applied comes of a write alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from triage.contract import Evidence, Status
from triage.identifiers import EffectKind


@dataclass(frozen=True, slots=True)
class Boundary:
    """A row: its number and words, and the call after which the run stands there."""

    number: int
    words: str
    point: str
    when: Callable[[Any], bool] = lambda _: True

    def __str__(self) -> str:
        return f"{self.number} {self.words}"


def _kind(kind: EffectKind) -> Callable[[Any], bool]:
    """Calls whose effect is of this kind."""
    return lambda args: any(getattr(argument, "kind", None) is kind for argument in args)


def _confirms(args: Any) -> bool:
    effects = args[1] if len(args) > 1 and isinstance(args[1], list) else []
    return any(effect.evidence is Evidence.CONFIRMED for effect in effects)


BOUNDARIES = (
    Boundary(1, "lease acquired", "after leases.acquire"),
    Boundary(2, "snapshot saved", "after runs.save_snapshot"),
    Boundary(3, "model answered", "after agent.decide"),
    Boundary(3, "plan saved", "after runs.save_plan"),
    Boundary(4, "effect claimed", "after effects.claim", _kind(EffectKind.COMMENT)),
    Boundary(5, "comment request sent", "after writer.create_comment"),
    Boundary(6, "comment acknowledged", "after effects.acknowledge", _kind(EffectKind.COMMENT)),
    Boundary(7, "label request sent", "after writer.add_labels"),
    Boundary(8, "label acknowledged", "after effects.acknowledge", _kind(EffectKind.LABELS)),
    Boundary(9, "read-back", "after reader.comment"),
    Boundary(10, "item status saved", "after runs.save_effects", _confirms),
    Boundary(11, "summary sent", "after writer.create_issue"),
    Boundary(12, "summary acknowledged", "after effects.acknowledge", _kind(EffectKind.SUMMARY)),
    Boundary(13, "completed, lease released", "after runs.settle"),
)

FB, FA, C = Status.FAILED_BEFORE_WRITE, Status.FAILED_AFTER_WRITE, Status.COMPLETED

KILLED: dict[str, tuple[Status, str]] = {
    "1 lease acquired": (FB, "t n"),
    "2 snapshot saved": (FB, "t m"),
    "3 model answered": (FB, "t m"),
    "3 plan saved": (FB, "t p"),
    "4 effect claimed": (FA, "w v"),
    "5 comment request sent": (FA, "w v"),
    "6 comment acknowledged": (FA, "w p"),
    "7 label request sent": (FA, "w vL"),
    "8 label acknowledged": (FA, "w p"),
    "9 read-back": (FA, "w v"),
    "10 item status saved": (FA, "w p"),
    "11 summary sent": (FA, "w v"),
    "12 summary acknowledged": (FA, "w v"),
    "13 completed, lease released": (C, "z"),
}

LOST: dict[str, tuple[Status, str]] = {
    "1 lease acquired": (C, "own token, g"),
    "2 snapshot saved": (C, "g"),
    "3 plan saved": (C, "g p"),
    "4 effect claimed": (C, "g, the lost claim is not sent"),
    "5 comment request sent": (FA, "v"),
    "6 comment acknowledged": (C, "g"),
    "7 label request sent": (FA, "vL"),
    "8 label acknowledged": (C, "g"),
    "9 read-back": (C, "retry the GET"),
    "10 item status saved": (C, "g"),
    "11 summary sent": (FA, "v"),
    "12 summary acknowledged": (C, "g C"),
    "13 completed, lease released": (C, "z"),
}

APPLIED_5XX: dict[str, tuple[Status, str]] = {
    "5 comment request sent": (FA, "v"),
    "7 label request sent": (FA, "vL"),
    "11 summary sent": (FA, "v"),
}


def boundary(name: str) -> Boundary:
    """The row of that name."""
    return next(row for row in BOUNDARIES if str(row) == name)
