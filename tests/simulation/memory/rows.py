"""What stands in the memory ledger: rows that never change, and the state that holds them.

Invariant: whatever stands under a name is immutable, so that a copy of the state copies its tables
and no rows, and nothing that was given out can be changed behind the ledger's back.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Generic, NamedTuple, NoReturn, TypeVar

from pydantic import BaseModel

from ledger.counters import Incident
from ledger.memory import Cleared, Recall, ReviewState, TranscriptLine
from ledger.records import Holding, Report
from triage.contract import RunEffect, RunRecord, Status
from triage.identifiers import EffectKind, Family
from triage.plan import Plan
from triage.snapshot import Snapshot

Value = TypeVar("Value")
Model = TypeVar("Model", bound=BaseModel)


class Kept(NamedTuple, Generic[Value]):
    """A value until ``expires``, in milliseconds; None where it never does."""

    value: Value
    expires: int | None = None


class LeaseRow(NamedTuple):
    """``lease:{dedupe_key}``. ``token`` is empty once it was given up."""

    owner: str
    token: str
    until: int
    fence: int
    epoch: str
    expires: int


class Placed(NamedTuple):
    """An effect in its run; ``place`` counts the order in which they were first saved."""

    place: int
    effect: RunEffect


class RunRow(NamedTuple):
    """``run:{dedupe_key}``. ``claims`` holds the fence of each open claim, by effect. Once it is
    ``over`` no effect of it is written or counted any more."""

    record: RunRecord
    status: Status
    force: bool
    effects: Mapping[str, Placed] = {}
    claims: Mapping[str, int] = {}
    claimed: int = 0
    places: int = 0
    snapshot_fence: int = 0
    settled: str = ""
    over: bool = False
    cost: Mapping[str, float] = {}
    denials: int = 0
    broken: bool = False
    expires: int | None = None


class OpenClaim(NamedTuple):
    """A claim without an outcome, and what withdrawing it puts back."""

    operation: str
    placed: Placed
    undo_placed: Placed | None
    undo_holding: Holding | None
    undo_samples: tuple[int, ...]
    undo_pending: bool
    undo_tombstone: bool
    undo_removed: frozenset[str]


class EffectRow(NamedTuple):
    """``effect:{effect_key}``. None is a field that was never written, or was taken away."""

    repository_id: int | None = None
    issue_id: int | None = None
    issue: int | None = None
    kind: EffectKind | None = None
    github_id: int | None = None
    url: str | None = None
    digest: str | None = None
    holder: str | None = None
    holding: Holding | None = None
    claim: OpenClaim | None = None
    claim_fence: int | None = None
    claimed_at: int | None = None
    intended: str = ""
    sends: int | None = None
    samples: tuple[int, ...] | None = None
    pending: bool = False
    writer: str | None = None
    writer_fence: int | None = None
    tombstone: bool | None = None
    own: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    looked_up: str | None = None
    withdrawn: str | None = None


class EpochRow(NamedTuple):
    """``epoch``."""

    id: str
    replid: str
    began: int
    quiet_until: int
    first: bool
    replicas_seen: int = 0


class StoredLine(NamedTuple):
    """A line of a transcript, and the bytes of the session up to and with it."""

    total: int
    line: TranscriptLine


class ReviewRow(NamedTuple):
    """``review:{repository}``, ``watch:{repository}``. ``cleared``: its session was given up."""

    state: ReviewState
    cleared: Cleared | None = None


@dataclass(slots=True)
class State:
    """Everything. Moments are milliseconds, those of ``grants`` microseconds.

    ``github`` leads from repository and GitHub id to the effect; ``indexes`` are the sorted sets
    ``runs:…``; ``expiring`` leads from a run and its indexes to when they forget it; ``grants`` are
    the times of an installation's writes, in order, and ``blocked`` until when it writes nothing;
    ``copies`` are those of sessions, by their own names.
    """

    fence: int = 0
    epoch: EpochRow | None = None
    incidents: tuple[Incident, ...] = ()
    bot_ids: frozenset[int] = frozenset()
    leases: dict[str, LeaseRow] = field(default_factory=dict)
    runs: dict[str, RunRow] = field(default_factory=dict)
    snapshots: dict[str, Kept[Snapshot]] = field(default_factory=dict)
    plans: dict[str, Kept[Plan]] = field(default_factory=dict)
    indexes: dict[str, Mapping[str, int]] = field(default_factory=dict)
    expiring: dict[tuple[str, tuple[str, ...]], int] = field(default_factory=dict)
    effects: dict[str, EffectRow] = field(default_factory=dict)
    github: dict[tuple[int, int], str] = field(default_factory=dict)
    due: dict[str, int] = field(default_factory=dict)
    grants: dict[str, tuple[int, ...]] = field(default_factory=dict)
    blocked: dict[str, int] = field(default_factory=dict)
    repositories: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    decisions: dict[tuple[int, str], Kept[Mapping[int, str]]] = field(default_factory=dict)
    reports: dict[str, Kept[Report]] = field(default_factory=dict)
    counters: dict[str, float] = field(default_factory=dict)
    completed: dict[str, tuple[int, str]] = field(default_factory=dict)
    recalled: dict[str, tuple[float, str]] = field(default_factory=dict)
    deliveries: dict[str, Kept[str]] = field(default_factory=dict)
    asks: dict[str, Kept[str]] = field(default_factory=dict)
    sessions: dict[tuple[int, str], Kept[tuple[StoredLine, ...]]] = field(default_factory=dict)
    copies: dict[str, Kept[tuple[StoredLine, ...]]] = field(default_factory=dict)
    reviews: dict[tuple[int, Family], Kept[ReviewRow]] = field(default_factory=dict)
    recalls: dict[tuple[int, Family], Kept[tuple[Recall, ...]]] = field(default_factory=dict)

    def copy(self) -> "State":
        """The same rows in tables of their own."""
        tables: dict[str, Any] = {name: getattr(self, name).copy() for name in _TABLES}
        return replace(self, **tables)


_TABLES = tuple(table.name for table in fields(State) if table.default_factory is dict)


class _ReadOnly(dict[Any, Any]):
    """A table inside a model that was given out: it cannot be changed."""

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError("what the ledger gave out cannot be changed")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse


def sealed(model: Model) -> Model:
    """The same model, with tables of its own that nobody can change."""
    changed: dict[str, object] = {}
    for name, value in model.__dict__.items():
        if isinstance(value, BaseModel):
            part: BaseModel = sealed(value)
            if part is not value:
                changed[name] = part
        elif isinstance(value, dict) and not isinstance(value, _ReadOnly):
            changed[name] = _ReadOnly(value)
    return model.model_copy(update=changed) if changed else model
