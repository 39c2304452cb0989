"""Where the boundaries of the matrix are on the way of a job: after which call, at which request.

A review writes one issue: the boundaries of the effect's claim, of the summary and of the read-back
are those of its page, made on a first night and edited on each later one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sandbox.github.faults import (
    GET_COMMENT,
    GET_ISSUE,
    LIST_ISSUES,
    LIST_LABELS,
    PATCH_ISSUE,
    POST_COMMENT,
    POST_ISSUE,
    POST_LABELS,
)
from triage.contract import Evidence
from triage.identifiers import EffectKind, JobKey

Point = tuple[str, Callable[[Any], bool]]
"""A call, and with which arguments."""

GET_BRANCH: Final = r"GET ^/repos/[^/]+/[^/]+/branches/.+$"


@dataclass(frozen=True, slots=True)
class Way:
    """A job's way. ``points``: the call after which a run stands at a boundary; ``requests``: the
    request that a boundary is; ``following``: the one that comes next after one that is none.
    ``model``: the call that asks it, so often that an attempt gives up after ``tries``.
    """

    job: JobKey
    points: Mapping[int, Point]
    requests: Mapping[int, str]
    following: Mapping[int, str]
    model: str
    tries: int
    edits: bool = False

    def passing(self, row: int) -> int:
        """At which passing of its call a boundary is: an edit reads the page twice before."""
        return 3 if self.edits and row == 9 else 1


def of_kind(kind: EffectKind) -> Callable[[Any], bool]:
    """Calls whose effect is of this kind."""
    return lambda args: any(getattr(argument, "kind", None) is kind for argument in args)


def always(_: Any) -> bool:
    """Every call."""
    return True


def _confirms(args: Any) -> bool:
    effects = args[1] if len(args) > 1 and isinstance(args[1], list) else []
    return any(effect.evidence is Evidence.CONFIRMED for effect in effects)


_START: Final[dict[int, Point]] = {
    1: ("after leases.acquire", always),
    2: ("after runs.save_snapshot", always),
    3: ("after runs.save_plan", always),
}
_END: Final[dict[int, Point]] = {
    10: ("after runs.save_effects", _confirms),
    12: ("after effects.acknowledge", of_kind(EffectKind.SUMMARY)),
    13: ("after runs.settle", always),
}
_CLAIM: Final = "after effects.claim"

TRIAGE: Final = Way(
    job=JobKey.DAILY,
    points={
        **_START,
        4: (_CLAIM, of_kind(EffectKind.COMMENT)),
        5: ("after writer.create_comment", always),
        6: ("after effects.acknowledge", of_kind(EffectKind.COMMENT)),
        7: ("after writer.add_labels", always),
        8: ("after effects.acknowledge", of_kind(EffectKind.LABELS)),
        9: ("after reader.comment", always),
        10: _END[10],
        11: ("after writer.create_issue", always),
        12: _END[12],
        13: _END[13],
    },
    requests={5: POST_COMMENT, 7: POST_LABELS, 9: GET_COMMENT, 11: POST_ISSUE},
    following={
        1: LIST_ISSUES,
        3: LIST_LABELS,
        4: POST_COMMENT,
        6: LIST_LABELS,
        8: GET_COMMENT,
        10: POST_ISSUE,
        12: GET_ISSUE,
        13: "GET .",
    },
    model="before agent.decide",
    tries=3,
)

REVIEW: Final = Way(
    job=JobKey.REVIEW,
    points={
        **_START,
        **_END,
        4: (_CLAIM, of_kind(EffectKind.SUMMARY)),
        9: ("after reader.issue", always),
        11: ("after writer.create_issue", always),
    },
    requests={9: GET_ISSUE, 11: POST_ISSUE},
    following={1: GET_BRANCH, 4: POST_ISSUE, 12: GET_ISSUE, 13: "GET ."},
    model="before agent.review",
    tries=1,
)

REVIEW_AGAIN: Final = Way(
    job=JobKey.REVIEW,
    points={
        **_START,
        **_END,
        4: (_CLAIM, of_kind(EffectKind.SUMMARY)),
        9: ("after reader.issue", always),
        11: ("after writer.edit_issue", always),
    },
    requests={9: GET_ISSUE, 11: PATCH_ISSUE},
    following={1: GET_BRANCH, 3: GET_ISSUE, 4: PATCH_ISSUE, 12: GET_ISSUE, 13: "GET ."},
    model="before agent.review",
    tries=1,
    edits=True,
)
