"""What can happen in a round, and where: drawn from a seed and the round's number alone.

A kind of fault strikes at a boundary, before or after what is named there, while somebody else may
trigger the same window. Kinds and their boundaries take turns, so that each comes up as often.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random


class Kind(StrEnum):
    """What happens at the boundary."""

    WORKER = "worker killed"
    HORSE = "work horse killed"
    BOTH = "both killed"
    SERVER = "server killed, AOF always"
    EMPTIED = "server killed, no AOF"
    SET_BACK = "server killed, AOF everysec"
    PROMOTED = "replica promoted"
    STOPPED = "stopped past the lease"
    LATE = "request outlives all deadlines"
    LEDGER_REPLY = "Redis reply lost"
    LEDGER_REQUEST = "Redis request lost"
    GITHUB_REPLY = "GitHub reply lost"
    GITHUB_REQUEST = "GitHub request lost"

    @property
    def loses_ledger(self) -> bool:
        """Acknowledged writes may be gone: the epoch must change."""
        return self in (Kind.EMPTIED, Kind.SET_BACK, Kind.PROMOTED)

    @property
    def takes_a_worker(self) -> bool:
        """A worker is killed, stands, or has lost its server: another one is started."""
        return self not in (
            Kind.HORSE,
            *(Kind.LEDGER_REPLY, Kind.LEDGER_REQUEST, Kind.GITHUB_REPLY, Kind.GITHUB_REQUEST),
        )

    @property
    def may_duplicate(self) -> bool:
        """A request lands after every deadline that was set for it: an incident is allowed."""
        return self is Kind.LATE


class Meanwhile(StrEnum):
    """Who else triggers the window when the fault strikes."""

    NOBODY = "nobody"
    CRON = "cron"
    REDELIVERY = "a redelivered webhook"
    HAND = "a person"
    SECOND = "a second worker"


@dataclass(frozen=True, slots=True)
class Boundary:
    """An instant of a run, as a proxy sees it: a request on one way, found by its text.

    ``per_issue``: it comes once for each issue.
    """

    name: str
    way: str
    where: str
    per_issue: bool = False

    def __str__(self) -> str:
        return self.name


BOUNDARIES = (
    Boundary("lease", "ledger", "^ACQUIRE "),
    Boundary("listing", "github", r"^GET \S+/issues\?state=open"),
    Boundary("snapshot", "ledger", "^WRITE_ONCE .{,200} snapshot:"),
    Boundary("model", "model", "^POST /v1/messages"),
    Boundary("plan", "ledger", "^SAVE_PLAN "),
    Boundary("comment claim", "ledger", '^CLAIM .*"kind": "comment"', per_issue=True),
    Boundary("comment", "github", r"^POST \S+/issues/\d+/comments ", per_issue=True),
    Boundary("comment record", "ledger", '^ACKNOWLEDGE .*"kind": "comment"', per_issue=True),
    Boundary("labels claim", "ledger", '^CLAIM .*"kind": "labels"', per_issue=True),
    Boundary("labels", "github", r"^POST \S+/issues/\d+/labels ", per_issue=True),
    Boundary("labels record", "ledger", '^ACKNOWLEDGE .*"kind": "labels"', per_issue=True),
    Boundary("read-back", "github", r"^GET \S+/issues/comments/\d+ ", per_issue=True),
    Boundary("evidence", "ledger", '^SAVE_EFFECTS .*"evidence": "confirmed"'),
    Boundary("summary claim", "ledger", '^CLAIM .*"kind": "summary"'),
    Boundary("summary", "github", r"^POST \S+/issues "),
    Boundary("summary record", "ledger", '^ACKNOWLEDGE .*"kind": "summary"'),
    Boundary("end", "ledger", '^SAVE .*"ending": true'),
)
"""In the order of a run."""

NAMED = {boundary.name: boundary for boundary in BOUNDARIES}

_LEDGER = tuple(boundary for boundary in BOUNDARIES if boundary.way == "ledger")
_GITHUB = tuple(boundary for boundary in BOUNDARIES if boundary.way == "github")
_CREATES = (NAMED["comment"], NAMED["summary"])
_PROMOTIONS = BOUNDARIES[3:]

PLACES: dict[Kind, Sequence[tuple[Boundary, bool]]] = {
    Kind.LATE: [(boundary, False) for boundary in _CREATES],
    Kind.LEDGER_REPLY: [(boundary, True) for boundary in _LEDGER],
    Kind.LEDGER_REQUEST: [(boundary, False) for boundary in _LEDGER],
    Kind.GITHUB_REPLY: [(boundary, True) for boundary in _GITHUB],
    Kind.GITHUB_REQUEST: [(boundary, False) for boundary in _GITHUB],
    Kind.PROMOTED: [(boundary, after) for boundary in _PROMOTIONS for after in (True, False)],
}
"""Where a kind strikes, and whether after; all others everywhere, before and after."""

EVERYWHERE = [(boundary, after) for boundary in BOUNDARIES for after in (True, False)]


@dataclass(frozen=True, slots=True)
class Planned:
    """One round. ``lost``: what is under way at the boundary is lost with it. ``cut_at``: where the
    replica was cut off before. ``lost_bytes``: of the AOF's end, where the machine dies too."""

    seed: int
    number: int
    kind: Kind
    boundary: Boundary
    after: bool
    occurrence: int
    issues: int
    lost: bool
    meanwhile: Meanwhile
    cut_at: Boundary | None = None
    lost_bytes: int = 0

    @property
    def place(self) -> str:
        """The boundary in words: ``after comment``."""
        return f"{'after' if self.after else 'before'} {self.boundary}"

    def __str__(self) -> str:
        nth = f" {self.occurrence}" if self.boundary.per_issue else ""
        more = f", cut off before {self.cut_at}" if self.cut_at else ""
        lost = ", which is lost" if self.lost else ""
        return (
            f"round {self.number} of seed {self.seed}: {self.kind} {self.place}{nth}{lost}{more}, "
            f"{self.issues} issues, meanwhile {self.meanwhile}"
        )


def plan(seed: int, number: int) -> Planned:
    """The round of that number: the same for the same seed."""
    kinds = list(Kind)
    Random(seed).shuffle(kinds)
    kind = kinds[number % len(kinds)]
    places = list(PLACES.get(kind, EVERYWHERE))
    Random(f"{seed} {kind}").shuffle(places)
    boundary, after = places[number // len(kinds) % len(places)]
    dice = Random(f"{seed} {number}")
    issues = dice.choice((1, 2))
    earlier = BOUNDARIES[: BOUNDARIES.index(boundary)]
    return Planned(
        seed=seed,
        number=number,
        kind=kind,
        boundary=boundary,
        after=after,
        occurrence=dice.randint(1, issues) if boundary.per_issue else 1,
        issues=issues,
        lost=_is_lost(kind, boundary, dice),
        meanwhile=dice.choice(list(Meanwhile)),
        cut_at=dice.choice(earlier) if kind is Kind.PROMOTED else None,
        lost_bytes=dice.randint(1, 6000) if kind is Kind.SET_BACK else 0,
    )


def _is_lost(kind: Kind, boundary: Boundary, dice: Random) -> bool:
    """Whether what is under way at the boundary is lost."""
    match kind:
        case Kind.LEDGER_REPLY | Kind.LEDGER_REQUEST | Kind.GITHUB_REPLY | Kind.GITHUB_REQUEST:
            return True
        case Kind.STOPPED | Kind.LATE:
            return False
        case Kind.SERVER | Kind.EMPTIED | Kind.SET_BACK | Kind.PROMOTED:
            return boundary.way == "ledger" or dice.random() < 0.5
        case Kind.WORKER | Kind.HORSE | Kind.BOTH:
            return dice.random() < 0.5
