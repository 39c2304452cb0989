"""Faults on demand: which requests they meet, and what then happens.

    github.fail(POST_COMMENT, "apply then drop")
    github.fail("GET .*/comments$", "stale", lag=5)
    github.fail(POST_LABELS, "act before applying", act={"actor": "bob", "action": "lock"})

The words of an action:

    drop | 502 | any status                  nothing is applied
    apply then drop | apply then 502 | …     applied, but the client is not told
    drop then apply | 502 then apply | …     told so at once, applied `seconds` later
                                             (None: when `land_late()` is called)
    hang before applying                     waits `seconds`, then goes on; a client that is gone
    hang after applying                      by then does not keep it from being applied
    403 secondary | 429 | 403 primary | 401  GitHub's own refusals; `retry_after` or none
    act before applying | act after applying    a person acts: `act` says who and what
    call before applying | call after applying  `call(struck)` runs: kill something here
    stale                                    reads see what was so `lag` seconds ago
    flap                                     each read may or may not show what is younger than
                                             `lag`: by `sequence` (one entry per read), or by `seed`
    suggest                                  labels are recorded as suggestions, not applied
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from random import Random

from sandbox.github.history import FRESH, AsOf, Flapping, Sight, before
from sandbox.github.wire import Respond

_ISSUE = r"/repos/[^/]+/[^/]+/issues/\d+"
POST_COMMENT = rf"POST ^{_ISSUE}/comments$"
PATCH_COMMENT = r"PATCH ^/repos/[^/]+/[^/]+/issues/comments/\d+$"
DELETE_COMMENT = r"DELETE ^/repos/[^/]+/[^/]+/issues/comments/\d+$"
GET_COMMENT = r"GET ^/repos/[^/]+/[^/]+/issues/comments/\d+$"
LIST_COMMENTS = rf"GET ^{_ISSUE}/comments$"
LIST_REPOSITORY_COMMENTS = r"GET ^/repos/[^/]+/[^/]+/issues/comments$"
POST_LABELS = rf"POST ^{_ISSUE}/labels$"
DELETE_LABEL = rf"DELETE ^{_ISSUE}/labels/.+$"
POST_ISSUE = r"POST ^/repos/[^/]+/[^/]+/issues$"
PATCH_ISSUE = rf"PATCH ^{_ISSUE}$"
GET_ISSUE = rf"GET ^{_ISSUE}$"
LIST_ISSUES = r"GET ^/repos/[^/]+/[^/]+/issues$"
LIST_LABELS = r"GET ^/repos/[^/]+/[^/]+/labels$"
POST_REACTION = r"POST ^/repos/[^/]+/[^/]+/issues/.*/reactions$"
POST_ACCESS = r"POST ^/app/installations/\d+/access_tokens$"
ANYTHING = "* "

_REFUSALS = frozenset({"403 secondary", "403 primary", "429", "401"})
_SINGLE = (
    "hang before applying",
    "hang after applying",
    "act before applying",
    "act after applying",
    "call before applying",
    "call after applying",
    "stale",
    "flap",
    "suggest",
)
_LASTING = frozenset({"stale", "flap", "suggest"})
_TURNED = re.compile(r"(?P<first>apply then )?(?P<what>drop|\d{3})(?P<later> then apply)?")


@dataclass(frozen=True, slots=True)
class Struck:
    """What a callback or an acting person gets to know of the request that was met."""

    method: str
    path: str
    who: str
    body: bytes
    answer: Respond | None  # None before it is applied


Act = Mapping[str, object] | Callable[[Struck], object]


@dataclass(frozen=True, slots=True)
class Fault:
    """Which requests, counted from now, and what happens to them.

    It strikes the match number `occurrence`, and from there each `every`-th, `times` in all
    (None: for ever, the default of stale, flap and suggest; the others strike once).
    """

    action: str
    method: str = "*"
    path: str = ""  # searched for in the canonical path /repos/OWNER/NAME/...
    view: str | None = None
    who: str | None = None  # searched for in the login (or `app SLUG`)
    body: str | None = None  # searched for in the request's body
    occurrence: int = 1
    times: int | None = 1
    every: int = 1
    seconds: float | None = None
    retry_after: int | None = None
    message: str = "Server Error"
    lag: float = 0.0
    sequence: Sequence[bool] = ()
    seed: int = 0
    act: Act | None = None
    call: Callable[[Struck], object] | None = None

    def __post_init__(self) -> None:
        known = self.action in _SINGLE or self.action in _REFUSALS
        turned = _TURNED.fullmatch(self.action)
        if not known and (turned is None or (turned["first"] and turned["later"])):
            raise ValueError(f"no such fault: {self.action!r}")
        if self.action.startswith("act ") and self.act is None:
            raise ValueError("say who does what: act={'actor': …, 'action': …}")
        if self.action.startswith("call ") and self.call is None:
            raise ValueError("say what to call: call=…")
        if self.occurrence < 1 or self.every < 1 or (self.times is not None and self.times < 1):
            raise ValueError("occurrence, every and times count from 1")

    @property
    def is_refusal(self) -> bool:
        return self.action in _REFUSALS

    @property
    def turned(self) -> tuple[str, str] | None:
        """(`none`, `first` or `later`: whether and when it applies; `drop` or a status)."""
        match = None if self.action in _REFUSALS else _TURNED.fullmatch(self.action)
        if match is None:
            return None
        applies = "first" if match["first"] else "later" if match["later"] else "none"
        return applies, match["what"]


def fault_at(where: str, action: str, **options: object) -> Fault:
    """`where` is `METHOD regex`, like the constants above; `* ` is anything."""
    method, _, path = where.partition(" ")
    if action in _LASTING:
        options.setdefault("times", None)
    return Fault(action, method.upper(), path, **options)  # type: ignore[arg-type]


@dataclass(slots=True, eq=False)
class Armed:
    """A fault with its counts."""

    id: int
    fault: Fault
    path: re.Pattern[str]
    who: re.Pattern[str] | None
    body: re.Pattern[bytes] | None
    matched: int = 0
    struck: int = 0
    dice: Random = field(default_factory=Random)

    @property
    def spent(self) -> bool:
        return self.fault.times is not None and self.struck >= self.fault.times

    def meets(self, method: str, path: str, view: str | None, who: str, body: bytes) -> bool:
        fault = self.fault
        if fault.method not in ("*", method) or self.spent:
            return False
        if fault.view is not None and fault.view != view:
            return False
        if self.path.search(path) is None:
            return False
        if self.who is not None and self.who.search(who) is None:
            return False
        return self.body is None or self.body.search(body) is not None

    def strikes(self) -> bool:
        """Counts a match; says whether this one is struck."""
        self.matched += 1
        past = self.matched - self.fault.occurrence
        if past < 0 or past % self.fault.every:
            return False
        self.struck += 1
        return True

    def sight(self, now: datetime) -> Sight:
        fault = self.fault
        cutoff = before(now, fault.lag)
        if fault.action == "stale":
            return AsOf(cutoff)
        if fault.sequence:
            shown = fault.sequence[(self.struck - 1) % len(fault.sequence)]
            return FRESH if shown else AsOf(cutoff)
        return Flapping(cutoff, self.dice)


class Faults:
    """Those that are armed, in the order in which they were added."""

    def __init__(self) -> None:
        self.armed: list[Armed] = []
        self._ids = itertools.count(1)

    def add(self, fault: Fault) -> Armed:
        armed = Armed(
            id=next(self._ids),
            fault=fault,
            path=re.compile(fault.path),
            who=None if fault.who is None else re.compile(fault.who),
            body=None if fault.body is None else re.compile(fault.body.encode()),
            dice=Random(fault.seed),
        )
        self.armed.append(armed)
        return armed

    def clear(self, id: int | None = None) -> None:
        self.armed = [each for each in self.armed if id is not None and each.id != id]

    def strike(
        self, method: str, path: str, view: str | None, who: str, body: bytes
    ) -> list[Armed]:
        """Counts the request for every fault that it meets; gives those that strike it."""
        return [
            each
            for each in self.armed
            if each.meets(method, path, view, who, body) and each.strikes()
        ]
